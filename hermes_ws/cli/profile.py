"""`hermes-ws profile`: making, changing and removing profiles."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

import click

if TYPE_CHECKING:
    from hermes_ws.cli.asking import Caller
    from hermes_ws.cli.environment import Surroundings
    from hermes_ws.contract.methods.profile_life import (
        ProfileConfirmed,
        ProfileCreateParams,
        ProfileDeleted,
        ProfileMade,
        ProfileRenamed,
    )
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
    _do(
        PROFILES_CREATE,
        partial(ProfileCreateParams.model_validate, given),
        _show_made,
        as_json=as_json,
        here=lambda root: _create_here(root, ProfileCreateParams.model_validate(given)),
        after=_with_command,
    )


@profile.command(epilog="\b\nExamples:\n  hermes-ws profile clone work play --include config,soul,skills")
@click.argument("source")
@click.argument("name")
@include
@as_json
def clone(source: str, name: str, include: str | None, as_json: bool) -> None:
    """Make a profile NAME with parts of the profile SOURCE."""
    from hermes_ws.contract.methods.profile_life import PROFILES_CLONE, ProfileCloneParams

    given = _given(profile=source, name=name, include=_parts(include))
    build = partial(ProfileCloneParams.model_validate, given)
    _do(PROFILES_CLONE, build, _show_made, as_json=as_json, after=_with_command)


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

    home = _home_here(old)
    build = partial(ProfileRenameParams, profile=old, name=new)
    _do(PROFILES_RENAME, build, _show_fields, as_json=as_json, after=partial(_moved_command, old, home))


@profile.command(epilog="\b\nExamples:\n  hermes-ws profile delete play --yes")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
def delete(name: str, yes: bool, as_json: bool) -> None:
    """Remove a profile with all that is in it, for good."""
    from hermes_ws.contract.methods.profile_life import PROFILES_DELETE, ProfileDeleteParams

    agree(f"Remove the profile {name} with all its sessions, for good?", yes=yes)
    home = _home_here(name)
    build = partial(ProfileDeleteParams, profile=name, confirm=name)
    _do(PROFILES_DELETE, build, _show_deleted, as_json=as_json, after=partial(_gone_command, name, home))


@profile.command(epilog="\b\nExamples:\n  hermes-ws profile adopt copied")
@click.argument("name")
@as_json
def adopt(name: str, as_json: bool) -> None:
    """Give a home that was copied by hand an identity of its own."""
    from hermes_ws.contract.methods.profile_life import PROFILES_ADOPT, ProfileNameParams

    _do(PROFILES_ADOPT, lambda: ProfileNameParams(profile=name), _show_made, as_json=as_json)


@profile.command(epilog="\b\nExamples:\n  hermes-ws profile confirm office")
@click.argument("name")
@as_json
def confirm(name: str, as_json: bool) -> None:
    """Let an imported profile start by itself what it would: schedules, hooks, tool servers."""
    from hermes_ws.contract.methods.profile_life import PROFILES_CONFIRM, ProfileNameParams

    _do(PROFILES_CONFIRM, partial(ProfileNameParams, profile=name), _show_confirmed, as_json=as_json)


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
    build = partial(ProfileImportParams.model_validate, given)
    _do(PROFILES_IMPORT, build, _show_made, as_json=as_json, after=_with_command)


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
    here: Callable[[Path], Result] | None = None,
    after: Callable[[Result, Surroundings], list[str]] | None = None,
) -> None:
    from hermes_ws.cli.asking import PATIENCE, run
    from hermes_ws.cli.screen import Screen

    known = cast("Method[Params, Result]", method)

    async def ask(caller: Caller, profile: str | None) -> Result:
        from hermes_ws.client.failures import OutcomeUnknown, ReplyRefused

        try:
            return await caller.call(known, build(), deadline_s=PATIENCE)
        except ReplyRefused as error:
            # It was carried out or not: an answer that does not say all of it proves neither. Nothing is sent again.
            unknown = OutcomeUnknown(known.name, error.message.rstrip("."))
            unknown.hint = "hermes-ws profile list shows what is there."
            raise unknown from None

    def shown(answer: Result, out: Screen) -> None:
        show(answer, out.line)

    sys.exit(run(ask, shown, as_json=as_json, by_itself=True, here=here, after=after))


def _show_made(answer: Result, line: Callable[[str], None]) -> None:
    from hermes_ws.cli.locating import as_typed
    from hermes_ws.cli.sanitise import harmless

    made = cast("ProfileMade", answer)
    for told in made.report or [f"{made.name}: {made.home}"]:
        line(harmless(as_typed(told)))


def _show_confirmed(answer: Result, line: Callable[[str], None]) -> None:
    done = cast("ProfileConfirmed", answer).confirmed
    line("Confirmed: what it starts by itself is on." if done else "Nothing had been off.")


def _create_here(root: Path, params: ProfileCreateParams) -> ProfileMade:
    """Make it in this process, beside a server that is too old to: it appears by one rename. Raises HermesError."""
    from hermes_ws.hosting.new_home import empty, put_up, receipt, seed_of
    from hermes_ws.scope.home import HomesRoot
    from hermes_ws.scope.identity import ProfileName

    homes = HomesRoot.classic(root)
    name = ProfileName.parse(params.name)
    return receipt(put_up(homes, name, empty(name, seed_of(params))), homes)


def _with_command(answer: Result, surroundings: Surroundings) -> list[str]:
    """The command of a profile that was made, where the profile is one of this machine."""
    from hermes_ws.cli import wrapper

    made = cast("ProfileMade", answer)
    home = wrapper.selected(surroundings, made.name, made.id)
    return wrapper.write(surroundings, made.name, home) if home is not None else []


def _home_here(name: str) -> Path | None:
    from hermes_ws.cli import wrapper
    from hermes_ws.cli.environment import read_environment

    return wrapper.home_of(read_environment(), name)


def _gone_command(name: str, home: Path | None, answer: Result, surroundings: Surroundings) -> list[str]:
    """Nothing is left of a home, so its command goes as well."""
    from hermes_ws.cli import wrapper

    return wrapper.remove(surroundings, name, home) if home is not None and not home.exists() else []


def _moved_command(old: str, home: Path | None, answer: Result, surroundings: Surroundings) -> list[str]:
    """The command follows its home, where it had one."""
    from hermes_ws.cli import wrapper

    told = _gone_command(old, home, answer, surroundings)
    moved = cast("ProfileRenamed", answer)
    place = wrapper.selected(surroundings, moved.name, moved.id) if told else None
    return [*told, *(wrapper.write(surroundings, moved.name, place) if place is not None else [])]


def _show_deleted(answer: Result, line: Callable[[str], None]) -> None:
    from hermes_ws.cli.sanitise import harmless

    line(f"The profile {harmless(cast('ProfileDeleted', answer).name)} is removed, with all that was in it.")


def _show_fields(answer: Result, line: Callable[[str], None]) -> None:
    from hermes_ws.cli.sanitise import harmless

    for name, value in answer.model_dump(mode="json").items():
        if isinstance(value, dict):
            line(harmless(f"{name}:"))
            for key, held in cast("dict[str, object]", value).items():
                line(harmless(f"  {key}: {_listed(held)}"))
        elif value not in (None, []):
            line(harmless(f"{name}: {_listed(value)}"))


def _listed(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_listed(each) for each in cast("list[object]", value)) or "-"
    return "-" if value is None else ("no", "yes")[value] if isinstance(value, bool) else str(value)


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
