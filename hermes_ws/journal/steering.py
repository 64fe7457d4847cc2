"""What is said to an execution while it runs, as it is stored.

It is admitted like an input, durable before anybody is told, and leaves the queue when the execution takes it: then it
is a message of the user in the history, and finished. What an execution leaves untaken is cancelled when it was meant
for it alone (`session.steer`), and else runs in its turn, as an input of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from hermes_ws.contract.content import Message, Usage
from hermes_ws.contract.events import ExecutionFinished
from hermes_ws.contract.model import Result
from hermes_ws.journal import admissions, threads
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.admission_life import Happened, move
from hermes_ws.journal.admissions import AdmissionRecord, NewAdmission
from hermes_ws.journal.transaction import Transaction
from hermes_ws.wire.frames import encode

__all__ = ["admit", "take"]


def admit(tx: Transaction, new: NewAdmission) -> AdmissionRecord | None:
    """Admit words for the execution `new.steers`; None when that is not the one that runs, and nothing is stored."""
    record = threads.get(tx.connection, new.key)
    if record is None or new.steers is None or record.execution_generation != new.steers:
        return None
    if not _runs(tx, new.key, new.steers):
        return None
    return admissions.admit(tx, new)[0]


def take(tx: Transaction, key: ThreadKey, admission_ids: Sequence[str], execution_generation: int) -> list[Message]:
    """The words of these admissions as messages of the user, in this order; they are finished with this.

    One that was cancelled meanwhile is passed over.
    """
    taken: list[Message] = []
    for admission_id in admission_ids:
        record = admissions.find(tx.connection, None, key.session_id, admission_id=admission_id)
        if record is None or record.status != "queued":
            continue
        of_its_own = {"execution_generation": execution_generation, "usage": encode(Usage()).decode()}
        move(tx, admission_id, Happened.TAKEN, outcome="completed", **of_its_own)
        taken.append(admissions.said_by_user(tx, key, record, execution_generation))
        # Without a generation: it ends this input, and not the execution that took it.
        ended: Result = ExecutionFinished(outcome="completed", usage=Usage())
        tx.append(key, "execution.finished", ended, admission_id=admission_id)
    return taken


def _runs(tx: Transaction, key: ThreadKey, execution_generation: int) -> bool:
    row = tx.connection.execute(
        "SELECT 1 FROM admission WHERE session_id = ? AND thread_id = ? AND status = 'started'"
        " AND execution_generation = ?",
        (key.session_id, key.thread_id, execution_generation),
    ).fetchone()
    return row is not None
