"""What people say to an execution while it runs, and the moment from which it listens no more.

The life of it: *open* from the claim on; *closed* when the turn has nothing left to do and nothing waits, or when it is
over in another way. Whoever comes before that is heard at the next step, however close it was (case TURN-08): the turn
that is about to end waits for what is being committed, and goes on with it. Who comes later is told so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, final

import trio

from hermes_ws.contract.content import Message
from hermes_ws.journal import steering as rows
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.admissions import AdmissionRecord
from hermes_ws.journal.database import Database

Refusal = Literal["not_steerable", "finishing"]


@final
class ExecutionSteering:
    """The `Steering` of one execution. What is accepted is an admission in the journal; here is which ones to take."""

    def __init__(self, journal: Database, key: ThreadKey, execution_generation: int, *, steerable: bool) -> None:
        self._journal = journal
        self._key = key
        self._generation = execution_generation
        self._steerable = steerable
        self._closed = False
        self._waiting: dict[str, None] = {}
        self._committing = 0
        self._committed = trio.Event()

    @property
    def refusal(self) -> Refusal | None:
        """Why nothing can be said to it; None when it listens. A finite input has one outcome, and takes nothing."""
        if not self._steerable:
            return "not_steerable"
        return "finishing" if self._closed else None

    async def offer(self, admit: Callable[[Callable[[AdmissionRecord], None]], Awaitable[None]]) -> None:
        """Have something admitted while this is open; it does not close meanwhile.

        `admit` calls what it is given, in the step in which its commit becomes visible, with what is to be taken.
        """
        self._committing += 1
        try:
            await admit(lambda record: self._waiting.setdefault(record.admission_id))
        finally:
            self._committing -= 1
            if not self._committing:
                self._committed.set()
                self._committed = trio.Event()

    async def take(self) -> Sequence[Message]:
        """What was said since the last step, as messages of the user, which are committed."""
        if not self._waiting:
            return ()
        ids = tuple(self._waiting)
        self._waiting.clear()
        return await self._journal.transact(lambda tx: rows.take(tx, self._key, ids, self._generation))

    async def finish(self) -> Sequence[Message]:
        """As `take`, when the turn would end: with nothing to take this is closed, and nothing is accepted any more."""
        while self._steerable:
            while self._committing:
                await self._committed.wait()
            if not self._waiting:
                break
            taken = await self.take()
            if taken:
                return taken
        self._closed = True
        return ()

    def close(self) -> None:
        """The turn is over. What waits is not taken any more; settling the execution sees to it."""
        self._closed = True
