"""The audit log of an open profile: what is done is written down before whoever did it is told so.

Deeds of requests that run side by side are written in one transaction, so that writing them down costs each of them the
time of one commit, and the disk next to nothing.
"""

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
    """Notes what is done in one profile. Nothing is lost that `keep` has returned for, unless the disk took nothing."""

    def __init__(self, journal: Database, log: Log) -> None:
        self._journal = journal
        self._log = log
        self._waiting: deque[Deed] = deque()
        self._noted = 0
        self._written = 0
        self._lost = 0
        self._news = trio.Event()
        self._writing = trio.Lock()

    def note(self, deed: Deed) -> None:
        """Remember a deed until it is written. Waits for nothing."""
        if len(self._waiting) >= WAITING:
            self._lost += 1
            return
        self._waiting.append(deed)
        self._noted += 1
        self._news.set()

    async def keep(self, deed: Deed) -> None:
        """Note a deed and return when it is durable, or when the disk takes nothing: then it is tried again later.

        Cannot be cancelled: what is done is done, and a request that was taken back too late is answered all the same.
        """
        self.note(deed)
        number = self._noted
        with trio.CancelScope(shield=True):
            while self._written < number and await self._write():
                pass

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
        self._written += len(self._waiting)  # nobody waits for what is given up
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
        self._written += len(deeds)
        return True
