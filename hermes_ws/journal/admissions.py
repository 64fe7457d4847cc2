"""Admissions: that an input was accepted, what became of it, and the one execution per thread that it becomes.

    queued ── claim ──► started ── settle ──► finished
       │                   └─ owner lost ──► unknown ── resolve ──► finished
       └─ retire ──► cancelled

An input is admitted once for its (principal, session, `input_id`), however often it is sent. A claim raises the
thread's execution generation; only that generation, under the same epoch, may settle it. While one is `unknown` the
thread's queue waits: nothing is repeated on a guess.
"""

from __future__ import annotations

import secrets
import sqlite3
from dataclasses import dataclass
from typing import Any, final

from hermes_ws.contract.content import Message, Usage
from hermes_ws.contract.errors import AdmissionConflict, NotFound, SessionBusy, StaleEpoch, StaleGeneration
from hermes_ws.contract.events import (
    ExecutionError,
    ExecutionFinished,
    ExecutionLost,
    ExecutionQueued,
    ExecutionStarted,
    MessageComplete,
    Outcome,
)
from hermes_ws.contract.methods.threads import ReceiptStatus
from hermes_ws.journal import messages, questions, sessions, threads
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.sessions import PENDING
from hermes_ws.journal.transaction import Transaction
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import encode, scrub

_COLUMNS = (
    "admission_id, session_id, thread_id, principal, input_id, digest, text, finite, unattended, status,"
    " execution_generation, cursor_generation, cursor_seq, outcome, usage, created_at"
)


@final
@dataclass(frozen=True, slots=True)
class NewAdmission:
    """An input to be admitted. `digest` stands for its content; `reject_if_busy` is the mode `reject`."""

    key: ThreadKey
    principal: str
    input_id: str
    digest: str
    text: str
    finite: bool = False
    unattended: bool = False
    reject_if_busy: bool = False


@final
@dataclass(frozen=True, slots=True)
class AdmissionRecord:
    """An admission as it is stored. `cursor` is the position just before its first event."""

    admission_id: str
    session_id: str
    thread_id: str
    principal: str
    input_id: str
    digest: str
    text: str
    finite: bool
    unattended: bool
    status: ReceiptStatus
    execution_generation: int | None
    cursor: Cursor
    outcome: Outcome | None
    usage: Usage | None
    created_at: float

    @property
    def key(self) -> ThreadKey:
        """The thread that it was given to."""
        return ThreadKey(self.session_id, self.thread_id)


def admit(tx: Transaction, new: NewAdmission) -> tuple[AdmissionRecord, bool]:
    """Admit an input: the stored record and False for a repeated one, else a queued one, `execution.queued`, and True.

    Raises `AdmissionConflict` for the same id with other content, `SessionBusy` if it asked for that, `ThreadUnknown`,
    and `LimitReached` for a text that would not fit into an event.
    """
    connection = tx.connection
    known = find(connection, new.principal, new.key.session_id, input_id=new.input_id)
    if known is not None:
        if known.digest != new.digest or known.thread_id != new.key.thread_id:
            raise AdmissionConflict(
                f"The input {new.input_id} was admitted with other content.", admission_id=known.admission_id
            )
        return known, False
    head = tx.head(new.key)
    if new.reject_if_busy and pending(connection, new.key):
        raise SessionBusy("An execution is active or queued on this thread.", hint="Wait for it, or use mode queue.")
    admission_id = f"adm-{secrets.token_hex(8)}"
    text = scrub(new.text)
    connection.execute(
        f"INSERT INTO admission (thread, {_COLUMNS})"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', NULL, ?, ?, NULL, NULL, ?)",
        (head.id, admission_id, new.key.session_id, new.key.thread_id, new.principal, new.input_id, new.digest, text,
         new.finite, new.unattended, head.generation, head.seq, tx.now),
    )  # fmt: skip
    tx.append(
        new.key,
        "execution.queued",
        ExecutionQueued(admission_id=admission_id, input_id=new.input_id, text=text),
        admission_id=admission_id,
    )
    sessions.touch(tx, new.key.session_id)
    return _known(connection, admission_id), True


def claim(tx: Transaction, key: ThreadKey) -> AdmissionRecord | None:
    """Start the head of the thread's queue: `execution.started`, then the user's message.

    None when the queue is empty, when an execution runs, or when one is `unknown` and waits to be resolved.
    """
    head = tx.head(key)
    waiting = pending(tx.connection, key)
    if not waiting or any(each.status != "queued" for each in waiting):
        return None
    admission = waiting[0]
    generation = int(
        tx.connection.execute(
            "UPDATE thread SET execution_generation = execution_generation + 1 WHERE id = ?"
            " RETURNING execution_generation",
            (head.id,),
        ).fetchone()[0]
    )
    tx.connection.execute(
        "UPDATE admission SET status = 'started', execution_generation = ? WHERE admission_id = ?",
        (generation, admission.admission_id),
    )
    tx.connection.execute(
        "INSERT INTO execution (thread, execution_generation, admission_id, epoch, started_at) VALUES (?, ?, ?, ?, ?)",
        (head.id, generation, admission.admission_id, tx.epoch, tx.now),
    )
    started = ExecutionStarted(admission_id=admission.admission_id, execution_generation=generation)
    # The words stand in `text` alone: a block would carry them twice, and the longest input fits into a frame once.
    message = Message(message_id=messages.new_id(), role="user", text=admission.text)
    said = MessageComplete(message_id=message.message_id, role="user", text=message.text)
    for type, payload in (("execution.started", started), ("message.complete", said)):
        tx.append(key, type, payload, execution_generation=generation, admission_id=admission.admission_id)
    messages.add(tx, key, message)
    return _known(tx.connection, admission.admission_id)


def settle(
    tx: Transaction,
    key: ThreadKey,
    execution_generation: int,
    outcome: Outcome,
    error: ExecutionError | None = None,
    usage: Usage | None = None,
) -> AdmissionRecord:
    """End an execution: its outcome, `execution.finished`, and its admission, in one step.

    Raises `StaleGeneration` if it is not the one that runs, and `StaleEpoch` if an owner before this one started it.
    """
    record = threads.get(tx.connection, key)
    row = tx.connection.execute(
        "SELECT e.epoch, e.admission_id FROM execution e JOIN admission a USING (admission_id)"
        " WHERE e.thread = ? AND e.execution_generation = ? AND a.status = 'started'",
        (record.id if record is not None else None, execution_generation),
    ).fetchone()
    if record is None or row is None or record.execution_generation != execution_generation:
        active = record.execution_generation if record is not None else None
        raise StaleGeneration(f"Execution {execution_generation} is not the one that runs.", active=active)
    epoch, admission_id = row
    if epoch != tx.epoch:
        raise StaleEpoch("The execution was started by an earlier owner of this home.", epoch=epoch, active=tx.epoch)
    return _finish(tx, key, record.id, admission_id, execution_generation, outcome, error, usage)


def lose_started(tx: Transaction) -> list[AdmissionRecord]:
    """For the start of an owner: what earlier owners left running becomes `unknown`, with `execution.lost`.

    The questions that they left open are abandoned first. Returns the lost ones, oldest first.
    """
    questions.abandon_older(tx)
    rows = tx.connection.execute(
        "SELECT a.admission_id FROM admission a INDEXED BY admission_pending JOIN execution e"
        " ON e.thread = a.thread AND e.execution_generation = a.execution_generation"
        f" WHERE {PENDING} AND a.status = 'started' AND e.epoch < ? ORDER BY a.id",
        (tx.epoch,),
    ).fetchall()
    lost: list[AdmissionRecord] = []
    for (admission_id,) in rows:
        tx.connection.execute("UPDATE admission SET status = 'unknown' WHERE admission_id = ?", (admission_id,))
        admission = _known(tx.connection, admission_id)
        generation = admission.execution_generation or 0
        tx.append(
            admission.key,
            "execution.lost",
            ExecutionLost(admission_id=admission_id, execution_generation=generation),
            execution_generation=generation,
            admission_id=admission_id,
        )
        lost.append(admission)
    return lost


def resolve_unknown(
    tx: Transaction, key: ThreadKey, admission_id: str, outcome: Outcome = "interrupted"
) -> AdmissionRecord:
    """Say what became of a lost execution, so that the queue goes on: it ends with that outcome.

    A repeated call gets the stored record. Raises `NotFound` if there is no such admission, and `StaleGeneration` if it
    is not lost and never was finished.
    """
    admission = find(tx.connection, None, key.session_id, admission_id=admission_id)
    if admission is None or admission.thread_id != key.thread_id:
        raise NotFound(f"There is no admission {admission_id} on this thread.")
    if admission.status == "finished":
        return admission
    if admission.status != "unknown":
        raise StaleGeneration(f"The admission {admission_id} is {admission.status}, not lost.")
    generation = admission.execution_generation or 0
    return _finish(tx, key, tx.head(key).id, admission_id, generation, outcome, None, None)


def retire(tx: Transaction, key: ThreadKey, admission_id: str) -> tuple[AdmissionRecord, bool]:
    """Cancel an input that is still queued; True if this call did. Any other is returned as it is.

    `execution.finished` with the outcome `cancelled` tells the clients. Raises `NotFound`.
    """
    admission = find(tx.connection, None, key.session_id, admission_id=admission_id)
    if admission is None or admission.thread_id != key.thread_id:
        raise NotFound(f"There is no admission {admission_id} on this thread.")
    if admission.status != "queued":
        return admission, False
    tx.connection.execute(
        "UPDATE admission SET status = 'cancelled', outcome = 'cancelled' WHERE admission_id = ?", (admission_id,)
    )
    tx.append(
        key, "execution.finished", ExecutionFinished(outcome="cancelled", usage=Usage()), admission_id=admission_id
    )
    return _known(tx.connection, admission_id), True


def find(
    connection: sqlite3.Connection,
    principal: str | None,
    session_id: str,
    *,
    input_id: str | None = None,
    admission_id: str | None = None,
) -> AdmissionRecord | None:
    """An admission of the session by one of its ids. With a principal, only its own; an `input_id` needs one to be
    unique, and without it the newest of that id is found."""
    wanted = {"principal": principal, "input_id": input_id, "admission_id": admission_id}
    named = {column: value for column, value in wanted.items() if value is not None}
    where = "".join([f" AND {column} = ?" for column in named])
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM admission WHERE session_id = ?{where} ORDER BY id DESC LIMIT 1",
        (session_id, *named.values()),
    ).fetchone()
    return _record(row) if row is not None else None


def pending(connection: sqlite3.Connection, key: ThreadKey) -> list[AdmissionRecord]:
    """What was admitted to the thread and has not ended, in the order of admission."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM admission WHERE session_id = ? AND thread_id = ? AND {PENDING} ORDER BY id",
        (key.session_id, key.thread_id),
    )
    return [_record(row) for row in rows]


def queued_threads(connection: sqlite3.Connection) -> list[ThreadKey]:
    """The threads on which something is queued, in the order in which the oldest of each was admitted."""
    rows = connection.execute(
        f"SELECT session_id, thread_id FROM admission WHERE {PENDING} AND status = 'queued'"
        " GROUP BY session_id, thread_id ORDER BY min(id)"
    )
    return [ThreadKey(session_id, thread_id) for session_id, thread_id in rows]


def _finish(
    tx: Transaction,
    key: ThreadKey,
    thread: int,
    admission_id: str,
    execution_generation: int,
    outcome: Outcome,
    error: ExecutionError | None,
    usage: Usage | None,
) -> AdmissionRecord:
    used = usage if usage is not None else Usage()
    consumed = encode(used).decode()
    failed = encode(error).decode() if error is not None else None
    tx.connection.execute(
        "UPDATE execution SET ended_at = ?, outcome = ?, error = ?, usage = ?"
        " WHERE thread = ? AND execution_generation = ?",
        (tx.now, outcome, failed, consumed, thread, execution_generation),
    )
    tx.connection.execute(
        "UPDATE admission SET status = 'finished', outcome = ?, usage = ? WHERE admission_id = ?",
        (outcome, consumed, admission_id),
    )
    tx.append(
        key,
        "execution.finished",
        ExecutionFinished(outcome=outcome, error=error, usage=used),
        execution_generation=execution_generation,
        admission_id=admission_id,
    )
    sessions.touch(tx, key.session_id)
    return _known(tx.connection, admission_id)


def _known(connection: sqlite3.Connection, admission_id: str) -> AdmissionRecord:
    return _record(
        connection.execute(f"SELECT {_COLUMNS} FROM admission WHERE admission_id = ?", (admission_id,)).fetchone()
    )


def _record(row: tuple[Any, ...]) -> AdmissionRecord:
    (admission_id, session_id, thread_id, principal, input_id, digest, text, finite, unattended, status,
     execution_generation, generation, seq, outcome, usage, created_at) = row  # fmt: skip
    return AdmissionRecord(
        admission_id=admission_id,
        session_id=session_id,
        thread_id=thread_id,
        principal=principal,
        input_id=input_id,
        digest=digest,
        text=text,
        finite=bool(finite),
        unattended=bool(unattended),
        status=status,
        execution_generation=execution_generation,
        cursor=Cursor(generation, seq),
        outcome=outcome,
        usage=Usage.model_validate_json(usage) if usage is not None else None,
        created_at=created_at,
    )
