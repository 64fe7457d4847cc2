"""The wardens of one open profile: one per load of the profile and set of directories, started when one is needed.

A session's grants never depend on who else runs: sessions in the home's own home/ share a warden, every other
directory has one of its own. A warden that died is replaced at the next use; one without work ends by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import final

import trio

from hermes_ws.contract.errors import WardenFailed
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.ports import Granted
from hermes_ws.warden.grants import Confinement, Grants, Limits
from hermes_ws.warden.hands import Warden
from hermes_ws.warden.subreaper import Subreaper

LOOKS_PER_IDLE = 4
"""How often a warden is looked at within its idle time: it ends at most a quarter late."""

Key = tuple[int, tuple[Path, ...]]
"""The load of the profile, and the directories that may be written besides those of the policy."""


@final
class Wardens:
    """All wardens of one runtime. They end with its nursery."""

    def __init__(
        self, start_soon: Callable[[Callable[[], Awaitable[object]], str], None], subreaper: Subreaper | None
    ) -> None:
        self._start_soon = start_soon
        self._subreaper = subreaper
        self._running: dict[Key, Granted] = {}
        self._starting: dict[Key, trio.Lock] = {}
        self._confinement: Confinement | None = None

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
        key = (scope.loaded, _directories(scope, directory))
        running = self._running.get(key)
        if running is not None and running.warden.alive:
            return running
        lock = self._starting.setdefault(key, trio.Lock())
        try:
            async with lock:
                running = self._running.get(key)
                if running is None or not running.warden.alive:
                    running = await self._start(key, scope)
                return running
        finally:
            if not lock.locked():
                self._starting.pop(key, None)

    async def _start(self, key: Key, scope: ProfileScope) -> Granted:
        grants = grants_of(scope, key[1])
        warden = await Warden.start(grants, subreaper=self._subreaper)
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


def grants_of(scope: ProfileScope, directories: tuple[Path, ...]) -> Grants:
    """What the policy grants, and these directories to work in."""
    policy = scope.terminal
    return Grants(
        read=policy.read,
        write=(*directories, *policy.write),
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
    )


def _directories(scope: ProfileScope, directory: Path) -> tuple[Path, ...]:
    user = scope.home.user
    return (user,) if directory.is_relative_to(user) else (user, directory)
