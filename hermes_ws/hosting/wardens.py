"""The wardens of one open profile: one per load of the profile and set of directories, started when one is needed.

A session's grants never depend on who else runs: sessions in the home's own home/ share a warden, every other
directory has one of its own. A warden that died is replaced at the next use; one without work ends by itself.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import final

import trio

from hermes_ws.contract.errors import ProfileUnusable, WardenFailed
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.ports import Granted
from hermes_ws.warden.grants import Confinement, Grants, Limits
from hermes_ws.warden.hands import Warden
from hermes_ws.warden.subreaper import Subreaper

LOOKS_PER_IDLE = 4
"""How often a warden is looked at within its idle time: it ends at most a quarter late."""

Key = tuple[int, tuple[Path, ...] | Grants]
"""The load of the profile, and the directories that may be written besides those of the policy; or a client's own."""


@final
class Wardens:
    """All wardens of one runtime. They end with its nursery."""

    def __init__(
        self,
        start_soon: Callable[[Callable[[], Awaitable[object]], str], None],
        subreaper: Subreaper | None,
        *,
        probed: Confinement | None = None,
        path: str = "",
    ) -> None:
        self._start_soon = start_soon
        self._subreaper = subreaper
        self._probed = probed
        self._path = path
        self._running: dict[Key, Granted] = {}
        self._starting: dict[Key, trio.Lock] = {}
        self._confinement: Confinement | None = None
        self._limiter = trio.CapacityLimiter(1)

    @property
    def confinement(self) -> Confinement | None:
        """What the last warden reported of itself; None before there was one."""
        return self._confinement

    @property
    def count(self) -> int:
        """How many are alive."""
        return sum(1 for running in self._running.values() if running.warden.alive)

    async def get(self, scope: ProfileScope, directory: Path) -> Granted:
        """The warden for this load and directory, started when there is none. Callers at the same time share one.

        Raises `WardenFailed`, `ConfinementUnavailable`.
        """
        directories = _directories(scope, directory)
        return await self._get((scope.loaded, directories), scope, grants_of(scope, directories, self._path))

    async def get_for_client(self, scope: ProfileScope, grants: Grants) -> Granted:
        """A warden that runs nothing but the client of a remote backend, with grants of its own. Raises likewise."""
        return await self._get((scope.loaded, grants), scope, grants)

    async def _get(self, key: Key, scope: ProfileScope, grants: Grants) -> Granted:
        running = self._running.get(key)
        if running is not None and running.warden.alive:
            return running
        lock = self._starting.setdefault(key, trio.Lock())
        try:
            async with lock:
                running = self._running.get(key)
                if running is None or not running.warden.alive:
                    running = await self._start(key, scope, grants)
                return running
        finally:
            if not lock.locked():
                self._starting.pop(key, None)

    async def _start(self, key: Key, scope: ProfileScope, grants: Grants) -> Granted:
        if grants.user is not None:
            await in_thread(self._limiter, _hand_over, scope, grants.user)
        # What was found out for the server as a whole is not tried again; a layer that it lacks is not asked for.
        warden = await Warden.start(grants, subreaper=self._subreaper, probed=self._probed)
        self._confinement = warden.confinement
        try:
            self._start_soon(lambda: self._serve(key, warden, scope.config.warden.idle_s), "warden")
        except BaseException:
            with trio.CancelScope(shield=True):
                await warden.close()
            raise
        granted = self._running[key] = Granted(warden, grants)
        return granted

    async def _serve(self, key: Key, warden: Warden, idle_s: float) -> None:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._end_when_idle, warden, idle_s)
                await warden.serve()
                nursery.cancel_scope.cancel()
        except WardenFailed:
            pass  # Whoever waits for an order of it is told; the next order starts another one.
        finally:
            running = self._running.get(key)
            if running is not None and running.warden is warden:
                del self._running[key]

    async def _end_when_idle(self, warden: Warden, idle_s: float) -> None:
        while warden.alive:
            await trio.sleep(idle_s / LOOKS_PER_IDLE)
            if trio.current_time() - warden.idle_since >= idle_s:
                await warden.close()
                return


def grants_of(scope: ProfileScope, directories: tuple[Path, ...], path: str = "") -> Grants:
    """What the policy grants, and these directories to work in. `path` is the PATH of commands: tool directories of
    the user that lie on it are granted, other ones are of no use.

    Raises `ProfileUnusable` for a user who does not exist.
    """
    policy = scope.terminal
    on_path = [Path(entry) for entry in path.split(os.pathsep) if entry.startswith("/")]
    tools = tuple(root for root in policy.toolchains if any(entry.is_relative_to(root) for entry in on_path))
    caches = (policy.user_home / ".cache",) if policy.caches == "shared" else ()
    return Grants(
        read=(*policy.read, *policy.ssh, *tools),
        write=(*directories, *policy.write, *caches),
        network=policy.network,
        confine=policy.confine,
        unix_sockets=policy.unix_sockets,
        limits=Limits(
            memory_bytes=policy.memory_bytes,
            processes=policy.processes,
            open_files=policy.open_files,
            file_bytes=policy.file_bytes,
            cpu_s=policy.cpu_s,
        ),
        user=None if policy.user is None else _number_of(scope, policy.user),
        disk=None if policy.disk_bytes is None else (scope.home.user, policy.disk_bytes),
    )


def _number_of(scope: ProfileScope, name: str) -> tuple[int, int]:
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise ProfileUnusable(
            f"{scope.home.config}: terminal.user: there is no user {name}.", hint="Create it, or name another one."
        ) from None
    if found.pw_uid == 0:
        raise ProfileUnusable(f"{scope.home.config}: terminal.user: {name} is root.", hint="Name another user.")
    return found.pw_uid, found.pw_gid


def _hand_over(scope: ProfileScope, user: tuple[int, int]) -> None:
    """Let the home's own home/ belong to whoever works in it. What is inside is left as it is."""
    for directory in (scope.home.user, scope.home.temporary):
        state = os.stat(directory, follow_symlinks=False)
        if (state.st_uid, state.st_gid) != user:
            os.chown(directory, *user, follow_symlinks=False)


def _directories(scope: ProfileScope, directory: Path) -> tuple[Path, ...]:
    user = scope.home.user
    return (user,) if directory.is_relative_to(user) else (user, directory)
