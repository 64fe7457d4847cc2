"""One line of a conversation: its queue, the execution that runs, and what a client sees of it.

At most one execution runs on a thread at a time, in the order in which inputs were admitted; threads run side by side.
One task of the profile's runtime works the queue off and ends when nothing is left that may start.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, final

import trio

from hermes_ws.contract.errors import (
    Draining,
    HermesError,
    StaleEpoch,
    StorageUnavailable,
    ThreadUnknown,
)
from hermes_ws.contract.methods.prompts import Admitted, SubmitParams
from hermes_ws.contract.methods.sessions import ControlResult, SteerParams
from hermes_ws.contract.methods.threads import EventPage, Snapshot
from hermes_ws.journal import admissions, events, snapshot
from hermes_ws.journal import questions as question_rows
from hermes_ws.journal import steering as steering_rows
from hermes_ws.journal import threads as thread_rows
from hermes_ws.journal.admissions import AdmissionRecord, NewAdmission
from hermes_ws.journal.database import Later, Transaction
from hermes_ws.journal.sessions import SessionRecord
from hermes_ws.journal.stored_event import StoredEvent
from hermes_ws.journal.tail import LiveMarks, ThreadTail
from hermes_ws.session import identifiers
from hermes_ws.session.execution import Execution, Workplace
from hermes_ws.session.execution import State as ExecutionState
from hermes_ws.session.inbox import incoming
from hermes_ws.session.info import session_info
from hermes_ws.session.steering import ExecutionSteering
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import Frame

PAGE_BYTES = 512 * 1024
"""Of events in one answer: half of what a frame may carry, so that the rest of the reply has room."""

CLAIM_RETRY_S = (0.1, 1.0, 10.0)
"""Seconds between attempts to claim from a disk that takes nothing; the last one goes on until it does."""


@final
@dataclass(frozen=True, slots=True)
class _Ahead:
    """An execution, and its claim."""

    execution: Execution
    claim: Later[bool]


@final
class Thread:
    """One thread of an open session. There is one object per thread of an open profile, which `owner` sees to: whoever
    holds the thread holds the session that it belongs to.
    """

    def __init__(self, place: Workplace, *, owner: object) -> None:
        self._place = place
        self._owner: Final = owner
        self._active: Execution | None = None
        self._wanted = False
        self._working = False
        self._ahead: _Ahead | None = None
        """The execution whose claim stands in the journal's queue right behind the input that it is for."""
        self._resting = False
        """Whether the last execution left nothing in the queue, and nobody has asked to see to it since."""
        self._admitting = 0
        self.key: Final = place.key
        self.tail: Final[ThreadTail] = place.tail

    # --- state -------------------------------------------------------------------------------------------------------

    @property
    def active(self) -> Execution | None:
        """The execution between its claim and its settling."""
        return self._active

    @property
    def running(self) -> int | None:
        """The generation of the execution that runs; None when none does."""
        return None if self._active is None else self._active.generation

    @property
    def steerable(self) -> bool:
        """Whether what runs would take something that is said to it."""
        return self._steering() is not None

    @property
    def busy(self) -> bool:
        """Whether something runs, is about to be claimed, or is being admitted. Not any more in the step in which the
        last execution's `execution.finished` becomes visible: who has seen it finds the thread idle.
        """
        return self._active is not None or (self._working and not self._resting) or self._admitting > 0

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
        arrived = await incoming(runtime.journal.blobs, self.key, params, principal)
        steering = self._steering() if params.mode == "steer" else None
        with self._admission_under_way():
            if steering is None:
                record, _ = await runtime.journal.transact(arrived.admit, behind=self._claim_ahead())
            else:
                record = await self._offer(steering, arrived.new)
        began = self._active is not None and self._active.admission_id == record.admission_id
        if record.status == "queued" and not began:
            self.wake()
        return Admitted(
            admission_id=record.admission_id,
            status=record.status,
            execution_generation=record.execution_generation,
            cursor=str(record.cursor),
        )

    async def steer(self, params: SteerParams, principal: str) -> ControlResult:
        """Say something to the execution that the caller has seen, and to no other; durable when this returns.

        `accepted` means that it takes the words at its next step, or that they are cancelled with it if it has none.
        Raises `StorageUnavailable`.
        """
        active = self._active
        if active is None:
            return ControlResult(outcome="no_active_execution")
        if active.generation != params.execution_generation:
            return ControlResult(outcome="generation_mismatch", active=active.generation)
        steering = active.steering
        refusal = "finishing" if steering is None else steering.refusal
        if steering is None or refusal is not None:
            return ControlResult(outcome=refusal or "finishing", active=active.generation)
        new = NewAdmission(
            key=self.key,
            principal=principal,
            input_id=identifiers.steering_id(),
            digest="",
            text=params.text,
            steers=active.generation,
        )
        admitted = False

        async def admit(take: Callable[[AdmissionRecord], None]) -> None:
            nonlocal admitted

            def work(tx: Transaction) -> bool:
                record = steering_rows.admit(tx, new)
                if record is not None:
                    tx.after_commit(partial(take, record))
                return record is not None

            admitted = await self._place.runtime.journal.transact(work)

        with self._admission_under_way():
            await steering.offer(admit)
        return ControlResult(outcome="accepted" if admitted else "finishing", active=active.generation)

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

    def _steering(self) -> ExecutionSteering | None:
        """What an input of mode `steer` is offered to, if anything listens."""
        steering = None if self._active is None else self._active.steering
        return None if steering is None or steering.refusal is not None else steering

    async def _offer(self, steering: ExecutionSteering, new: NewAdmission) -> AdmissionRecord:
        """Admit an input that the execution may take before its turn in the queue comes."""
        found: list[AdmissionRecord] = []

        async def admit(take: Callable[[AdmissionRecord], None]) -> None:
            def work(tx: Transaction) -> AdmissionRecord:
                record, _ = admissions.admit(tx, new)
                if record.status == "queued":
                    tx.after_commit(partial(take, record))
                return record

            found.append(await self._place.runtime.journal.transact(work))

        await steering.offer(admit)
        return found[0]

    @contextmanager
    def _admission_under_way(self) -> Generator[None]:
        self._admitting += 1
        try:
            yield
        finally:
            self._admitting -= 1

    def adopt(self, session: SessionRecord) -> None:
        """The session was edited. An execution that runs keeps what it began with."""
        self._place = replace(self._place, session=session)

    # --- the queue ---------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """See to the queue. Called after something was queued, and when the profile opens with something queued."""
        self._wanted = True
        self._resting = False
        if not self._working:
            try:
                self._place.runtime.start_soon(self._work, name=f"queue of {self.key.session_id}")
            except Draining:
                return  # It is durable, and the next owner of the home starts it.
            self._working = True

    def _claim_ahead(self) -> Later[bool] | None:
        """The claim of an input that is about to be written, to be written right behind it: both wait for the disk
        once. None where the queue is being worked off. `wake` follows when the input is there."""
        if self._working and not self._resting:
            return None
        self.wake()
        if not self._working:
            return None
        execution = Execution(self._place)
        claim = Later(execution.claiming(lambda: self._claimed(execution)))
        self._ahead = _Ahead(execution, claim)
        return claim

    async def _work(self) -> None:
        try:
            while self._wanted and self._may_begin():
                self._wanted = False
                while self._may_begin() and await self._run_next():
                    pass
        finally:
            self._working = False
            self._place.rested()

    def _may_begin(self) -> bool:
        """Not while the profile drains; but what is claimed ahead is as good as begun, and somebody has to end it."""
        return not self._place.runtime.draining or (self._ahead is not None and self._ahead.claim.queued)

    async def _run_next(self) -> bool:
        ahead, self._ahead = self._ahead, None
        execution = Execution(self._place)
        if ahead is not None and ahead.claim.queued:
            execution = ahead.execution
            if not await self._was_claimed(ahead.claim):
                return False
        elif not await self._claim(execution):
            return False

        def finished() -> None:
            self._active = None
            self._resting = not execution.leaves_waiting

        if self._place.runtime.closing:
            execution.interrupt()  # Claimed while the profile began to close: it ends before anything of it has run.
        await execution.run(finished)
        # At rest, it looks no further: the session may be closed by now, and another object have its queue.
        return execution.state is ExecutionState.FINISHED and not self._resting

    def _claimed(self, execution: Execution) -> None:
        self._active = execution

    async def _was_claimed(self, claim: Later[bool]) -> bool:
        """What became of a claim behind an input. When the disk refused it, whoever sent the input has been told so of
        the input, or wakes the queue again."""
        try:
            return await claim.wait()
        except (StaleEpoch, StorageUnavailable) as refused:
            self._complain(refused)
            return False

    async def _claim(self, execution: Execution) -> bool:
        attempt = 0
        while True:
            try:
                return await execution.claim(lambda: self._claimed(execution))
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
