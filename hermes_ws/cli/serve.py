"""`hermes-ws serve`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

HIGHEST_PORT = 65535


@click.command(
    epilog="""\b
Examples:
  hermes-ws serve
      serves the home in HERMES_HOME (or ~/.hermes) and the profiles below it
  hermes-ws serve --profiles-root ~/profiles --profile work
      serves every home in a directory, started as one of them
  hermes-ws serve --port 0 --announce json
      takes a free port and prints where it listens, for programs"""
)
@click.option(
    "--profiles-root",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Serve every home in DIR, instead of HERMES_HOME.",
)
@click.option("-p", "--profile", metavar="NAME", help="The launch profile: the one that requests mean which name none.")
@click.option("--host", metavar="HOST", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, HIGHEST_PORT),
    default=8787,
    show_default=True,
    help="The port to listen on; 0 takes a free one.",
)
@click.option(
    "--socket",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="The Unix socket, instead of run/gateway.sock in the launch home.",
)
@click.option(
    "--announce",
    type=click.Choice(["json"]),
    help="Print one line that says where it listens, once it does.",
)
@click.option(
    "--idle-exit",
    metavar="SECONDS",
    type=click.FloatRange(1),
    help="End after so long without a connection and without work.",
)
@click.option(
    "--tls-cert",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Encrypt with this certificate and its chain, in PEM.",
)
@click.option(
    "--tls-key", metavar="FILE", type=click.Path(path_type=Path), help="Its key, if that is not in the same file."
)
@click.option(
    "--behind-proxy",
    metavar="ADDRESS",
    multiple=True,
    help="Trust the reverse proxy at this address or network, and let no other machine in. May be given several times.",
)
@click.option("--parent-pid", metavar="PID", type=click.IntRange(1), help="End when this process ends.")
def serve(
    profiles_root: Path | None,
    profile: str | None,
    host: str,
    port: int,
    socket: Path | None,
    announce: str | None,
    idle_exit: float | None,
    parent_pid: int | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    behind_proxy: tuple[str, ...],
) -> None:
    """Serve profile homes until told to stop (SIGTERM, Ctrl-C)."""
    from hermes_ws.server.serve import ServeOptions, main

    options = ServeOptions(
        profiles_root=profiles_root,
        profile=profile,
        host=host,
        port=port,
        socket=socket,
        announce=announce is not None,
        idle_exit=idle_exit,
        parent_pid=parent_pid,
        tls_cert=tls_cert,
        tls_key=tls_key,
        behind_proxy=behind_proxy,
    )
    sys.exit(main(options))
