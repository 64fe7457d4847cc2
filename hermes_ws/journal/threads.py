"""Threads: one line of a conversation each, with a journal of its own."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import final

from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.transaction import HEAD, Transaction
from hermes_ws.wire.cursor import Cursor

__all__ = ["ThreadKey", "ThreadRecord", "ensure", "get", "number"]


@final
@dataclass(frozen=True, slots=True)
class ThreadRecord:
    """A thread as it is stored. `head` is the sequence of its last event in `generation`."""

    id: int
    key: ThreadKey
    kind: str
    generation: int
    head: int
    execution_generation: int

    @property
    def cursor(self) -> Cursor:
        """Where a client stands that has everything."""
        return Cursor(self.generation, self.head)


def ensure(tx: Transaction, key: ThreadKey, kind: str = "main") -> ThreadRecord:
    """The thread, made if it is not there: generation 1, no events. The session must exist."""
    tx.connection.execute(
        "INSERT INTO thread"
        " (session_id, thread_id, kind, generation, execution_generation, created_at)"
        " VALUES (?, ?, ?, 1, 0, ?) ON CONFLICT DO NOTHING",
        (key.session_id, key.thread_id, kind, tx.now),
    )
    record = get(tx.connection, key)
    assert record is not None
    return record


def get(connection: sqlite3.Connection, key: ThreadKey) -> ThreadRecord | None:
    """The thread, or None."""
    row = connection.execute(
        f"SELECT id, kind, generation, {HEAD}, execution_generation FROM thread WHERE session_id = ? AND thread_id = ?",
        (key.session_id, key.thread_id),
    ).fetchone()
    if row is None:
        return None
    id, kind, generation, head, execution_generation = row
    return ThreadRecord(id, key, kind, generation, head, execution_generation)


def number(connection: sqlite3.Connection, key: ThreadKey) -> int | None:
    """The thread's number in this file, or None."""
    row = connection.execute(
        "SELECT id FROM thread WHERE session_id = ? AND thread_id = ?", (key.session_id, key.thread_id)
    ).fetchone()
    return int(row[0]) if row is not None else None
