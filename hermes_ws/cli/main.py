"""The `hermes-ws` command. Each subcommand loads what it needs when it runs, so that help and mistakes are quick."""

from __future__ import annotations

import io
import sys

import click

from hermes_ws import __version__
from hermes_ws.cli.chat import chat
from hermes_ws.cli.completion import completion
from hermes_ws.cli.config import config
from hermes_ws.cli.doctor import doctor
from hermes_ws.cli.keep import ensure, logs, open_, stop
from hermes_ws.cli.profile import profile
from hermes_ws.cli.serve import serve
from hermes_ws.cli.session import session
from hermes_ws.cli.status import status
from hermes_ws.cli.stdio import stdio
from hermes_ws.cli.token import token


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="""\b
Environment:
  HERMES_HOME               the home whose server is meant
                            (default: ~/.hermes)
  HERMES_TUI_GATEWAY_URL    a server elsewhere: wss://host/ws
  HERMES_TUI_GATEWAY_TOKEN  its token
  NO_COLOR                  no colours""",
)
@click.version_option(__version__, "-V", "--version", prog_name="hermes-ws")
@click.option("-p", "--profile", "name", metavar="NAME", help="As --profile NAME of the command that follows.")
@click.pass_context
def hermes_ws(context: click.Context, name: str | None) -> None:
    """Serve AI agent profiles, and talk with their agents."""
    if name is not None:
        if not name.strip():
            raise click.UsageError("-p is blank.")
        context.default_map = _of_profile(hermes_ws, name)


def _of_profile(group: click.Group, name: str) -> dict[str, object]:
    """The profile as what each command takes for its `--profile` where that is not given."""
    defaults: dict[str, object] = {}
    for word, command in group.commands.items():
        if isinstance(command, click.Group):
            defaults[word] = _of_profile(command, name)
        elif any(each.name == "profile" and not each.multiple for each in command.params):
            defaults[word] = {"profile": name}
    return defaults


hermes_ws.add_command(serve)
hermes_ws.add_command(chat)
hermes_ws.add_command(status)
hermes_ws.add_command(doctor)
hermes_ws.add_command(stdio)
hermes_ws.add_command(ensure)
hermes_ws.add_command(stop)
hermes_ws.add_command(logs)
hermes_ws.add_command(open_, "open")
hermes_ws.add_command(profile)
hermes_ws.add_command(session)
hermes_ws.add_command(session, "sessions")
hermes_ws.add_command(token)
hermes_ws.add_command(config)
hermes_ws.add_command(completion)


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character shows a question mark
    hermes_ws(prog_name="hermes-ws")


if __name__ == "__main__":
    main()
