"""Admissions: that an input was accepted, what became of it, and the one execution per thread that it becomes.

Their life is in `admission_life.py`. An input is admitted once for its (principal, session, `input_id`), however often
it is sent. A claim raises the thread's execution generation; only that generation, under the same epoch, may settle it.
What steers an execution (`steering.py`) is an admission too, so that it is as durable as any; with `steers` it is for
that execution alone, and ends with it.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from pydantic import ConfigDict, TypeAdapter

from hermes_ws.contract.content import Attachment, Block, Message, Usage
from hermes_ws.contract.errors import AdmissionConflict, NotFound, SessionBusy, StaleEpoch, StaleGeneration
from hermes_ws.contract.events import (
    ExecutionError,
    ExecutionFinished,
    ExecutionQueued,
    ExecutionStarted,
    MessageComplete,
    Notice,
    Outcome,
)
from hermes_ws.contract.methods.threads import ReceiptStatus
from hermes_ws.journal import messages, questions, sessions, threads
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.admission_life import Happened, move
from hermes_ws.journal.sessions import PENDING
from hermes_ws.journal.transaction import Transaction
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import encode, scrub

_COLUMNS = (
    "admission_id, session_id, thread_id, principal, input_id, digest, text, finite, unattended, status,"
    " execution_generation, cursor_generation, cursor_seq, outcome, usage, created_at, steers"
)


_ATTACHED: Final = TypeAdapter(list[Attachment], config=ConfigDict(defer_build=True))


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
    steers: int | None = None
    """The execution generation that it is for, and no other; None for an input that runs in its turn."""
    attached: Sequence[Attachment] = ()
    """Pictures and files; their blobs exist, and are referred to in the same transaction."""


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
    steers: int | None

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
    stored = find(connection, new.principal, new.key.session_id, input_id=new.input_id)
    if stored is not None:
        if stored.digest != new.digest or stored.thread_id != new.key.thread_id:
            raise AdmissionConflict(
                f"The input {new.input_id} was admitted with other content.", admission_id=stored.admission_id
            )
        return stored, False
    head = tx.head(new.key)
    if new.reject_if_busy and pending(connection, new.key):
        raise SessionBusy("An execution is active or queued on this thread.", hint="Wait for it, or use mode queue.")
    admission_id = f"adm-{secrets.token_hex(8)}"
    text = scrub(new.text)
    connection.execute(
        f"INSERT INTO admission (thread, {_COLUMNS})"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', NULL, ?, ?, NULL, NULL, ?, ?)",
        (head.id, admission_id, new.key.session_id, new.key.thread_id, new.principal, new.input_id, new.digest, text,
         new.finite, new.unattended, head.generation, head.seq, tx.now, new.steers),
    )  # fmt: skip
    if new.attached:
        attached = _ATTACHED.dump_json(list(new.attached)).decode()
        connection.execute("UPDATE admission SET attached = ? WHERE admission_id = ?", (attached, admission_id))
    tx.append(
        new.key,
        "execution.queued",
        ExecutionQueued(admission_id=admission_id, input_id=new.input_id, text=text),
        admission_id=admission_id,
    )
    sessions.touch(tx, new.key.session_id)
    return known(connection, admission_id), True


def claim(tx: Transaction, key: ThreadKey) -> AdmissionRecord | None:
    """Start the head of the thread's queue: `execution.started`, then the user's message (not again for one that
    goes on after its owner was lost).

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
    move(tx, admission.admission_id, Happened.CLAIMED, execution_generation=generation)
    goes_on = executions(tx.connection, admission.admission_id) > 0
    tx.connection.execute(
        "INSERT INTO execution (thread, execution_generation, admission_id, epoch, started_at) VALUES (?, ?, ?, ?, ?)",
        (head.id, generation, admission.admission_id, tx.epoch, tx.now),
    )
    started = ExecutionStarted(admission_id=admission.admission_id, execution_generation=generation)
    tx.append(key, "execution.started", started, execution_generation=generation, admission_id=admission.admission_id)
    if goes_on:
        questions.take_over(tx, key, admission.admission_id, generation)
    else:
        said_by_user(tx, key, admission, generation)
    return known(tx.connection, admission.admission_id)


def said_by_user(tx: Transaction, key: ThreadKey, admission: AdmissionRecord, execution_generation: int) -> Message:
    """Store the words of an input as the user's message, at the end of the thread."""
    # The words stand in `text` alone: a block would carry them twice, and the longest input fits into a frame once.
    row = tx.connection.execute(
        "SELECT attached FROM admission WHERE admission_id = ?", (admission.admission_id,)
    ).fetchone()
    attached: list[Block] = [] if row is None or row[0] is None else [*_ATTACHED.validate_json(row[0])]
    message = Message(message_id=messages.new_id(), role="user", text=admission.text, content=attached)
    tx.append(
        key,
        "message.complete",
        MessageComplete(message_id=message.message_id, role="user", text=message.text, content=attached),
        execution_generation=execution_generation,
        admission_id=admission.admission_id,
    )
    messages.add(tx, key, message)
    return message


def executions(connection: sqlite3.Connection, admission_id: str) -> int:
    """How many executions an input has had."""
    row = connection.execute("SELECT count(*) FROM execution WHERE admission_id = ?", (admission_id,)).fetchone()
    return int(row[0])


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
    retire_steering(tx, key, execution_generation)
    return _finish(tx, key, admission_id, execution_generation, Happened.SETTLED, outcome, error, usage)


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
    return _finish(tx, key, admission_id, generation, Happened.RESOLVED, outcome, None, None)


def retire_steering(tx: Transaction, key: ThreadKey, execution_generation: int) -> None:
    """Cancel what was meant for this execution alone and was not taken by it: it is never aimed at another one."""
    rows = tx.connection.execute(
        f"SELECT admission_id FROM admission WHERE session_id = ? AND thread_id = ? AND {PENDING}"
        " AND status = 'queued' AND steers <= ? ORDER BY id",
        (key.session_id, key.thread_id, execution_generation),
    ).fetchall()
    for (admission_id,) in rows:
        retire(tx, key, admission_id)
        missed = Notice(level="warning", type="missed_steer", message="What was said came too late to be heard.")
        tx.append(key, "notice", missed, execution_generation=execution_generation, admission_id=admission_id)


def retire(tx: Transaction, key: ThreadKey, admission_id: str) -> tuple[AdmissionRecord, bool]:
    """Cancel an input that is still queued; True if this call did. Any other is returned as it is.

    `execution.finished` with the outcome `cancelled` tells the clients. Raises `NotFound`.
    """
    admission = find(tx.connection, None, key.session_id, admission_id=admission_id)
    if admission is None or admission.thread_id != key.thread_id:
        raise NotFound(f"There is no admission {admission_id} on this thread.")
    if admission.status != "queued":
        return admission, False
    move(tx, admission_id, Happened.RETIRED, outcome="cancelled")
    tx.append(
        key, "execution.finished", ExecutionFinished(outcome="cancelled", usage=Usage()), admission_id=admission_id
    )
    return known(tx.connection, admission_id), True


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
    admission_id: str,
    execution_generation: int,
    happened: Happened,
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
        (tx.now, outcome, failed, consumed, tx.head(key).id, execution_generation),
    )
    move(tx, admission_id, happened, outcome=outcome, usage=consumed)
    tx.append(
        key,
        "execution.finished",
        ExecutionFinished(outcome=outcome, error=error, usage=used),
        execution_generation=execution_generation,
        admission_id=admission_id,
    )
    sessions.touch(tx, key.session_id)
    return known(tx.connection, admission_id)


def known(connection: sqlite3.Connection, admission_id: str) -> AdmissionRecord:
    """The admission of this id, which exists."""
    return _record(
        connection.execute(f"SELECT {_COLUMNS} FROM admission WHERE admission_id = ?", (admission_id,)).fetchone()
    )


def _record(row: tuple[Any, ...]) -> AdmissionRecord:
    (admission_id, session_id, thread_id, principal, input_id, digest, text, finite, unattended, status,
     execution_generation, generation, seq, outcome, usage, created_at, steers) = row  # fmt: skip
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
        steers=steers,
    )
