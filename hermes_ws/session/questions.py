"""The life of a question.

A question is asked once and settled once. It is a row: committed before anyone sees it, and settled by whatever comes
first, in a transaction. A disconnect is not in the table because it settles nothing (cases ASK-10, ASK-12); neither is
an answer that does not fit, which is refused and leaves the question open. `abandoned` is written by the next owner of
the home, for the questions of an execution that was lost. One that goes on finds its question as it was asked, under
its id, and with the answer that came meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Final, TypeVar, cast, final

import trio
from pydantic import JsonValue

from hermes_ws.agent.ports import NoAnswerer, QuestionExpired
from hermes_ws.contract.errors import HermesError, InvalidParams, NotFound, StaleGeneration
from hermes_ws.contract.methods.questions import Answered, AnswerParams, Operation
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.questions import (
    APPROVAL,
    CONNECTION,
    ConnectionParams,
    OpenQuestion,
    QuestionState,
)
from hermes_ws.contract.registry import Question
from hermes_ws.journal import questions as rows
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.database import Database, Transaction
from hermes_ws.session import connections
from hermes_ws.session.answers import kept_of, validated
from hermes_ws.session.handover import Handover, left
from hermes_ws.session.ports import Audience

P = TypeVar("P", bound=Params)

EXPIRE_AGAIN_S: Final = 30.0
"""Seconds until a deadline that could not be written down is tried again: the pace of the looks after other things."""

Decided = Callable[[Params], Awaitable[None]]
"""What is done with the answer to a question that nothing waits for."""


class State(Enum):
    """Where a question stands; the values are those of the wire and of the journal."""

    OPEN = "open"
    SETTLED = "settled"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    ABANDONED = "abandoned"


class Happened(Enum):
    """What can settle a question."""

    ANSWERED = "a valid answer came"
    DEADLINE_PASSED = "its deadline passed"
    NOBODY_CAN = "clients may answer, and none of them can show this kind"
    EXECUTION_ENDED = "the execution that asked was interrupted, or failed"
    OWNER_LOST = "the server that asked is gone"


TRANSITIONS: Mapping[tuple[State, Happened], State] = MappingProxyType(
    {
        (State.OPEN, Happened.ANSWERED): State.SETTLED,
        (State.OPEN, Happened.DEADLINE_PASSED): State.EXPIRED,
        (State.OPEN, Happened.NOBODY_CAN): State.WITHDRAWN,
        (State.OPEN, Happened.EXECUTION_ENDED): State.WITHDRAWN,
        (State.OPEN, Happened.OWNER_LOST): State.ABANDONED,
    }
)

_WORDS: Mapping[State, rows.SettledState] = MappingProxyType(
    {
        State.SETTLED: "settled",
        State.EXPIRED: "expired",
        State.WITHDRAWN: "withdrawn",
        State.ABANDONED: "abandoned",
    }
)

REASONS: Mapping[State, str] = MappingProxyType(
    {
        State.SETTLED: "resolved",
        State.EXPIRED: "expired",
        State.WITHDRAWN: "interrupted",
        State.ABANDONED: "abandoned",
    }
)
"""What those who were asked are told when no answer is needed any more."""


@final
@dataclass(frozen=True, slots=True)
class Asking:
    """Which execution asks. Nobody watches an `unattended` one, so its approvals wait, however long, for somebody."""

    key: ThreadKey
    execution_generation: int
    admission_id: str
    unattended: bool = False


@final
class _Waiter:
    """The execution that waits for one question's end."""

    __slots__ = ("asking", "ended", "happened", "result")

    def __init__(self, asking: Asking) -> None:
        self.asking = asking
        self.ended = trio.Event()
        self.happened: Happened | None = None
        self.result: Params | None = None

    def patient(self, kind: str) -> bool:
        """Whether it waits also while everybody who is there cannot answer."""
        return self.asking.unattended and kind == APPROVAL.kind

    def end(self, happened: Happened, result: Params | None) -> None:
        self.happened = happened
        self.result = result
        self.ended.set()


@final
class _Posted:
    """A question that nothing waits for, while it is open. What an answer gives is in place before it counts."""

    __slots__ = ("decided", "ended", "settling")

    def __init__(self, decided: Decided) -> None:
        self.decided = decided
        self.ended = trio.Event()
        self.settling = trio.Lock()


@final
class Questions:
    """The questions of one open profile: asking, waiting, and the one place where an answer counts."""

    def __init__(self, journal: Database, audience: Audience, *, profile: str, origin: str) -> None:
        self._journal = journal
        self._audience = audience
        self._profile = profile
        self._origin = origin
        self._waiters: dict[str, _Waiter] = {}
        self._posted: dict[str, _Posted] = {}
        self._handover = Handover()

    def waiting(self, key: ThreadKey) -> bool:
        """Whether an execution of this thread waits for a person."""
        return any(waiter.asking.key == key for waiter in self._waiters.values())

    @property
    def posted(self) -> int:
        """How many are open that no execution waits for."""
        return len(self._posted)

    async def ask(
        self, asking: Asking, question: Question, params: Result, *, deadline_s: float | None = None
    ) -> Params:
        """Commit the question, send it, and wait for its end.

        Raises `NoAnswerer` at once when clients may answer and none of them can show the kind, `QuestionExpired` at the
        deadline. With no client that may answer it waits for one. Cancelling withdraws it before this returns.
        """
        waiter = _Waiter(asking)
        opened: list[OpenQuestion] = []
        asked = cast("dict[str, JsonValue]", params.model_dump(mode="json"))

        def work(tx: Transaction) -> float | None:
            found = left(tx.connection, asking.key, asking.admission_id)
            same = [each for each in found if (each.kind, each.params) == (question.kind, asked)]
            deadline = None if deadline_s is None else tx.now + deadline_s
            record = same[0] if same else rows.open(tx, self._new(tx, asking, question, params, deadline))

            def committed() -> None:
                opened.append(record.open_question())
                self._waiters[record.question_id] = waiter

            tx.after_commit(committed)
            return None if record.deadline is None else max(0.0, record.deadline - tx.now)

        try:
            async with self._handover.taking:
                early = self._handover.take(asking.admission_id, question.kind, asked)
                if early is not None:
                    return early
                deadline_s = await self._journal.transact(work)
            counted = self._audience.ask(opened[0], self._profile)
            if counted.with_right and not counted.capable and not waiter.patient(question.kind):
                await self._settle(opened[0].id, Happened.NOBODY_CAN)
            with trio.move_on_after(math.inf if deadline_s is None else deadline_s):
                await waiter.ended.wait()
            if not waiter.ended.is_set():
                await self._settle(opened[0].id, Happened.DEADLINE_PASSED)
            await waiter.ended.wait()
        finally:
            # Reached with the waiter still there when this task was cancelled or the settling failed.
            if opened and self._waiters.get(opened[0].id) is waiter:
                await self._withdraw(opened[0].id)
        if waiter.happened is Happened.NOBODY_CAN:
            raise NoAnswerer(question.kind)
        if waiter.happened is Happened.DEADLINE_PASSED:
            raise QuestionExpired(question.kind)
        if waiter.result is None:
            raise NoAnswerer(question.kind)
        return waiter.result

    async def left(self, asking: Asking) -> list[rows.QuestionRecord]:
        """What an earlier execution of the same input had asked and nobody has asked again: open, or answered since."""
        async with self._handover.taking:
            found = await self._journal.read(lambda connection: left(connection, asking.key, asking.admission_id))
            return [*self._handover.of(asking.admission_id), *found]

    def leave(self, tx: Transaction, key: ThreadKey, admission_id: str) -> None:
        """An input has ended: what its lost execution had asked, and nobody asked again, needs no answer any more."""
        for record in left(tx.connection, key, admission_id):
            rows.settle(tx, record.question_id, _WORDS[State.WITHDRAWN])
            tx.after_commit(partial(self._ended, record, State.WITHDRAWN, Happened.EXECUTION_ENDED, None))
        tx.after_commit(lambda: self._handover.forget(admission_id))

    async def post(self, asking: Asking, params: ConnectionParams, decided: Decided, *, deadline_s: float) -> str:
        """Commit a question that nothing waits for, and send it; its id. `decided` takes the answer, before it counts.

        It outlives the execution that asked, until its deadline, and is abandoned with the server; somebody is to run
        `expire` for it. Raises `NoAnswerer` at once when clients may answer and none of them can show it.
        """
        opened: list[OpenQuestion] = []

        def work(tx: Transaction) -> None:
            record = rows.open(tx, self._new(tx, asking, CONNECTION, params, tx.now + deadline_s))
            tx.append(
                asking.key,
                "connection.request",
                connections.asked(record),
                execution_generation=asking.execution_generation,
                admission_id=asking.admission_id,
            )

            def committed() -> None:
                opened.append(record.open_question())
                self._posted[record.question_id] = _Posted(decided)

            tx.after_commit(committed)

        await self._journal.transact(work)
        counted = self._audience.ask(opened[0], self._profile)
        if counted.with_right and not counted.capable:
            await self._settle(opened[0].id, Happened.NOBODY_CAN)
            raise NoAnswerer(CONNECTION.kind)
        return opened[0].id

    async def expire(self, question_id: str, deadline_s: float) -> None:
        """Settle a posted question as expired in so many seconds, unless something has settled it by then."""
        posted = self._posted.get(question_id)
        if posted is None:
            return
        with trio.move_on_after(deadline_s):
            await posted.ended.wait()
        while not posted.ended.is_set():
            try:
                async with posted.settling:
                    await self._settle(question_id, Happened.DEADLINE_PASSED)
            except HermesError:
                # Nothing can be stored now. An answer that comes meanwhile counts; it would not be stored either.
                with trio.move_on_after(EXPIRE_AGAIN_S):
                    await posted.ended.wait()

    def _new(
        self, tx: Transaction, asking: Asking, question: Question, params: Result, deadline: float | None
    ) -> rows.NewQuestion:
        return rows.NewQuestion(
            question_id=rows.next_id(tx, self._origin),
            key=asking.key,
            execution_generation=asking.execution_generation,
            admission_id=asking.admission_id,
            kind=question.kind,
            params=cast("dict[str, JsonValue]", params.model_dump(mode="json")),
            deadline=deadline,
        )

    async def answer(self, params: AnswerParams, kind: Question | None = None) -> Answered:
        """Settle the question with this answer, or tell what had settled it.

        Raises `NotFound`, `StaleGeneration` when the answer is meant for another execution, and `InvalidParams` for an
        answer that does not fit or for a question that is not of `kind`, after which it is open as before.
        """
        record = await self._journal.read(lambda connection: rows.get(connection, params.id))
        if record is None:
            raise NotFound(f"There is no question {params.id}.")
        if params.execution_generation not in (None, record.execution_generation):
            raise StaleGeneration(
                f"Question {params.id} was asked by execution {record.execution_generation}.",
                active=record.execution_generation,
            )
        if kind is not None and record.kind != kind.kind:
            raise InvalidParams(f"{params.id} is a question of kind {record.kind}, not {kind.kind}.", path="id")
        if record.state != "open":
            return _told(record.state, record.result)
        result = validated(record.kind, record.params, params.result)
        kept = kept_of(record.kind, result)
        async with self._settling(params.id):
            if (posted := self._posted.get(params.id)) is not None:
                await posted.decided(result)
            settled, first = await self._settle(params.id, Happened.ANSWERED, result, kept)
        if first:
            return Answered(outcome="settled", result=settled.result)
        return _told(settled.state, settled.result)

    def _settling(self, question_id: str) -> trio.Lock:
        posted = self._posted.get(question_id)
        return self._handover.taking if posted is None else posted.settling

    async def _settle(
        self,
        question_id: str,
        happened: Happened,
        result: Params | None = None,
        kept: Mapping[str, JsonValue] | None = None,
    ) -> tuple[rows.QuestionRecord, bool]:
        state = TRANSITIONS[State.OPEN, happened]
        word = _WORDS[state]

        def work(tx: Transaction) -> tuple[rows.QuestionRecord, bool]:
            record, first = rows.settle(tx, question_id, word, kept)
            if first:
                tx.after_commit(lambda: self._ended(record, state, happened, result))
            return record, first

        return await self._journal.transact(work)

    def _ended(self, record: rows.QuestionRecord, state: State, happened: Happened, result: Params | None) -> None:
        question_id = record.question_id
        tail = self._journal.tail_if_open(record.key)
        if tail is not None and record.kind == CONNECTION.kind:
            tail.tell(
                "connection.update",
                connections.changed(record),
                execution_generation=record.execution_generation,
                admission_id=record.admission_id,
            )
        posted = self._posted.pop(question_id, None)
        if posted is not None:
            posted.ended.set()
        waiter = self._waiters.pop(question_id, None)
        if waiter is not None:
            waiter.end(happened, result)
        elif result is not None and posted is None:
            self._handover.answered(record, result)
        self._audience.settled(question_id, REASONS[state], self._profile)

    async def reconsider(self, question_id: str) -> None:
        """Somebody who was asked cannot show the kind: end the question if that was the last who could."""
        record = await self._journal.read(lambda connection: rows.get(connection, question_id))
        if record is None or record.state != "open":
            return
        counted = self._audience.ask(record.open_question(), self._profile)
        waiter = self._waiters.get(question_id)
        patient = waiter is not None and waiter.patient(record.kind)
        if counted.with_right and not counted.capable and not patient:
            async with self._settling(question_id):
                await self._settle(question_id, Happened.NOBODY_CAN)

    async def operation(self, op_id: str) -> Operation:
        """How a connection stands that was asked for. Raises `NotFound`, also for a question of another kind."""
        return connections.operation(op_id, await self._journal.read(lambda connection: rows.get(connection, op_id)))

    async def outcome(self, question_id: str) -> Answered | None:
        """What settled a question; None while nothing has, or for one that there is not."""
        record = await self._journal.read(lambda connection: rows.get(connection, question_id))
        return None if record is None or record.state == "open" else _told(record.state, record.result)

    async def _withdraw(self, question_id: str) -> None:
        """End a question whose asker is going away. What fails here is settled by the next owner of the home."""
        with trio.CancelScope(shield=True):
            try:
                await self._settle(question_id, Happened.EXECUTION_ENDED)
            except HermesError:
                self._waiters.pop(question_id, None)
                self._audience.settled(question_id, REASONS[State.WITHDRAWN], self._profile)


def _told(state: QuestionState, result: dict[str, JsonValue] | None) -> Answered:
    match state:
        case "settled" | "open":
            return Answered(outcome="already_settled", result=result)
        case "expired" | "withdrawn" | "abandoned":
            return Answered(outcome=state, result=None)
