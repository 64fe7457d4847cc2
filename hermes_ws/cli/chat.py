"""`hermes-ws chat`."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import click

from hermes_ws.cli import exits, frozen, refused

if TYPE_CHECKING:
    from hermes_ws.cli.environment import Surroundings
    from hermes_ws.cli.opening import Wanted
    from hermes_ws.cli.stream_json import StreamJson
    from hermes_ws.cli.usage_file import UsageFile

QUERY_BYTES = 4 * 1024 * 1024
"""Of a file with a prompt: as many bytes as the longest prompt may have, and more."""

BACKEND = "asyncio"
"""Under which the client runs here: it loads in half the time that trio takes, and a viewer starts no tasks to own."""

TOO_EARLY = "Detached before there was a session."
"""What is said of an interrupt that comes while everything is still being loaded."""

BARE = ""
"""What `-c` without a title is read as."""


@final
@dataclass(frozen=True, slots=True)
class Mode:
    """How it is led: `text` is the one prompt of a one-shot, None for a conversation."""

    text: str | None
    quiet: bool
    unattended: bool


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
  hermes-ws chat -c Nightly --create-if-missing -z "Check the logs"
      the session of that title, made when there is none
  git diff | hermes-ws chat --oneshot --query-file - --format stream-json
      events of one run, a JSON object on each line
\b
Exit status:
  0 done, 1 failed, 2 refused options, 3 needs a person or an
  execution was lost, 130 detached by Ctrl-C"""
)
@click.option("-q", "--query", metavar="TEXT", help="Say TEXT, print the reply, and leave.")
@click.option("--query-file", metavar="FILE|-", help="Say what is in FILE, or in standard input.")
@click.option(
    "-z",
    "unattended",
    metavar="TEXT",
    help="As -Q -q TEXT, for scripts; approvals are asked for all the same.",
)
@click.option("--oneshot", is_flag=True, help="One prompt: of standard input, where no option has it.")
@click.option("-Q", "--quiet", is_flag=True, help="With a prompt: print the reply alone.")
@click.option("--format", "shape", type=click.Choice(["text", "stream-json"]), default="text", help="Of a one-shot.")
@click.option("--usage-file", metavar="FILE", type=click.Path(path_type=Path), help="With -z: what it took, as JSON.")
@click.option("-p", "--profile", metavar="NAME", help="The profile to talk in; else the launch profile.")
@click.option("--resume", metavar="ID|TITLE|latest", help="Go on with a session.")
@click.option(
    "-c",
    "--continue",
    "continued",
    metavar="[TITLE]",
    is_flag=False,
    flag_value=BARE,
    help="Go on with the session of TITLE, or with this terminal's last one.",
)
@click.option("--create-if-missing", is_flag=True, help="With -c TITLE: make the session when there is none.")
@click.option("--in", "directory", metavar="DIR", help="The directory of a new session; else this one.")
@click.option("--source", metavar="LABEL", help="What the session is said to be started from.")
@frozen.declared
@click.option("--list-tools", is_flag=True, help="Print the built-in tools and leave; needs no server.")
@click.option("--list-toolsets", is_flag=True, help="Print their families and leave; needs no server.")
@refused.declared
def chat(**given: object) -> None:
    """Talk with an agent. Starts a server when none runs; leaving stops nothing."""
    if given["list_tools"] or given["list_toolsets"]:
        from hermes_ws.cli.listing import print_tools

        sys.exit(print_tools(families=not given["list_tools"]))
    from hermes_ws.cli.environment import read_environment
    from hermes_ws.cli.sanitise import readable

    for name, value in given.items():
        if isinstance(value, str) and name not in ("query_file", "directory"):
            given[name] = readable(value)
    surroundings = read_environment()
    if given["shape"] != "stream-json":
        sys.exit(_start(given, surroundings))
    from hermes_ws.cli.stream_json import StreamJson

    stream = StreamJson(sys.stdout, str(given["model"]) if given["model"] else None)
    stream.init()
    try:
        status = _start(given, surroundings, stream)
    except click.UsageError as error:
        stream.result(exits.REFUSED, error.format_message())
        raise
    sys.exit(status)


def _start(given: dict[str, object], surroundings: Surroundings, stream: StreamJson | None = None) -> int:
    from hermes_ws.cli.usage_file import UsageFile

    usage = UsageFile(given["usage_file"] if isinstance(given["usage_file"], Path) else None)
    try:
        refused.see_refused(given)
        mode = _mode(given)
        wanted = _wanted(given, surroundings, oneshot=mode.text is not None)
    except click.UsageError as error:
        usage.failed(error.format_message())
        raise
    except click.ClickException as error:
        usage.failed(error.format_message())
        if stream is not None:
            stream.result(exits.FAILED, error.format_message())
        raise
    return _run(mode, wanted, surroundings, stream, usage)


def _mode(given: dict[str, object]) -> Mode:
    texts = {name: given[name] for name in ("query", "query_file", "unattended") if given[name] is not None}
    stream = given["shape"] == "stream-json"
    if len(texts) > 1:
        raise click.UsageError("Give one of -q, --query-file and -z.")
    if given["usage_file"] is not None and given["unattended"] is None:
        raise click.UsageError("--usage-file goes with -z TEXT.")
    if stream and given["query"] is None and given["query_file"] is None:
        raise click.UsageError("--format stream-json goes with -q TEXT or --query-file FILE.")
    if given["quiet"] and not texts and not given["oneshot"]:
        raise click.UsageError("-Q goes with -q TEXT.")
    for name, flag in (("query", "-q"), ("unattended", "-z"), ("profile", "--profile"), ("resume", "--resume"),
                       ("directory", "--in"), ("source", "--source"), ("query_file", "--query-file")):  # fmt: skip
        value = given[name]
        if isinstance(value, str) and not value.strip():
            raise click.UsageError(f"{flag} is blank.")
    if given["create_if_missing"] and not (isinstance(given["continued"], str) and given["continued"].strip()):
        raise click.UsageError("--create-if-missing is unsupported without -c TITLE; add -c TITLE.")
    text = _text(given)
    from hermes_ws.contract.methods.prompts import PROMPT_CHARACTERS

    if text is not None and len(text) > PROMPT_CHARACTERS:
        raise click.UsageError(f"-q takes at most {PROMPT_CHARACTERS} characters.")
    unattended = given["unattended"] is not None
    return Mode(text, quiet=bool(given["quiet"]) or unattended or stream, unattended=unattended)


def _text(given: dict[str, object]) -> str | None:
    """The one prompt, wherever it stands. Raises ClickException for a file that has none."""
    for name in ("query", "unattended"):
        value = given[name]
        if isinstance(value, str):
            return value
    path = given["query_file"]
    if path is None and given["oneshot"]:
        if sys.stdin.isatty():
            raise click.UsageError("--oneshot takes its prompt from -q, --query-file, or a pipe.")
        path = "-"
    if not isinstance(path, str):
        return None
    try:
        if path == "-":
            data = sys.stdin.buffer.read(QUERY_BYTES)
        else:
            with Path(path).open("rb") as file:
                data = file.read(QUERY_BYTES)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise click.ClickException(f"{path} is not UTF-8.") from None
    if not text.strip():
        raise click.ClickException(
            "There is no prompt: standard input is blank." if path == "-" else f"{path} is blank."
        )
    return text


def _wanted(given: dict[str, object], surroundings: Surroundings, *, oneshot: bool) -> Wanted:
    from hermes_ws.cli import breadcrumb
    from hermes_ws.cli.opening import LATEST, Wanted

    profile = given["profile"] if isinstance(given["profile"], str) else None
    resume = given["resume"] if isinstance(given["resume"], str) else None
    continued = given["continued"] if resume is None else None
    terminal = create = None
    if isinstance(continued, str):
        title = continued.strip()
        resume = title or LATEST
        terminal = None if title else breadcrumb.find(surroundings, profile)
        create = title if given["create_if_missing"] else None
    asked = given["directory"]
    new = resume is None or create is not None
    source = given["source"]
    return Wanted(
        profile,
        resume,
        source if isinstance(source, str) else "oneshot" if oneshot else "cli",
        _directory(asked if isinstance(asked, str) else None),
        asked=asked is not None,
        frozen=frozen.take_frozen(given, accept_hooks=surroundings.accept_hooks, new=new),
        terminal=terminal,
        create_title=create,
        source_asked=source is not None,
    )


def _directory(asked: str | None) -> Path:
    try:
        return Path(os.path.realpath(asked)) if asked is not None else Path.cwd()
    except OSError:
        raise click.UsageError("This directory is gone; use --in DIR.") from None


def _run(mode: Mode, wanted: Wanted, surroundings: Surroundings, stream: StreamJson | None, usage: UsageFile) -> int:
    try:
        if mode.text is None:
            return _converse(wanted, surroundings)
        return _say(mode.text, mode, wanted, surroundings, stream, usage)
    except KeyboardInterrupt:
        click.echo(TOO_EARLY, err=True)
        usage.failed(TOO_EARLY)
        if stream is not None:
            stream.result(exits.DETACHED, TOO_EARLY)
        return exits.DETACHED


def _say(
    text: str, mode: Mode, wanted: Wanted, surroundings: Surroundings, stream: StreamJson | None, usage: UsageFile
) -> int:
    from hermes_ws.cli.loading import loading

    with loading():
        import anyio

        from hermes_ws.cli.locating import Where
        from hermes_ws.cli.oneshot import OneShot
        from hermes_ws.cli.screen import Screen
    out = Screen(sys.stdout, surroundings)
    err = Screen(sys.stderr, surroundings, beside=out)
    where = Where(surroundings)
    shot = OneShot(where, wanted, out, err, quiet=mode.quiet, unattended=mode.unattended, stream=stream, usage=usage)
    return anyio.run(shot.run, text, backend=BACKEND)


def _converse(wanted: Wanted, surroundings: Surroundings) -> int:
    from hermes_ws.cli.loading import loading

    with loading():
        import anyio

        from hermes_ws.cli.line_mode import LineMode
        from hermes_ws.cli.locating import Where
        from hermes_ws.cli.screen import Screen
    out = Screen(sys.stdout, surroundings)
    err = Screen(sys.stderr, surroundings, beside=out)
    where = Where(surroundings)
    lines = LineMode(where, wanted, out, err, descriptor=sys.stdin.fileno(), typed_by_hand=sys.stdin.isatty())
    try:
        return anyio.run(lines.run, backend=BACKEND)
    except KeyboardInterrupt:
        return lines.detached()
