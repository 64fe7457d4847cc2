"""What an owner finds that comes after one that was killed: executions that were running.

One that stood at a safe point goes on, once: no tool call was under way, so nothing can have happened that is not
written down. It is queued again, at the head, as the same admission, and what it asked a person stays asked. Any other
is `unknown`, and its thread's queue waits until somebody says what became of it: calls are not repeated on a guess.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final, final

import orjson

from hermes_ws.contract.content import Block, Message, ToolCallBlock, ToolResultBlock
from hermes_ws.contract.events import ExecutionLost, MessageComplete, ToolComplete
from hermes_ws.contract.questions import APPROVAL, CONTINUE
from hermes_ws.journal import admissions, messages, questions
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.admission_life import Happened, move
from hermes_ws.journal.admissions import AdmissionRecord
from hermes_ws.journal.questions import QuestionRecord
from hermes_ws.journal.sessions import PENDING
from hermes_ws.journal.transaction import Transaction

RESUMED_ONCE: Final = 1
"""Executions after which an input goes on by itself. What brings a server down twice is not tried a third time."""

NOT_STARTED: Final = "Not started: the server ended before. Nothing of it has happened."


_ASKED_BETWEEN: Final = frozenset({APPROVAL.kind, CONTINUE.kind})
"""The kinds that are asked while no call is under way, so that whoever goes on asks them again."""


@final
@dataclass(frozen=True, slots=True)
class Lost:
    """An execution that an earlier owner left running, and whether it goes on."""

    admission: AdmissionRecord
    resumes: bool


def recover(tx: Transaction, *, resume: bool) -> list[Lost]:
    """For the start of an owner: `execution.lost` for each execution that earlier owners left running, oldest first.

    With `resume` those at a safe point are queued again; inputs that are finite or unattended never are. The questions
    that the others left open are abandoned first, and what was meant for these executions alone is cancelled.
    """
    rows = tx.connection.execute(
        "SELECT a.admission_id FROM admission a INDEXED BY admission_pending JOIN execution e"
        " ON e.thread = a.thread AND e.execution_generation = a.execution_generation"
        f" WHERE {PENDING} AND a.status = 'started' AND e.epoch < ? ORDER BY a.id",
        (tx.epoch,),
    ).fetchall()
    found = [admissions.known(tx.connection, admission_id) for (admission_id,) in rows]
    resumed = {each.admission_id for each in found if resume and _stood_safely(tx, each)}
    kept = {each.admission_id: _kept(tx, each) for each in found if each.admission_id in resumed}
    questions.abandon_older(tx, {question.question_id for left in kept.values() for question in left})
    return [_lose(tx, each, kept.get(each.admission_id)) for each in found]


def _stood_safely(tx: Transaction, admission: AdmissionRecord) -> bool:
    if admission.finite or admission.unattended:
        return False
    again = admissions.executions(tx.connection, admission.admission_id) <= RESUMED_ONCE
    generation = admission.execution_generation or 0
    return again and not _call_under_way(tx.connection, tx.head(admission.key).id, generation)


def _kept(tx: Transaction, admission: AdmissionRecord) -> list[QuestionRecord]:
    """What stays asked for the execution that goes on."""
    left = questions.open_of(tx.connection, admission.key, admission.admission_id)
    return [each for each in left if each.kind in _ASKED_BETWEEN]


def _lose(tx: Transaction, admission: AdmissionRecord, kept: list[QuestionRecord] | None) -> Lost:
    key, generation, admission_id = admission.key, admission.execution_generation or 0, admission.admission_id
    resumes = kept is not None
    if kept is not None and not any(each.kind == APPROVAL.kind for each in kept):
        _close_batch(tx, key, generation, admission_id)
    move(tx, admission_id, Happened.OWNER_LOST_SAFELY if resumes else Happened.OWNER_LOST)
    tx.append(
        key,
        "execution.lost",
        ExecutionLost(admission_id=admission_id, execution_generation=generation, resumes=resumes),
        execution_generation=generation,
        admission_id=admission_id,
    )
    admissions.retire_steering(tx, key, generation)
    return Lost(admissions.known(tx.connection, admission_id), resumes)


def _call_under_way(connection: sqlite3.Connection, thread: int, generation: int) -> bool:
    return bool(
        _calls(connection, thread, generation, "tool.start").keys()
        - _calls(connection, thread, generation, "tool.complete").keys()
    )


def _calls(connection: sqlite3.Connection, thread: int, generation: int, type: str) -> dict[str, dict[str, object]]:
    """The payloads of one type of tool events of an execution, by call."""
    rows = connection.execute(
        "SELECT payload FROM event WHERE thread = ? AND type = ? AND execution_generation = ? ORDER BY generation, seq",
        (thread, type, generation),
    )
    payloads = [orjson.loads(payload) for (payload,) in rows]
    return {payload["call_id"]: payload for payload in payloads}


def results_before(connection: sqlite3.Connection, admission: AdmissionRecord) -> dict[str, tuple[str, bool]]:
    """What came of the calls that an input's lost execution had made: output, and whether it is an error, by call."""
    row = connection.execute(
        "SELECT thread, max(execution_generation) FROM execution WHERE admission_id = ? AND execution_generation < ?",
        (admission.admission_id, admission.execution_generation or 0),
    ).fetchone()
    if row is None or row[1] is None:
        return {}
    done = _calls(connection, row[0], row[1], "tool.complete")
    return {call_id: (str(end["output"]), bool(end["is_error"])) for call_id, end in done.items()}


def _close_batch(tx: Transaction, key: ThreadKey, generation: int, admission_id: str) -> None:
    """Give the calls of the last message their results, as far as the journal knows them: the batch was broken off
    between two calls, and the ones that were left had not begun.
    """
    found, _ = messages.recent(tx.connection, key, limit=1)
    if not found or found[-1].role != "assistant":
        return
    calls = [block for block in found[-1].content if isinstance(block, ToolCallBlock)]
    if not calls:
        return
    done = _calls(tx.connection, tx.head(key).id, generation, "tool.complete")
    blocks: list[Block] = []
    for call in calls:
        end = done.get(call.call_id)
        output = NOT_STARTED if end is None else str(end["output"])
        failed = end is None or bool(end["is_error"])
        told = None if end is None else ToolComplete.model_validate(end)
        blocks.append(
            ToolResultBlock(
                call_id=call.call_id,
                name=call.name,
                output=output,
                is_error=failed,
                images=[] if told is None else told.images,
                diff=None if told is None else told.diff,
            )
        )
    for message in messages.fitting(blocks):
        tell(tx, key, message, generation, admission_id)


def tell(
    tx: Transaction, key: ThreadKey, message: Message, execution_generation: int | None, admission_id: str | None
) -> None:
    """Store a whole message and tell it."""
    tx.append(
        key,
        "message.complete",
        MessageComplete(message_id=message.message_id, role=message.role, text=message.text, content=message.content),
        execution_generation=execution_generation,
        admission_id=admission_id,
    )
    messages.add(tx, key, message)
