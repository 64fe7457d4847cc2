"""The command of a profile: `~/.local/bin/NAME` is `hermes-ws -p NAME`.

Only this command line writes it, never a server, and only for the home that `-p NAME` selects here. Nothing that is not
ours is overwritten, and no command that is there already is hidden behind it.
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from hermes_ws.cli.environment import HOME_NAME, Surroundings
from hermes_ws.client.ensure import places
from hermes_ws.contract.errors import HermesError
from hermes_ws.scope.home import HomesRoot, ProfileHome
from hermes_ws.scope.identity import ProfileName, read_identity

MARK: Final = "# The command of the hermes-ws profile "
"""How the second line of a wrapper begins; the home that it is for follows."""

READ_BYTES: Final = 4096
"""A wrapper is much shorter."""


def selected(surroundings: Surroundings, name: str, profile_id: str) -> Path | None:
    """The home that `-p NAME` selects here, if it is the profile of this id.

    The path alone proves nothing: a server in a container or at the other end of a tunnel has paths of its own.
    """
    home = home_of(surroundings, name)
    try:
        identity = read_identity(ProfileHome(home)) if home is not None else None
    except (HermesError, OSError):
        return None
    return home if identity is not None and identity.id == profile_id else None


def home_of(surroundings: Surroundings, name: str) -> Path | None:
    """The home that `-p NAME` selects here, whoever's it is."""
    try:
        return HomesRoot.classic(places(surroundings.home)[0][0]).find(ProfileName.parse(name)).path
    except HermesError:
        return None


def write(surroundings: Surroundings, name: str, home: Path) -> list[str]:
    """Write the command for this home, and give what is to be said of it."""
    place = _place(surroundings, name)
    if place is None:
        return []
    instead = f"hermes-ws -p {name} does the same."
    searched = surroundings.environ.get("PATH", "")
    there = os.path.lexists(place)
    if there:
        if _home_of(place) != str(home):
            return [f"{place} is there already and not of this profile; it was left as it is. {instead}"]
    elif (other := shutil.which(name, path=searched)) is not None:
        return [f"There is a command {name} already ({other}), so none was made for the profile. {instead}"]
    try:
        _put(place, _script(surroundings, name, home), again=there)
    except FileExistsError:
        return [f"{place} came about meanwhile; it was left as it is. {instead}"]
    except OSError as error:
        return [f"No command was made for the profile: {place}: {error.strerror}. {instead}"]
    told = [f"Its command: {name} ({place})"]
    if str(place.parent) not in searched.split(os.pathsep):
        told.append(f"{place.parent} is not in your PATH yet; until it is, {instead}")
    return told


def remove(surroundings: Surroundings, name: str, home: Path) -> list[str]:
    """Remove the command of a home that is gone, if it is ours."""
    place = _place(surroundings, name)
    if place is None or _home_of(place) != str(home):
        return []
    try:
        place.unlink()
    except OSError as error:
        return [f"{place} could not be removed: {error.strerror}."]
    return [f"Its command {place} is removed."]


def _place(surroundings: Surroundings, name: str) -> Path | None:
    user = surroundings.environ.get("HOME", "")
    return Path(user) / ".local" / "bin" / name if user else None


def _home_of(place: Path) -> str | None:
    """The home of a wrapper of ours; None for anything else, links included."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            lines = file.read(READ_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    return lines[1].removeprefix(MARK) if len(lines) > 1 and lines[1].startswith(MARK) else None


def _script(surroundings: Surroundings, name: str, home: Path) -> str:
    command = Path(sys.executable).with_name("hermes-ws")
    program = (str(command),) if command.exists() else (sys.executable, "-P", "-m", "hermes_ws.cli.main")
    said = surroundings.environ.get(HOME_NAME)
    root = places(surroundings.home)[0][0]
    setting = f"{HOME_NAME}={shlex.quote(str(root))} " if said else ""
    return f'#!/bin/sh\n{MARK}{home}\n{setting}exec {shlex.join(program)} -p {shlex.quote(name)} "$@"\n'


def _put(place: Path, text: str, *, again: bool) -> None:
    """Whole or not at all. Raises FileExistsError where something else came first, OSError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o755), "w") as file:
            file.write(text)
        if again:
            fresh.replace(place)  # it was seen to be of this profile
        else:
            os.link(fresh, place)
    finally:
        fresh.unlink(missing_ok=True)
