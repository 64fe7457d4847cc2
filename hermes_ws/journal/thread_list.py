"""The threads of a session as a client sees them: title, kind, where they come from, and what they do."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final, Literal, final

from hermes_ws.contract.errors import ThreadUnknown
from hermes_ws.journal import threads
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.threads import ThreadRecord
from hermes_ws.journal.transaction import Transaction
from hermes_ws.wire.frames import scrub

SIDE: Final = "side"
"""The kind of a thread that began beside the others, with nothing."""

State = Literal["idle", "running", "waiting", "lost"]

_STATE = """CASE
    WHEN EXISTS (SELECT 1 FROM admission a WHERE a.thread = t.id AND a.status = 'unknown') THEN 'lost'
    WHEN EXISTS (SELECT 1 FROM question q WHERE q.thread = t.id AND q.state = 'open') THEN 'waiting'
    WHEN EXISTS (SELECT 1 FROM admission a WHERE a.thread = t.id AND a.status IN ('queued', 'started')) THEN 'running'
    ELSE 'idle' END"""


@final
@dataclass(frozen=True, slots=True)
class ThreadRow:
    """One thread. `parent` is a thread of the same session; None for one that began by itself."""

    thread_id: str
    kind: str
    title: str | None
    parent: str | None
    generation: int
    execution_generation: int
    created_at: float
    state: State


def of_session(connection: sqlite3.Connection, session_id: str) -> list[ThreadRow]:
    """All threads of a session, the oldest first."""
    rows = connection.execute(
        f"SELECT t.thread_id, t.kind, t.title, l.parent, t.generation, t.execution_generation, t.created_at, {_STATE}"
        " FROM thread t LEFT JOIN lineage l ON l.thread = t.id WHERE t.session_id = ? ORDER BY t.id",
        (session_id,),
    )
    return [ThreadRow(*row) for row in rows]


def create(tx: Transaction, key: ThreadKey, title: str | None) -> ThreadRecord:
    """Make a thread beside the others, or take the one that is there already."""
    record = threads.get(tx.connection, key)
    if record is None:
        record = threads.ensure(tx, key, SIDE)
        rename(tx, key, title)
    return record


def rename(tx: Transaction, key: ThreadKey, title: str | None) -> None:
    """Give the thread a title, or None. Raises `ThreadUnknown`."""
    changed = tx.connection.execute(
        "UPDATE thread SET title = ? WHERE session_id = ? AND thread_id = ?",
        (None if title is None else scrub(title), key.session_id, key.thread_id),
    )
    if changed.rowcount == 0:
        raise ThreadUnknown(f"There is no thread {key.thread_id} in this session.")


def delete(tx: Transaction, key: ThreadKey) -> None:
    """Remove the thread and all that belongs to it."""
    tx.connection.execute("DELETE FROM thread WHERE session_id = ? AND thread_id = ?", (key.session_id, key.thread_id))
    tx.forget_head(key)
