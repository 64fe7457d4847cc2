"""The life of a profile: made, cloned, renamed, deleted, taken out and brought in, while all others are served.

A new home is put together under a name that no profile can have and appears by one rename, whole or not at all (case
PLIFE-07). What changes or removes a home first closes its runtime and waits until nothing of it lives, so nothing is
left that could make it again (cases PLIFE-01, PLIFE-04, PLIFE-06); who asks for the profile meanwhile waits. A deleted
home is renamed away before it is removed; what a crash leaves of either is cleared at the next start.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final, Protocol, TypeVar, final

import orjson
import trio

from hermes_ws.contract.errors import AlreadyExists, InvalidParams, PermissionDenied, ProfileUnusable
from hermes_ws.contract.methods.profile_life import Part
from hermes_ws.hosting import archive
from hermes_ws.hosting.new_home import STAGING, Made, Seed, empty, put_up, sync
from hermes_ws.hosting.profile_copy import Copied, Renaming, copy_database, copy_part, move_sessions, move_settings
from hermes_ws.hosting.server_store import ServerStore
from hermes_ws.journal.lock import OwnerLock
from hermes_ws.scope import guard
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.home import HomesRoot, ProfileHome
from hermes_ws.scope.identity import Identity, ProfileName, mint_identity, read_identity, rename_identity
from hermes_ws.scope.private_file import write_private

T = TypeVar("T")

DELETED: Final = ".deleted-"
"""What a home is called that is not there any more. No profile name begins with a dot."""

EXPORTS: Final = "exports"
"""Where archives are written, below `state/` of the launch home."""


class Ground(Protocol):
    """What this needs of the host."""

    @property
    def root(self) -> HomesRoot: ...
    @property
    def launch(self) -> ProfileName: ...

    def closed(self, name: ProfileName, wait_s: float) -> AbstractAsyncContextManager[None]:
        """The profile, closed for the length of a block."""
        ...

    def changed(self, name: ProfileName, *, gone: bool) -> None:
        """Tell those who want to know that a profile came, changed or is gone."""
        ...


@final
class ProfileLife:
    """One change at a time; each returns when it is durable."""

    def __init__(self, ground: Ground, store: ServerStore, limiter: trio.CapacityLimiter) -> None:
        self._ground = ground
        self._store = store
        self._limiter = limiter
        self._one = trio.Lock()

    # --- coming ------------------------------------------------------------------------------------------------------

    async def create(self, name: ProfileName, seed: Seed) -> Made:
        """Make an empty home. Raises `AlreadyExists`, `InvalidParams`, `ProfileUnusable`."""

        return await self._make(name, empty(name, seed))

    async def clone(self, source: ProfileName, name: ProfileName, parts: Sequence[Part]) -> Made:
        """Make a home with these parts of another, which may be in use; it gets an identity of its own."""
        original = self._ground.root.find(source)

        def fill(home: ProfileHome) -> Made:
            home.prepare()
            copied = Copied()
            with guard.permit(original):
                old = read_identity(original)
                identity = mint_identity(home, name)
                for part in parts:
                    copy_part(original, home, part, copied)
                place = self._ground.root.place(name)
                move_settings(home, original.path, place)
                if "sessions" in parts and old is not None:
                    copy_database(original.database, home.database, _renaming(old, identity, original.user, place))
            return Made(name, identity, tuple(copied.skipped))

        return await self._make(name, fill)

    async def bring_in(self, path: Path, name: ProfileName, passphrase: str | None, *, take_secrets: bool) -> Made:
        """Make a home from an archive. What it would start by itself is off until it is confirmed.

        It keeps its identity if that is nobody's here, so that its sessions keep their ids. Raises `AlreadyExists`,
        `InvalidParams`, `NotFound`, `LimitReached`.
        """
        taken = await self._origins()
        launch = self._ground.root.find(self._ground.launch)

        def fill(home: ProfileHome) -> Made:
            with guard.permit(launch):
                said = archive.read(path, home, passphrase, secrets=take_secrets)
            home.prepare()
            identity = mint_identity(home, name)
            old = Identity(id=said.id, origin=said.origin, name=said.profile, created_at=identity.created_at)
            if old.origin not in taken:
                identity = rename_identity(home, old, name)
            if home.database.exists():
                foreign = home.database.with_name("imported.db")
                home.database.rename(foreign)
                copy_database(
                    foreign, home.database, _renaming(old, identity, Path(said.user), self._ground.root.place(name))
                )
                foreign.unlink()
            move_settings(home, Path(said.user).parent, self._ground.root.place(name))
            write_private(home.imported, orjson.dumps({"imported_at": time.time(), "profile": said.profile}))
            return Made(name, identity, off=True)

        return await self._make(name, fill)

    async def _make(self, name: ProfileName, fill: Callable[[ProfileHome], Made]) -> Made:
        async with self._one:
            made = await in_thread(self._limiter, put_up, self._ground.root, name, fill)
        self._ground.changed(name, gone=False)
        return made

    # --- changing ----------------------------------------------------------------------------------------------------

    async def rename(self, old: ProfileName, new: ProfileName, wait_s: float) -> None:
        """Give a profile another name; its identity and its sessions' ids stay. What runs in it gets `wait_s` seconds.

        Raises `PermissionDenied` for the launch profile, `AlreadyExists`, `ProfileUnknown`, `ProfileUnusable`.
        """
        home = self._changeable(old)
        place = self._ground.root.place(new)

        def move() -> None:
            goal = ProfileHome(place)
            with guard.permit(home), guard.permit(goal), guard.permit(ProfileHome(self._ground.root.place(old))):
                if os.path.lexists(place):
                    raise AlreadyExists(f"There is a profile {new} already.", profile=new.text)
                lock = OwnerLock.take(home.lock)
                try:
                    self._ground.root.place(old).rename(place)
                    sync(self._ground.root.homes)
                    identity = read_identity(goal)
                    if identity is not None:
                        rename_identity(goal, identity, new)
                    move_sessions(goal.database, home.user, goal.user)
                    move_settings(goal, home.path, goal.path)
                finally:
                    lock.release()

        async with self._one, self._ground.closed(old, wait_s):
            self._ground.root.find(old)
            await in_thread(self._limiter, move)
        self._ground.changed(old, gone=True)
        self._ground.changed(new, gone=False)

    async def delete(self, name: ProfileName, wait_s: float) -> None:
        """Remove a profile and all that is in it. What runs in it gets `wait_s` seconds. There is no way back.

        Raises `PermissionDenied` for the launch profile, `ProfileUnknown`, `ProfileUnusable`.
        """
        home = self._changeable(name)

        def bury() -> tuple[Path, Identity | None]:
            place = self._ground.root.place(name)
            grave = self._ground.root.homes / f"{DELETED}{name}-{secrets.token_hex(6)}"
            with guard.permit(home), guard.permit(ProfileHome(place)), guard.permit(ProfileHome(grave)):
                lock = OwnerLock.take(home.lock)
                try:
                    identity = read_identity(home)
                except ProfileUnusable:
                    identity = None
                try:
                    place.rename(grave)
                    sync(self._ground.root.homes)
                finally:
                    lock.release()
                return grave, identity

        async with self._one, self._ground.closed(name, wait_s):
            self._ground.root.find(name)
            grave, identity = await in_thread(self._limiter, bury)
            if identity is not None:
                await self._store.forget(identity.origin)
        self._ground.changed(name, gone=True)
        await in_thread(self._limiter, _remove, grave)

    async def adopt(self, name: ProfileName) -> Made:
        """Give a home that was copied by hand an identity of its own, and its sessions ids to match."""
        home = self._ground.root.find(name)
        if name == self._ground.launch:
            raise PermissionDenied("The launch profile has its identity; adopt the copy.", profile=name.text)

        def adopt() -> Made:
            with guard.permit(home):
                lock = OwnerLock.take(home.lock)
                try:
                    old = read_identity(home)
                    identity = mint_identity(home, name)
                    if old is not None and home.database.exists():
                        beside = home.database.with_name("adopted.db")
                        beside.unlink(missing_ok=True)
                        copy_database(home.database, beside, _renaming(old, identity, home.user, home.path))
                        for rest in ("-wal", "-shm"):
                            home.database.with_name(home.database.name + rest).unlink(missing_ok=True)
                        beside.replace(home.database)
                    return Made(name, identity)
                finally:
                    lock.release()

        async with self._one, self._ground.closed(name, 0):
            made = await in_thread(self._limiter, adopt)
        self._ground.changed(name, gone=False)
        return made

    async def confirm(self, name: ProfileName) -> bool:
        """Switch on what an imported home starts by itself; false when nothing was off."""
        home = self._ground.root.find(name)

        def confirm() -> bool:
            with guard.permit(home):
                there = home.imported.exists()
                home.imported.unlink(missing_ok=True)
                return there

        async with self._one:
            confirmed = await in_thread(self._limiter, confirm)
        self._ground.changed(name, gone=False)
        return confirmed

    # --- going out ---------------------------------------------------------------------------------------------------

    async def take_out(self, name: ProfileName, parts: Sequence[Part], passphrase: str | None) -> archive.Written:
        """Write a profile, which may be in use, into an archive in the launch home.

        Raises `InvalidParams` for secrets without a passphrase, `ProfileUnusable`, `LimitReached`.
        """
        if "secrets" in parts and passphrase is None:
            raise InvalidParams("Secrets leave only sealed; give a passphrase.", path="passphrase")
        home = self._ground.root.find(name)
        launch = self._ground.root.find(self._ground.launch)

        def take_out() -> archive.Written:
            exports = launch.state / EXPORTS
            staged = ProfileHome(exports / f"{STAGING}{secrets.token_hex(6)}")
            goal = exports / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}.hermes"
            with guard.permit(home), guard.permit(launch):
                exports.mkdir(mode=0o700, exist_ok=True)
                staged.path.mkdir(mode=0o700)
                try:
                    identity = read_identity(home) or mint_identity(home, name)
                    copied = Copied()
                    for part in parts:
                        copy_part(home, staged, part, copied)
                    if "sessions" in parts:
                        copy_database(
                            home.database, staged.database, _renaming(identity, identity, home.user, home.path)
                        )
                    return archive.write(staged, identity, str(home.user), parts, goal, passphrase, copied.skipped)
                except BaseException:
                    goal.unlink(missing_ok=True)
                    raise
                finally:
                    shutil.rmtree(staged.path, ignore_errors=True)

        async with self._one:
            return await in_thread(self._limiter, take_out)

    # --- within ------------------------------------------------------------------------------------------------------

    async def clear_leftovers(self) -> None:
        """Remove what a crash left of homes that were being made or deleted. A task of the host."""
        async with self._one:  # What is being made now is no leftover.
            await in_thread(self._limiter, self._clear)

    def _clear(self) -> None:
        launch = self._ground.root.find(self._ground.launch)
        with guard.permit(launch):
            for place in (self._ground.root.homes, launch.state / EXPORTS):
                for name in os.listdir(place) if place.is_dir() else ():
                    if name.startswith((STAGING, DELETED)):
                        _remove(place / name)

    async def _origins(self) -> frozenset[str]:
        return frozenset(origin for origin, _ in await self._store.origins())

    def _changeable(self, name: ProfileName) -> ProfileHome:
        own = self._ground.root.resolve(name)
        home = self._ground.root.find(own)
        if own == self._ground.launch:
            raise PermissionDenied(
                f"{own} is the profile that this server was launched for; it stays as it is while the server runs.",
                hint="Start the server for another profile, and try again there.",
                profile=own.text,
            )
        self._ground.root.place(own)
        return home


def _renaming(old: Identity, new: Identity, old_user: Path, new_home: Path) -> Renaming:
    return Renaming(old.origin, new.origin, str(old_user), str(ProfileHome(new_home).user))


def _remove(path: Path) -> None:
    """Remove what no profile is called any more. What resists is tried again at the next start."""
    with guard.permit(ProfileHome(path)), guard.permit(ProfileHome(Path(os.path.realpath(path)))):
        if path.is_symlink():
            path.unlink(missing_ok=True)  # What the link led to is not ours to remove.
        else:
            shutil.rmtree(path, ignore_errors=True)
