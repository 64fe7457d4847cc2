"""Questions as they are stored: asked once, settled once, and never numbered twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

import orjson
from pydantic import JsonValue

from hermes_ws.contract.errors import NotFound
from hermes_ws.contract.events import RequestOpened, RequestSettled
from hermes_ws.contract.questions import OpenQuestion, QuestionState
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.transaction import Transaction
from hermes_ws.wire.frames import encode

SettledState = Literal["settled", "expired", "withdrawn", "abandoned"]

_COLUMNS = (
    "question_id, session_id, thread_id, kind, epoch, execution_generation, admission_id, params, state, result,"
    " asked_at, deadline, settled_at"
)


@final
@dataclass(frozen=True, slots=True)
class NewQuestion:
    """A question to be asked. `deadline` is seconds since 1970."""

    question_id: str
    key: ThreadKey
    kind: str
    execution_generation: int
    params: Mapping[str, JsonValue]
    admission_id: str | None = None
    deadline: float | None = None


@final
@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """A question as it is stored. `result` is what settled it, and None where it must not be kept."""

    question_id: str
    key: ThreadKey
    kind: str
    epoch: int
    execution_generation: int
    admission_id: str | None
    params: dict[str, JsonValue]
    state: QuestionState
    result: dict[str, JsonValue] | None
    asked_at: float
    deadline: float | None
    settled_at: float | None

    def open_question(self) -> OpenQuestion:
        """All that a client needs to show it and to answer it."""
        return OpenQuestion(
            id=self.question_id,
            kind=self.kind,
            session_id=self.key.session_id,
            thread_id=self.key.thread_id,
            execution_generation=self.execution_generation,
            params=self.params,
            asked_at=self.asked_at,
            deadline=self.deadline,
        )


def next_id(tx: Transaction, origin: str) -> str:
    """`srq-<origin>-<n>`. n rises with each question of the home, across restarts, and no number is used twice."""
    row = tx.connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'question' RETURNING value").fetchone()
    return f"srq-{origin}-{row[0]}"


def open(tx: Transaction, new: NewQuestion) -> QuestionRecord:
    """Store a question as open and append `request.opened`. Raises `ThreadUnknown`."""
    thread = tx.head(new.key).id
    params = encode(new.params)
    tx.connection.execute(
        f"INSERT INTO question (thread, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', NULL, ?, ?, NULL)",
        (thread, new.question_id, new.key.session_id, new.key.thread_id, new.kind, tx.epoch, new.execution_generation,
         new.admission_id, params.decode(), tx.now, new.deadline),
    )  # fmt: skip
    return _told_open(tx, new.question_id)


def settle(
    tx: Transaction, question_id: str, state: SettledState, result: Mapping[str, JsonValue] | None = None
) -> tuple[QuestionRecord, bool]:
    """Give a question its outcome and append `request.settled`; True if this call did.

    The first one settles it; a later one changes nothing and is told what the outcome was (case ASK-06). `result` is
    stored and told to everybody: pass None for what is secret. Raises `NotFound`.
    """
    before = get(tx.connection, question_id)
    if before is None:
        raise NotFound(f"There is no question {question_id}.")
    if before.state != "open":
        return before, False
    stored = encode(result).decode() if result is not None else None
    tx.connection.execute(
        "UPDATE question SET state = ?, result = ?, settled_at = ? WHERE question_id = ?",
        (state, stored, tx.now, question_id),
    )
    record = get(tx.connection, question_id)
    assert record is not None
    tx.append(
        record.key,
        "request.settled",
        RequestSettled(id=question_id, kind=record.kind, state=state, result=record.result),
        execution_generation=record.execution_generation,
        admission_id=record.admission_id,
    )
    return record, True


def take_over(tx: Transaction, key: ThreadKey, admission_id: str, execution_generation: int) -> None:
    """Hand what an input's lost execution left open to the one that goes on with it, and say so, under the same ids."""
    for record in open_of(tx.connection, key, admission_id):
        tx.connection.execute(
            "UPDATE question SET execution_generation = ? WHERE question_id = ?",
            (execution_generation, record.question_id),
        )
        _told_open(tx, record.question_id)


def abandon_older(tx: Transaction, but: Collection[str] = ()) -> list[QuestionRecord]:
    """Abandon what owners before this one left open, but for these: nobody waits for the answers any more."""
    rows = tx.connection.execute(
        "SELECT question_id FROM question WHERE state = 'open' AND epoch < ? ORDER BY asked_at, question_id",
        (tx.epoch,),
    ).fetchall()
    return [settle(tx, question_id, "abandoned")[0] for (question_id,) in rows if question_id not in but]


def get(connection: sqlite3.Connection, question_id: str) -> QuestionRecord | None:
    """The question, or None."""
    row = connection.execute(f"SELECT {_COLUMNS} FROM question WHERE question_id = ?", (question_id,)).fetchone()
    return _record(row) if row is not None else None


def open_of(connection: sqlite3.Connection, key: ThreadKey, admission_id: str) -> list[QuestionRecord]:
    """What the executions of an input have open, in the order in which it was asked."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM question WHERE state = 'open' AND session_id = ? AND thread_id = ?"
        " AND admission_id = ? ORDER BY rowid",
        (key.session_id, key.thread_id, admission_id),
    )
    return [_record(row) for row in rows]


def open_questions(
    connection: sqlite3.Connection, key: ThreadKey | None = None, *, session_id: str | None = None
) -> list[OpenQuestion]:
    """The open questions of a thread, of a session, or of the home, in the order in which they were asked."""
    where, values = "", tuple[str, ...]()
    if key is not None:
        where, values = " AND session_id = ? AND thread_id = ?", (key.session_id, key.thread_id)
    elif session_id is not None:
        where, values = " AND session_id = ?", (session_id,)
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM question WHERE state = 'open'{where} ORDER BY asked_at, rowid", values
    )
    return [_record(row).open_question() for row in rows]


def _told_open(tx: Transaction, question_id: str) -> QuestionRecord:
    record = get(tx.connection, question_id)
    assert record is not None
    tx.append(
        record.key,
        "request.opened",
        RequestOpened(
            id=record.question_id,
            kind=record.kind,
            execution_generation=record.execution_generation,
            params=record.params,
            asked_at=record.asked_at,
            deadline=record.deadline,
        ),
        execution_generation=record.execution_generation,
        admission_id=record.admission_id,
    )
    return record


def _record(row: tuple[Any, ...]) -> QuestionRecord:
    question_id, session_id, thread_id, kind, epoch, generation, admission_id, params, state, result, *times = row
    return QuestionRecord(
        question_id, ThreadKey(session_id, thread_id), kind, epoch, generation, admission_id, orjson.loads(params),
        state, orjson.loads(result) if result is not None else None, *times,
    )  # fmt: skip
