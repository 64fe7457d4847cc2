"""The audit log of an open profile: deeds are noted at once, and written together behind what they are about."""

from __future__ import annotations

from collections import deque
from typing import Final, final

import trio

from hermes_ws.contract.errors import HermesError
from hermes_ws.journal import audit
from hermes_ws.journal.audit import Deed
from hermes_ws.journal.database import Database, Transaction
from hermes_ws.session.ports import Log

WAITING: Final = 10_000
"""Deeds that may wait for a disk that takes nothing. Hardly anything succeeds then; what is beyond is counted."""

AT_ONCE: Final = 500
"""Deeds that are written in one transaction, so that those of others are not held up."""

AGAIN_S: Final = 1.0
"""Seconds until a disk that took nothing is asked again."""


@final
class AuditLog:
    """Notes what is done in one profile. A server that is killed loses what it noted in its last milliseconds."""

    def __init__(self, journal: Database, log: Log) -> None:
        self._journal = journal
        self._log = log
        self._waiting: deque[Deed] = deque()
        self._lost = 0
        self._news = trio.Event()
        self._writing = trio.Lock()

    def note(self, deed: Deed) -> None:
        """Remember a deed until it is written. Waits for nothing."""
        if len(self._waiting) >= WAITING:
            self._lost += 1
            return
        self._waiting.append(deed)
        self._news.set()

    async def run(self) -> None:
        """Write what is noted, until cancelled."""
        while True:
            await self._news.wait()
            self._news = trio.Event()
            if not await self._write():
                await trio.sleep(AGAIN_S)
            if self._waiting:
                self._news.set()

    async def flush(self) -> None:
        """Write what waits, before the journal closes. What cannot be written now is lost, and the log says so."""
        while self._waiting and await self._write():
            pass
        self._lost += len(self._waiting)
        self._waiting.clear()
        if self._lost:
            self._log.write("error", "audit.lost", count=self._lost)

    async def page(
        self, limit: int, before: int | None, principal: str | None, method: str | None
    ) -> list[tuple[int, Deed]]:
        """What was done last, newest first, what was noted a moment ago included."""
        await self._write()
        return await self._journal.read(
            lambda connection: audit.page(connection, limit, before=before, principal=principal, method=method)
        )

    async def _write(self) -> bool:
        """Write some of what waits; false when the disk takes nothing."""
        async with self._writing:
            return await self._write_some()

    async def _write_some(self) -> bool:
        deeds = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
        if not deeds:
            return True

        def work(tx: Transaction) -> None:
            audit.add(tx, deeds)

        try:
            with trio.CancelScope(shield=True):
                await self._journal.transact(work)
        except HermesError:
            self._waiting.extendleft(reversed(deeds))
            return False
        return True
