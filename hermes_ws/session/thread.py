"""One line of a conversation: its queue, the execution that runs, and what a client sees of it.

At most one execution runs on a thread at a time, in the order in which inputs were admitted; threads run side by side.
One task of the profile's runtime works the queue off and ends when nothing is left that may start.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from typing import Final, final

import orjson
import trio

from hermes_ws.contract.errors import (
    Draining,
    HermesError,
    StaleEpoch,
    StorageUnavailable,
    ThreadUnknown,
    UnknownExecution,
)
from hermes_ws.contract.methods.prompts import Admitted, SubmitParams
from hermes_ws.contract.methods.sessions import ControlResult
from hermes_ws.contract.methods.threads import EventPage, Snapshot
from hermes_ws.journal import admissions, events, snapshot
from hermes_ws.journal import questions as question_rows
from hermes_ws.journal import threads as thread_rows
from hermes_ws.journal.admissions import AdmissionRecord, NewAdmission
from hermes_ws.journal.database import Transaction
from hermes_ws.journal.stored_event import StoredEvent
from hermes_ws.journal.tail import LiveMarks, ThreadTail
from hermes_ws.session.execution import Execution, Workplace
from hermes_ws.session.execution import State as ExecutionState
from hermes_ws.session.info import session_info
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import Frame

PAGE_BYTES = 512 * 1024
"""Of events in one answer: half of what a frame may carry, so that the rest of the reply has room."""

CLAIM_RETRY_S = (0.1, 1.0, 10.0)
"""Seconds between attempts to claim from a disk that takes nothing; the last one goes on until it does."""


@final
class Thread:
    """One thread of an open session. There is one object per thread of an open profile, which `owner` sees to: whoever
    holds the thread holds the session that it belongs to.
    """

    def __init__(self, place: Workplace, *, owner: object) -> None:
        self._place: Final = place
        self._owner: Final = owner
        self._active: Execution | None = None
        self._wanted = False
        self._working = False
        self.key: Final = place.key
        self.tail: Final[ThreadTail] = place.tail

    # --- state -------------------------------------------------------------------------------------------------------

    @property
    def active(self) -> Execution | None:
        """The execution between its claim and its settling."""
        return self._active

    @property
    def busy(self) -> bool:
        """Whether something runs, or is about to be claimed."""
        return self._active is not None or self._working

    @property
    def watched(self) -> bool:
        """Whether anybody listens."""
        return self.tail.statistics().listeners > 0

    # --- input -------------------------------------------------------------------------------------------------------

    async def submit(self, params: SubmitParams, principal: str) -> Admitted:
        """Admit an input; durable when this returns. The same `input_id` with the same content is admitted once.

        Raises `AdmissionConflict`, `SessionBusy` and `UnknownExecution` in mode `reject`, `Draining`,
        `StorageUnavailable`.
        """
        runtime = self._place.runtime
        if runtime.draining:
            raise Draining("The server is shutting down and takes no new input.")
        text = params.plain_text()
        new = NewAdmission(
            key=self.key,
            principal=principal,
            input_id=params.input_id,
            digest=_digest(params, text),
            text=text,
            finite=params.finite,
            unattended=params.unattended,
            reject_if_busy=params.mode == "reject",
        )

        def work(tx: Transaction) -> tuple[AdmissionRecord, bool]:
            if new.reject_if_busy:
                _refuse_if_lost(admissions.pending(tx.connection, self.key))
            return admissions.admit(tx, new)

        record, _ = await runtime.journal.transact(work)
        if record.status == "queued":
            self.wake()
        return Admitted(
            admission_id=record.admission_id,
            status=record.status,
            execution_generation=record.execution_generation,
            cursor=str(record.cursor),
        )

    def interrupt(self, execution_generation: int) -> ControlResult:
        """End the execution that the caller has seen, and no other. What is decided here is final; nothing stays armed
        for what comes later (case TURN-04). `accepted` means that it will finish as `interrupted`.
        """
        active = self._active
        if active is None:
            return ControlResult(outcome="no_active_execution")
        if active.generation != execution_generation:
            return ControlResult(outcome="generation_mismatch", active=active.generation)
        if not active.interrupt():
            return ControlResult(outcome="finishing", active=active.generation)
        return ControlResult(outcome="accepted", active=active.generation)

    # --- the queue ---------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """See to the queue. Called after something was queued, and when the profile opens with something queued."""
        self._wanted = True
        if not self._working:
            try:
                self._place.runtime.start_soon(self._work, name=f"queue of {self.key.session_id}")
            except Draining:
                return  # It is durable, and the next owner of the home starts it.
            self._working = True

    async def _work(self) -> None:
        try:
            while self._wanted and not self._place.runtime.draining:
                self._wanted = False
                while not self._place.runtime.draining and await self._run_next():
                    pass
        finally:
            self._working = False
            self._place.rested()

    async def _run_next(self) -> bool:
        execution = Execution(self._place)

        def claimed() -> None:
            self._active = execution

        def finished() -> None:
            self._active = None

        if not await self._claim(execution, claimed):
            return False
        if self._place.runtime.closing:
            execution.interrupt()  # Claimed while the profile began to close: it ends before anything of it has run.
        await execution.run(finished)
        return execution.state is ExecutionState.FINISHED

    async def _claim(self, execution: Execution, claimed: Callable[[], None]) -> bool:
        attempt = 0
        while True:
            try:
                return await execution.claim(claimed)
            except StaleEpoch as stale:
                self._complain(stale)
                return False
            except StorageUnavailable as unavailable:
                self._complain(unavailable)
                await trio.sleep(CLAIM_RETRY_S[min(attempt, len(CLAIM_RETRY_S) - 1)])
                attempt += 1

    def _complain(self, error: HermesError) -> None:
        self._place.runtime.log.write(
            "error", "queue.not_claimed", session_id=self.key.session_id, message=error.message
        )

    # --- looking -----------------------------------------------------------------------------------------------------

    async def snapshot(self, after: Cursor | None, messages: bool | None) -> Snapshot:
        """One coherent boundary: everything in it is of one moment, and what is committed later follows its cursor."""
        taken, _, _ = await self.subscription_start(after, messages)
        return taken

    async def subscription_start(
        self, after: Cursor | None, messages: bool | None
    ) -> tuple[Snapshot, Cursor, LiveMarks]:
        """A snapshot, the cursor from which events follow, and the marks of one who has its text in progress."""
        place = self._place
        stored = await place.runtime.journal.read(
            lambda connection: snapshot.take(connection, self.key, after, messages)
        )
        start = stored.start.cursor
        # What the tail says is of now; the boundary may be older. The text of a message whose beginning is still to
        # follow is left out: it comes as live text after the event that announces it.
        live = self.tail.in_progress(start)
        active, running = self._active, stored.execution
        finishing = (
            active is not None
            and running is not None
            and active.generation == running.execution_generation
            and active.state is ExecutionState.FINISHING
        )
        scope = place.runtime.scope
        taken = stored.to_snapshot(scope.profile.text, session_info(stored.session, scope), live, finishing=finishing)
        return taken, start, LiveMarks() if live is None else LiveMarks.given(*live)

    async def events(self, after: Cursor, limit: int) -> EventPage:
        """Committed events after the cursor, at most `limit` and about `PAGE_BYTES`, and the questions open now."""

        def query(connection: sqlite3.Connection) -> EventPage:
            record = thread_rows.get(connection, self.key)
            assert record is not None
            start = events.position(after, record.generation, record.head)
            found, more = events.since(connection, self.key, start.cursor, limit, PAGE_BYTES)
            return EventPage(
                position=start.position,
                generation=record.generation,
                events=[event.envelope(self.tail.address) for event in found],
                cursor=str(found[-1].cursor if found else start.cursor),
                more=more,
                questions=question_rows.open_questions(connection, session_id=self.key.session_id),
            )

        return await self._place.runtime.journal.read(query)

    async def page(self, after: Cursor, budget: int) -> tuple[tuple[Frame, ...], Cursor]:
        """Committed events after the cursor as frames, about `budget` bytes of them, and the cursor of who has them.

        When the journal was replaced meanwhile, that is a cursor of the new generation, and the frames are of its
        beginning. Raises `ThreadUnknown` when the thread was deleted.
        """

        def query(connection: sqlite3.Connection) -> tuple[Cursor, list[StoredEvent]]:
            record = thread_rows.get(connection, self.key)
            if record is None:
                raise ThreadUnknown(f"There is no thread {self.key.thread_id} in this session any more.")
            start = after if record.generation == after.generation else Cursor(record.generation, 0)
            return start, events.since(connection, self.key, start, max_bytes=budget)[0]

        start, found = await self._place.runtime.journal.read(query)
        frames = tuple(event.frame(self.tail.address) for event in found)
        return frames, found[-1].cursor if found else start


def _refuse_if_lost(pending: Sequence[AdmissionRecord]) -> None:
    for record in pending:
        if record.status == "unknown":
            raise UnknownExecution(
                "An earlier execution of this thread was lost, and what it did last is not known.",
                admission_id=record.admission_id,
            )


def _digest(params: SubmitParams, text: str) -> str:
    """Tells whether two inputs are the same. How they were to be queued is no part of what they say."""
    content = orjson.dumps([text, params.finite, params.unattended])
    return hashlib.sha256(content).hexdigest()
