"""`hermes-ws ensure`, `stop`, `logs` and `open`: looking after the server of a home."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hermes_ws.cli.keeping import Keeper

LINES = 40
"""What fits on a screen."""


@click.command(
    epilog="""\b
Examples:
  hermes-ws ensure
  hermes-ws ensure --json | jq -r .endpoint
\b
States: ready, starting, absent, draining, conflict, incompatible,
inaccessible. Exit status: 0 ready, 1 anything else."""
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def ensure(as_json: bool) -> None:
    """Find the server of this home, or start one and wait until it is ready."""
    _keep(lambda keeper: keeper.ensure(as_json=as_json))


@click.command(
    epilog="""\b
Examples:
  hermes-ws stop
  hermes-ws stop --within 5
\b
Exit status: 0 no server runs any more, 1 one still does."""
)
@click.option("--within", metavar="SECONDS", type=click.FloatRange(0, 3600), help="What runs gets so long to end.")
def stop(within: float | None) -> None:
    """Let the server finish what runs, and end it."""
    _keep(lambda keeper: keeper.stop(within))


@click.command(
    epilog="""\b
Examples:
  hermes-ws logs
  hermes-ws logs --follow --profile work
  hermes-ws logs -n 500 | jq -c 'select(.level == "error")'"""
)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written from now on.")
@click.option("-n", "--lines", metavar="N", type=click.IntRange(0), default=LINES, show_default=True, help="How many.")
@click.option("-p", "--profile", metavar="NAME", help="The log of this profile, instead of the server's.")
def logs(follow: bool, lines: int, profile: str | None) -> None:
    """Show the last lines of the server's log, and of the home's own."""
    from hermes_ws.cli.environment import read_environment
    from hermes_ws.cli.tailing import tail

    sys.exit(tail(read_environment(), profile, lines=lines, follow=follow))


@click.command(
    "open",
    epilog="""\b
Examples:
  hermes-ws open
      prints a link that signs a browser in, once
  xdg-open "$(hermes-ws open)\"""",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def open_(as_json: bool) -> None:
    """Print a fresh link to the dashboard; it holds for ten minutes and one browser. Starts a server when none runs."""
    _keep(lambda keeper: keeper.open(as_json=as_json))


def _keep(do: Callable[[Keeper], Awaitable[int]]) -> None:
    import anyio

    from hermes_ws.cli.environment import read_environment
    from hermes_ws.cli.keeping import Keeper
    from hermes_ws.cli.locating import Where
    from hermes_ws.cli.screen import Screen

    surroundings = read_environment()
    out = Screen(sys.stdout, surroundings)
    err = Screen(sys.stderr, surroundings, beside=out)

    async def run() -> int:
        return await do(Keeper(Where(surroundings), out, err))

    sys.exit(anyio.run(run, backend="trio"))
