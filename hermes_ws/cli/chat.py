"""`hermes-ws chat`."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command(
    epilog="""\b
Examples:
  hermes-ws chat
      a conversation, line by line
  hermes-ws chat -q "What can you do?"
      one prompt, one reply
  hermes-ws chat -Q -q "Name a colour" > colour.txt
      the reply alone
  hermes-ws chat --resume latest
      goes on with the newest session
\b
Exit status:
  0 done, 1 failed, 2 refused options, 3 needs a person or an
  execution was lost, 130 detached by Ctrl-C"""
)
@click.option("-q", "--query", metavar="TEXT", help="Say TEXT, print the reply, and leave.")
@click.option("-Q", "--quiet", is_flag=True, help="With -q: print the reply alone.")
@click.option("--profile", metavar="NAME", help="The profile to talk in; else the launch profile.")
@click.option("--resume", metavar="ID|TITLE|latest", help="Go on with a session.")
def chat(query: str | None, quiet: bool, profile: str | None, resume: str | None) -> None:
    """Talk with an agent of a running server. Leaving stops nothing."""
    if quiet and query is None:
        raise click.UsageError("-Q goes with -q TEXT.")
    for name, value in (("-q", query), ("--profile", profile), ("--resume", resume)):
        if value is not None and not value.strip():
            raise click.UsageError(f"{name} is blank.")
    from hermes_ws.contract.methods.prompts import PROMPT_CHARACTERS

    if query is not None and len(query) > PROMPT_CHARACTERS:
        raise click.UsageError(f"-q takes at most {PROMPT_CHARACTERS} characters.")
    sys.exit(_run(query, quiet=quiet, profile=profile, resume=resume))


def _run(query: str | None, *, quiet: bool, profile: str | None, resume: str | None) -> int:
    import anyio

    from hermes_ws.cli.environment import read_environment
    from hermes_ws.cli.line_mode import LineMode
    from hermes_ws.cli.locating import Where
    from hermes_ws.cli.oneshot import OneShot
    from hermes_ws.cli.opening import Wanted
    from hermes_ws.cli.screen import Screen

    surroundings = read_environment()
    out = Screen(sys.stdout, surroundings)
    err = Screen(sys.stderr, surroundings, beside=out)
    wanted = Wanted(profile, resume, "cli" if query is None else "oneshot", Path.cwd())
    where = Where(surroundings)
    if query is not None:
        return anyio.run(OneShot(where, wanted, out, err, quiet=quiet).run, query, backend="trio")
    lines = LineMode(where, wanted, out, err, descriptor=sys.stdin.fileno(), typed_by_hand=sys.stdin.isatty())
    return anyio.run(lines.run, backend="trio")
