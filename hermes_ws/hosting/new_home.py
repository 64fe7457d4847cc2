"""A home that does not exist yet: put together under a name that no profile can have, and put up by one rename.

Needs no server: whoever may write to the directory of homes can put one up, also beside a server that serves them.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from hermes_ws.contract.errors import AlreadyExists
from hermes_ws.contract.methods.profile_life import ProfileCreateParams, ProfileMade
from hermes_ws.hosting.git_identity import user_home, write_gitconfig
from hermes_ws.scope import guard
from hermes_ws.scope.config import parse_config
from hermes_ws.scope.home import HomesRoot, ProfileHome
from hermes_ws.scope.identity import Identity, ProfileName, mint_identity
from hermes_ws.scope.private_file import write_private

STAGING: Final = ".staging-"
"""What a home is called that is not there yet. No profile name begins with a dot."""


@final
@dataclass(frozen=True, slots=True)
class Made:
    """A home that was made. `skipped` are what a copy left out: links that lead out of it, sockets, devices."""

    name: ProfileName
    identity: Identity
    skipped: tuple[str, ...] = ()
    off: bool = False


@final
@dataclass(frozen=True, slots=True)
class Seed:
    """What a new home begins with. `user_home` is whose git identity it is given; None for none."""

    config: str = ""
    soul: str = ""
    user_home: Path | None = None


def empty(name: ProfileName, seed: Seed) -> Callable[[ProfileHome], Made]:
    """Fills a home that begins with nothing but its seed."""

    def fill(home: ProfileHome) -> Made:
        home.prepare()
        if seed.config:
            parse_config(seed.config.encode(), home.config)
            write_private(home.config, seed.config.encode())
        if seed.soul:
            write_private(home.soul, seed.soul.encode())
        if seed.user_home is not None:
            write_gitconfig(seed.user_home, home.user)
        return Made(name, mint_identity(home, name))

    return fill


def put_up(root: HomesRoot, name: ProfileName, fill: Callable[[ProfileHome], Made]) -> Made:
    """Make a home, whole or not at all. Raises `AlreadyExists`, and what `fill` raises. Durable when it returns."""
    place = root.place(name)
    if os.path.lexists(place):
        raise AlreadyExists(f"There is a profile {name} already.", profile=name.text)
    root.homes.mkdir(mode=0o700, exist_ok=True)
    staging = ProfileHome(root.homes / f"{STAGING}{secrets.token_hex(6)}")
    with guard.permit(staging), guard.permit(ProfileHome(place)):
        staging.path.mkdir(mode=0o700)
        try:
            made = fill(staging)
            if os.path.lexists(place):
                raise AlreadyExists(f"There is a profile {name} already.", profile=name.text)
            staging.path.rename(place)
        except BaseException:
            shutil.rmtree(staging.path, ignore_errors=True)
            raise
        sync(root.homes)
        return made


def sync(path: Path) -> None:
    """See that what was put into this directory stays there."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def seed_of(params: ProfileCreateParams) -> Seed:
    """What was asked for, as what a new home begins with."""
    lines = [
        f"  {key}: {json.dumps(value)}\n"
        for key, value in (("provider", params.provider), ("name", params.model))
        if value
    ]
    return Seed(
        config="model:\n" + "".join(lines) if lines else "",
        soul=params.soul or "",
        user_home=user_home() if params.git_identity else None,
    )


def receipt(made: Made, root: HomesRoot) -> ProfileMade:
    """What is answered to who asked for it; with `report`, which is said to a person."""
    home = ProfileHome(root.place(made.name)).path
    told = [f"The profile {made.name} is made: {home}", *(f"left out: {path}" for path in made.skipped)]
    if made.off:
        told.append("What it would start by itself is off until it is confirmed (profiles.confirm).")
    return ProfileMade(
        id=made.identity.id,
        name=made.name.text,
        home=str(home),
        skipped=list(made.skipped),
        confirm=made.off,
        report=told,
    )
