"""Replacing the journal of a thread: another history, another generation, in one transaction.

The events of the old generation are gone with it, and a client that stands in it is told `rebased`. The new one begins
with `thread.rebased` and tells everything that holds: the messages that are left, what waits or runs, and what is
asked. Whoever reads it from its beginning has the whole state.
"""

from __future__ import annotations

from collections.abc import Sequence

from hermes_ws.contract.content import Message
from hermes_ws.contract.events import ExecutionQueued, ExecutionStarted, Rebased, RequestOpened
from hermes_ws.journal import admissions, messages, questions, sessions
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.recovery import tell
from hermes_ws.journal.transaction import Transaction

__all__ = ["forget", "replace"]


def replace(tx: Transaction, key: ThreadKey, kept: Sequence[Message]) -> int:
    """Make `kept` the history of the thread. Returns the new generation; raises `ThreadUnknown`.

    An execution that runs goes on: its start is told again. Live text is not touched.
    """
    thread = tx.head(key).id
    connection = tx.connection
    connection.execute("DELETE FROM event WHERE thread = ?", (thread,))
    connection.execute("DELETE FROM message WHERE thread = ?", (thread,))
    # It stands for messages that are numbered anew; whoever compacts writes another.
    connection.execute("DELETE FROM summary WHERE thread = ?", (thread,))
    row = connection.execute(
        "UPDATE thread SET generation = generation + 1 WHERE id = ? RETURNING generation", (thread,)
    ).fetchone()
    generation = int(row[0])
    tx.forget_head(key)
    tx.append(key, "thread.rebased", Rebased(generation=generation))
    for message in kept:
        tell(tx, key, message, None, None)
    _retell(tx, key)
    return generation


def forget(tx: Transaction, session_id: str) -> list[ThreadKey]:
    """Delete a session and all that belongs to it. Returns the threads that it had."""
    keys = sessions.thread_keys(tx.connection, session_id)
    tx.connection.execute("DELETE FROM session WHERE session_id = ?", (session_id,))
    for key in keys:
        tx.forget_head(key)
    return keys


def copy(tx: Transaction, source: ThreadKey, target: ThreadKey, through_message_id: str | None = None) -> int:
    """Copy the history of a thread, up to and with a message, to the end of another. Returns how many messages."""
    copied = 0
    for message in messages.stored(tx.connection, source):
        tell(tx, target, message, None, None)
        copied += 1
        if message.message_id == through_message_id:
            break
    return copied


def _retell(tx: Transaction, key: ThreadKey) -> None:
    for each in admissions.pending(tx.connection, key):
        tx.append(
            key,
            "execution.queued",
            ExecutionQueued(admission_id=each.admission_id, input_id=each.input_id, text=each.text),
            admission_id=each.admission_id,
        )
        if each.status == "started" and each.execution_generation is not None:
            tx.append(
                key,
                "execution.started",
                ExecutionStarted(admission_id=each.admission_id, execution_generation=each.execution_generation),
                execution_generation=each.execution_generation,
                admission_id=each.admission_id,
            )
    for question in questions.open_questions(tx.connection, key):
        tx.append(
            key,
            "request.opened",
            RequestOpened(
                id=question.id,
                kind=question.kind,
                execution_generation=question.execution_generation,
                params=question.params,
                asked_at=question.asked_at,
                deadline=question.deadline,
            ),
            execution_generation=question.execution_generation,
        )
