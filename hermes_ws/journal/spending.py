"""What was consumed at a model outside of any execution: the summary of a fork, or of an edit that makes room.

It is kept beside the journal, since an edit may replace that, and a preview changes nothing in it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

import orjson

from hermes_ws.contract.content import Usage
from hermes_ws.journal import threads
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.transaction import Transaction

_INSERT: Final = "INSERT INTO spending (thread, at, usage) VALUES (?, ?, ?)"


def keep(tx: Transaction, key: ThreadKey, usage: Usage) -> None:
    """Count it for a thread. One that is gone by now has nothing counted any more."""
    record = threads.get(tx.connection, key)
    if record is not None:
        tx.connection.execute(_INSERT, (record.id, tx.now, orjson.dumps(usage.model_dump(mode="json")).decode()))


def since(connection: sqlite3.Connection, start: float) -> Iterator[tuple[float, Usage]]:
    """What was consumed in the whole home at or after `start`, seconds since 1970, and when."""
    for at, usage in connection.execute("SELECT at, usage FROM spending WHERE at >= ? ORDER BY at", (start,)):
        yield float(at), Usage.model_validate(orjson.loads(usage))


def of_session(connection: sqlite3.Connection, session_id: str) -> Iterator[Usage]:
    """What was consumed for the threads of a session."""
    rows = connection.execute(
        "SELECT s.usage FROM spending s JOIN thread t ON t.id = s.thread WHERE t.session_id = ?", (session_id,)
    )
    for (usage,) in rows:
        yield Usage.model_validate(orjson.loads(usage))
