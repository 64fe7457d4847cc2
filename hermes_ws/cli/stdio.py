"""`hermes-ws stdio`: the contract over standard input and output, one JSON object per line."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command(
    epilog="""\b
Examples:
  hermes-ws stdio
      a pipe to the server of the home in HERMES_HOME
  hermes-ws stdio --profile work
      the same, bound to one profile
  hermes-ws stdio --standalone --profiles-root ~/profiles
      serves by itself, to this one client
\b
Standard output carries frames alone; all else goes to standard error."""
)
@click.option("-p", "--profile", metavar="NAME", help="The one profile that can be reached.")
@click.option("--standalone", is_flag=True, help="Serve in this process instead of speaking with a server.")
@click.option(
    "--profiles-root",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="With --standalone: serve every home in DIR, instead of HERMES_HOME.",
)
def stdio(profile: str | None, standalone: bool, profiles_root: Path | None) -> None:
    """Speak the contract on standard input and output."""
    if standalone:
        from hermes_ws.server.serve import ServeOptions, main

        sys.exit(main(ServeOptions(profiles_root=profiles_root, profile=profile, standalone=True)))
    if profiles_root is not None:
        raise click.UsageError("--profiles-root goes with --standalone.")
    import anyio

    from hermes_ws.cli.environment import read_environment
    from hermes_ws.cli.piping import pipe

    sys.exit(anyio.run(pipe, read_environment(), profile, backend="trio"))
