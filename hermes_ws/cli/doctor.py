"""`hermes-ws doctor`."""

from __future__ import annotations

import sys

import click


@click.command(
    epilog="""\b
Examples:
  hermes-ws doctor
  hermes-ws doctor --leaks
  hermes-ws doctor --json | jq '.findings[] | select(.level == "error")'
\b
Exit status: 0 nothing is wrong, 1 something is."""
)
@click.option("--leaks", is_flag=True, help="Prove that two homes with canaries keep them, on this machine.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def doctor(leaks: bool, as_json: bool) -> None:
    """Look at this machine and at the homes, and say what mends what is wrong. Changes nothing."""
    import trio

    from hermes_ws.cli.diagnosis import Diagnosis
    from hermes_ws.cli.environment import read_environment
    from hermes_ws.cli.screen import Screen

    surroundings = read_environment()
    screen = Screen(sys.stdout, surroundings)
    sys.exit(trio.run(Diagnosis(surroundings, screen, leaks=leaks, as_json=as_json).run))
