"""The store of an open profile, kept in order beside the work: what is old goes, and the room goes back to the disk.

It is one of the reaper's looks. Everything here is done in short commits between those of the work, and nothing that
anybody has open is touched. A home that could not be written is tried again at each look, so that it leaves its
read-only state when the disk has room again, whether or not anybody writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, final

import trio

from hermes_ws.journal import retention
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.database import Database
from hermes_ws.scope.sections import RetentionConfig
from hermes_ws.session.ports import Log
from hermes_ws.session.sessions import Sessions

FIRST_S: Final = 120.0
"""Seconds after opening until the first time: whoever opens a profile wants to work, not to tidy up."""

EVERY_S: Final = 3600.0
"""Seconds between two times. What is counted in days need not be looked at more often."""

BATCH: Final = 100
"""Sessions removed at one time; the next look goes on."""

DAY_S: Final = 86_400.0


@final
class Housekeeping:
    """What is done for one profile's store. `settings` are asked for each time, since they may have been changed."""

    def __init__(
        self,
        journal: Database,
        sessions: Sessions,
        log: Log,
        settings: Callable[[], RetentionConfig],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._journal = journal
        self._sessions = sessions
        self._log = log
        self._settings = settings
        self._clock = clock
        self._next = trio.current_time() + FIRST_S

    async def look(self) -> None:
        """Do what is due. Raises `StorageUnavailable`; what was done until then is done."""
        if self._journal.trouble is not None and not await self._journal.probe():
            return
        if trio.current_time() >= self._next:
            self._next = trio.current_time() + EVERY_S
            await self.tidy()

    async def tidy(self) -> None:
        """Remove what is too old or too much, collect blobs, give free pages back."""
        settings = self._settings()
        if settings.days is not None:
            await self._remove(before=self._clock() - settings.days * DAY_S)
        if settings.bytes is not None:
            await self._shrink(settings.bytes)
        freed = await self._journal.blobs.collect(self._journal.transact)
        if freed:
            self._log.write("info", "retention.blobs", bytes=freed)
        if await self._journal.read(retention.free_pages) >= retention.VACUUM_FROM:
            while await self._journal.transact(retention.vacuum):
                await trio.lowlevel.checkpoint()

    async def _remove(self, before: float | None, most: int = BATCH) -> int:
        found = await self._journal.read(lambda connection: retention.removable(connection, before, BATCH))
        removed = 0
        for session_id in found:
            if removed < most and not self._sessions.in_memory(session_id):
                removed += await self._journal.remove_session(session_id, self._gone(session_id), before)
        if removed:
            self._log.write("info", "retention.removed", sessions=removed)
        return removed

    async def _shrink(self, most: int) -> None:
        for _ in range(BATCH):
            if await self._journal.read(retention.used_bytes) <= most or not await self._remove(None, 1):
                return

    def _gone(self, session_id: str) -> Callable[[tuple[ThreadKey, ...]], None]:
        return lambda keys: self._sessions.removed(session_id, keys)
