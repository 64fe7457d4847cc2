"""An open session: its stored record, its threads, and the approvals given for as long as it is open."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final, final

import trio

from hermes_ws.agent.approvals import SessionApprovals
from hermes_ws.contract.errors import NotFound, StaleGeneration, ThreadUnknown
from hermes_ws.contract.methods.prompts import AdmissionStatus, CancelParams, Receipt, ReceiptParams, ResolveParams
from hermes_ws.journal import admissions
from hermes_ws.journal import threads as thread_rows
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.admissions import AdmissionRecord
from hermes_ws.journal.database import Transaction
from hermes_ws.journal.sessions import SessionRecord
from hermes_ws.session.briefing import Ground, ground_of
from hermes_ws.session.execution import Workplace
from hermes_ws.session.launch import Keys
from hermes_ws.session.narration import KnownRules
from hermes_ws.session.ports import Runtime
from hermes_ws.session.questions import Questions
from hermes_ws.session.thread import Thread


@final
class Session:
    """One session of an open profile. There is one object per session as long as anybody holds it."""

    def __init__(
        self,
        runtime: Runtime,
        questions: Questions,
        record: SessionRecord,
        rested: Callable[[], None],
        keys: Keys,
        changed: Callable[[str], None],
    ) -> None:
        self._runtime = runtime
        self._questions = questions
        self._rested = rested
        self._changed = changed
        self._keys = keys
        self._threads: dict[str, Thread] = {}
        self._opening = trio.Lock()
        self._approvals = SessionApprovals()
        self.record = record
        self.rules = KnownRules()
        self.worked = False
        """Whether an execution has begun since it was opened: then there is something to end."""
        self.session_id: Final = record.session_id

    @property
    def threads(self) -> tuple[Thread, ...]:
        """Those of its threads that are open."""
        return tuple(self._threads.values())

    @property
    def busy(self) -> bool:
        """Whether one of its threads works, or may in a moment."""
        return any(thread.busy for thread in self._threads.values())

    @property
    def watched(self) -> bool:
        """Whether anybody listens to one of its threads."""
        return any(thread.watched for thread in self._threads.values())

    @property
    def approvals(self) -> SessionApprovals:
        """What was allowed for as long as it is open."""
        return self._approvals

    async def ground(self) -> Ground:
        """What its main thread works with, as the profile is now. Raises what keeps an execution from being run."""
        return await ground_of(self._runtime, self._keys, self.record, ThreadKey(self.session_id, "main"))

    async def thread(self, thread_id: str) -> Thread:
        """One of its threads, opened from disk when it is not open. Raises `ThreadUnknown`."""
        thread = self._threads.get(thread_id)
        if thread is not None:
            return thread
        async with self._opening:
            thread = self._threads.get(thread_id)
            if thread is None:
                thread = self._threads[thread_id] = await self._open(ThreadKey(self.session_id, thread_id))
            return thread

    async def receipt(self, params: ReceiptParams, principal: str) -> Receipt:
        """What became of an input. By `input_id` only the caller's own is found; by `admission_id` any of the session.

        Raises `NotFound`.
        """

        def query(connection: sqlite3.Connection) -> AdmissionRecord | None:
            return admissions.find(
                connection,
                None if params.input_id is None else principal,
                self.session_id,
                input_id=params.input_id,
                admission_id=params.admission_id,
            )

        record = await self._runtime.journal.read(query)
        if record is None:
            raise _not_seen()
        return Receipt(
            admission_id=record.admission_id,
            status=record.status,
            execution_generation=record.execution_generation,
            cursor=str(record.cursor),
            outcome=record.outcome,
            usage=record.usage,
        )

    async def cancel(self, params: CancelParams, principal: str | None) -> AdmissionStatus:
        """Take a queued input back; with a principal only one of its own. Raises `NotFound`."""

        def work(tx: Transaction) -> AdmissionRecord:
            record = admissions.find(tx.connection, principal, self.session_id, admission_id=params.admission_id)
            if record is None:
                raise _not_seen()
            retired, done = admissions.retire(tx, record.key, record.admission_id)
            if done:
                self._questions.leave(tx, record.key, record.admission_id)
            return retired

        return AdmissionStatus(status=(await self._runtime.journal.transact(work)).status)

    async def resolve_unknown(self, params: ResolveParams) -> AdmissionStatus:
        """Say what became of a lost execution; its thread's queue goes on. Raises `NotFound`, `StaleGeneration`."""

        def work(tx: Transaction) -> AdmissionRecord:
            record = admissions.find(tx.connection, None, self.session_id, admission_id=params.admission_id)
            if record is None:
                raise _not_seen()
            if record.execution_generation != params.execution_generation:
                raise StaleGeneration(
                    f"The input's execution is {record.execution_generation}.", active=record.execution_generation
                )
            return admissions.resolve_unknown(tx, record.key, record.admission_id, params.outcome)

        record = await self._runtime.journal.transact(work)
        (await self.thread(record.thread_id)).wake()
        return AdmissionStatus(status=record.status)

    def adopt(self, record: SessionRecord) -> None:
        """The session was edited, and is stored like this now."""
        self.record = record
        for thread in self.threads:
            thread.adopt(record)

    def _titled(self, record: SessionRecord) -> None:
        """It was given a title, which is no edit. One that came meanwhile is newer than this, and holds the title."""
        if record.revision == self.record.revision:
            self.adopt(record)

    def forget(self, thread_id: str) -> None:
        """One of its threads is gone for good."""
        self._threads.pop(thread_id, None)

    def _began(self) -> None:
        self.worked = True
        self._changed(self.session_id)

    def _rest(self) -> None:
        self._changed(self.session_id)
        self._rested()

    async def _open(self, key: ThreadKey) -> Thread:
        journal = self._runtime.journal
        record = await journal.read(lambda connection: thread_rows.get(connection, key))
        if record is None:
            raise ThreadUnknown(f"Session {key.session_id} has no thread {key.thread_id!r}.")
        tail = await journal.open_tail(key)
        place = Workplace(
            runtime=self._runtime,
            questions=self._questions,
            session=self.record,
            key=key,
            tail=tail,
            approvals=self._approvals,
            rested=self._rest,
            keys=self._keys,
            sibling=self.thread,
            rules=self.rules,
            titled=self._titled,
            began=self._began,
        )
        return Thread(place, owner=self)


def _not_seen() -> NotFound:
    return NotFound("This session has not seen that input.", hint="Submit it; it was not admitted.")
