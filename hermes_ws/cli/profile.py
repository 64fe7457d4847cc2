"""`hermes-ws profile`: making, changing and removing profiles."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO, cast

import click

if TYPE_CHECKING:
    from hermes_ws.cli.asking import Caller
    from hermes_ws.contract.methods.profile_life import ProfileMade
    from hermes_ws.contract.model import Params, Result
    from hermes_ws.contract.registry import Method

PARTS = ("config", "soul", "agents", "skills", "memory", "files", "secrets", "sessions")

LEAST_PASSPHRASE = 12
"""Characters, as the server wants them."""

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
include = click.option("--include", metavar="PART,...", help=f"Of {', '.join(PARTS)}.")


@click.group(
    epilog="""\b
Examples:
  hermes-ws profile create work --model gpt-5 --provider openai
  hermes-ws profile clone work play --include config,skills
  hermes-ws profile list --json | jq -r '.profiles[].name'
\b
A server that runs does it; where none runs, this command does."""
)
def profile() -> None:
    """Make, change and remove profiles."""


@profile.command("list", epilog="\b\nExamples:\n  hermes-ws profile list")
@as_json
def list_(as_json: bool) -> None:
    """Show the profiles there are."""
    from hermes_ws.cli.reporting import profile_line
    from hermes_ws.contract.methods.profiles import PROFILES_LIST
    from hermes_ws.contract.model import Empty

    def show(answer: Result, line: Callable[[str], None]) -> None:
        from hermes_ws.contract.methods.profiles import ProfileList

        assert isinstance(answer, ProfileList)
        for row in answer.profiles:
            line(profile_line(row, answer.launch))

    _do(PROFILES_LIST, lambda: Empty(), show, as_json=as_json)


@profile.command(epilog="\b\nExamples:\n  hermes-ws profile create work")
@click.argument("name")
@click.option("--soul", metavar="TEXT", help="Its instructions.")
@click.option("--provider", metavar="NAME")
@click.option("-m", "--model", metavar="NAME")
@as_json
def create(name: str, soul: str | None, provider: str | None, model: str | None, as_json: bool) -> None:
    """Make a profile."""
    from hermes_ws.contract.methods.profile_life import PROFILES_CREATE, ProfileCreateParams

    given = _given(name=name, soul=soul, provider=provider, model=model)
    _do(PROFILES_CREATE, lambda: ProfileCreateParams.model_validate(given), _show_made, as_json=as_json)


@profile.command(epilog="\b\nExamples:\n  hermes-ws profile clone work play --include config,soul,skills")
@click.argument("source")
@click.argument("name")
@include
@as_json
def clone(source: str, name: str, include: str | None, as_json: bool) -> None:
    """Make a profile NAME with parts of the profile SOURCE."""
    from hermes_ws.contract.methods.profile_life import PROFILES_CLONE, ProfileCloneParams

    given = _given(profile=source, name=name, include=_parts(include))
    _do(PROFILES_CLONE, lambda: ProfileCloneParams.model_validate(given), _show_made, as_json=as_json)


@profile.command(epilog="\b\nExamples:\n  hermes-ws profile describe work --json")
@click.argument("name")
@as_json
def describe(name: str, as_json: bool) -> None:
    """Show what a profile is and has."""
    from hermes_ws.contract.methods.profiles import PROFILES_DESCRIBE, ProfileParams

    _do(PROFILES_DESCRIBE, lambda: ProfileParams(profile=name), _show_fields, as_json=as_json)


@profile.command(epilog="\b\nExamples:\n  hermes-ws profile configure work --model gpt-5")
@click.argument("name")
@click.option("--soul", metavar="TEXT", help="Its instructions.")
@click.option("--provider", metavar="NAME")
@click.option("-m", "--model", metavar="NAME")
@as_json
def configure(name: str, soul: str | None, provider: str | None, model: str | None, as_json: bool) -> None:
    """Change a profile's model and instructions."""
    from hermes_ws.contract.methods.profile_life import PROFILES_CONFIGURE, ProfileConfigureParams

    given = _given(profile=name, soul=soul, provider=provider, model=model)
    _do(PROFILES_CONFIGURE, lambda: ProfileConfigureParams.model_validate(given), _show_fields, as_json=as_json)


@profile.command(epilog="\b\nExamples:\n  hermes-ws profile rename work office")
@click.argument("old")
@click.argument("new")
@as_json
def rename(old: str, new: str, as_json: bool) -> None:
    """Give a profile another name; its sessions stay."""
    from hermes_ws.contract.methods.profile_life import PROFILES_RENAME, ProfileRenameParams

    _do(PROFILES_RENAME, lambda: ProfileRenameParams(profile=old, name=new), _show_fields, as_json=as_json)


@profile.command(epilog="\b\nExamples:\n  hermes-ws profile delete play --yes")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
def delete(name: str, yes: bool, as_json: bool) -> None:
    """Remove a profile with all that is in it, for good."""
    from hermes_ws.contract.methods.profile_life import PROFILES_DELETE, ProfileDeleteParams

    agree(f"Remove the profile {name} with all its sessions, for good?", yes=yes)
    _do(PROFILES_DELETE, lambda: ProfileDeleteParams(profile=name, confirm=name), _show_fields, as_json=as_json)


@profile.command(epilog="\b\nExamples:\n  hermes-ws profile adopt copied")
@click.argument("name")
@as_json
def adopt(name: str, as_json: bool) -> None:
    """Give a home that was copied by hand an identity of its own."""
    from hermes_ws.contract.methods.profile_life import PROFILES_ADOPT, ProfileNameParams

    _do(PROFILES_ADOPT, lambda: ProfileNameParams(profile=name), _show_made, as_json=as_json)


@profile.command(epilog="\b\nExamples:\n  hermes-ws profile export work --include config,skills,sessions")
@click.argument("name")
@include
@click.option("--passphrase-file", metavar="FILE", type=click.File(), help="Seals secrets; its first line.")
@as_json
def export(name: str, include: str | None, passphrase_file: TextIO | None, as_json: bool) -> None:
    """Write a profile into one file on the server's machine."""
    from hermes_ws.contract.methods.profile_life import PROFILES_EXPORT, ProfileExportParams

    given = _given(profile=name, include=_parts(include), passphrase=_passphrase(passphrase_file))
    _do(PROFILES_EXPORT, lambda: ProfileExportParams.model_validate(given), _show_fields, as_json=as_json)


@profile.command("import", epilog="\b\nExamples:\n  hermes-ws profile import work.tar.gz office")
@click.argument("archive")
@click.argument("name")
@click.option("--secrets", is_flag=True, help="Take the secrets in it as well.")
@click.option("--passphrase-file", metavar="FILE", type=click.File(), help="Opens secrets; its first line.")
@as_json
def import_(archive: str, name: str, secrets: bool, passphrase_file: TextIO | None, as_json: bool) -> None:
    """Make a profile NAME of an ARCHIVE. What it would start by itself is off at first."""
    import os

    from hermes_ws.contract.methods.profile_life import PROFILES_IMPORT, ProfileImportParams

    path = os.path.abspath(archive)
    given = _given(path=path, name=name, passphrase=_passphrase(passphrase_file), secrets=secrets or None)
    _do(PROFILES_IMPORT, lambda: ProfileImportParams.model_validate(given), _show_made, as_json=as_json)


def agree(question: str, *, yes: bool) -> None:
    """Ask a person, unless they said yes before. Without one at the terminal it is refused."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("Nobody is at the terminal to agree; say --yes.")
    if not click.confirm(question, err=True):
        sys.exit(1)


def _do(
    method: Method[Params, Result] | object,
    build: Callable[[], Params],
    show: Callable[[Result, Callable[[str], None]], None],
    *,
    as_json: bool,
) -> None:
    from hermes_ws.cli.asking import PATIENCE, run
    from hermes_ws.cli.screen import Screen

    known = cast("Method[Params, Result]", method)

    async def ask(caller: Caller, profile: str | None) -> Result:
        return await caller.call(known, build(), deadline_s=PATIENCE)

    def shown(answer: Result, out: Screen) -> None:
        show(answer, out.line)

    sys.exit(run(ask, shown, as_json=as_json, by_itself=True))


def _show_made(answer: Result, line: Callable[[str], None]) -> None:
    from hermes_ws.cli.sanitise import harmless

    made = cast("ProfileMade", answer)
    line(f"{harmless(made.name)}: {harmless(made.home)}")
    for path in made.skipped:
        line(f"left out: {harmless(path)}")
    if made.confirm:
        line("What it would start by itself is off until it is confirmed.")


def _show_fields(answer: Result, line: Callable[[str], None]) -> None:
    from hermes_ws.cli.sanitise import harmless

    for name, value in answer.model_dump(mode="json").items():
        if value not in (None, [], {}):
            line(harmless(f"{name}: {_listed(value)}"))


def _listed(value: object) -> str:
    return ", ".join(str(each) for each in cast("list[object]", value)) if isinstance(value, list) else str(value)


def _given(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _parts(text: str | None) -> list[str] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [part for part in parts if part not in PARTS]
    if unknown or not parts:
        raise click.UsageError(f"--include takes parts of {', '.join(PARTS)}.")
    return parts


def _passphrase(file: TextIO | None) -> str | None:
    if file is None:
        return None
    first = file.readline().rstrip("\r\n")
    if len(first) < LEAST_PASSPHRASE:
        raise click.UsageError(f"The passphrase has at least {LEAST_PASSPHRASE} characters.")
    return first
