"""`hermes-ws status`."""

from __future__ import annotations

import sys

import click


@click.command(
    epilog="""\b
Examples:
  hermes-ws status
  hermes-ws status --json | jq -r .state
\b
Exit status: 0 there is a server, 1 there is none."""
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def status(as_json: bool) -> None:
    """Show which server this terminal means, and which profiles it serves."""
    import anyio

    from hermes_ws.cli.environment import read_environment
    from hermes_ws.cli.locating import Where
    from hermes_ws.cli.reporting import Report
    from hermes_ws.cli.screen import Screen

    surroundings = read_environment()
    out = Screen(sys.stdout, surroundings)
    err = Screen(sys.stderr, surroundings, beside=out)
    sys.exit(anyio.run(Report(Where(surroundings), out, err, as_json=as_json).run, backend="trio"))
