"""Soft compaction as it is stored: up to where a summary stands for a thread's messages when a model reads them.

The messages stay, and so does the journal; only what the next request is made of changes.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import final

from hermes_ws.contract.content import Message, summary_message
from hermes_ws.contract.errors import NotFound
from hermes_ws.journal import messages, threads
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.transaction import Transaction


@final
@dataclass(frozen=True, slots=True)
class Summary:
    """A summary, and the first message that it does not cover; None when it covers all of them."""

    text: str
    first_kept: str | None


def put(tx: Transaction, key: ThreadKey, summary: Summary) -> None:
    """Let a summary stand for all messages before `first_kept`. Raises `NotFound` for an id that is not there."""
    thread = tx.head(key).id
    if summary.first_kept is None:
        row = tx.connection.execute(
            "SELECT coalesce(max(id), 0) + 1 FROM message WHERE thread = ?", (thread,)
        ).fetchone()
    else:
        row = tx.connection.execute(
            "SELECT id FROM message WHERE thread = ? AND message_id = ?", (thread, summary.first_kept)
        ).fetchone()
    if row is None:
        raise NotFound(f"This thread has no message {summary.first_kept}.")
    tx.connection.execute(
        "INSERT INTO summary VALUES (?, ?, ?) ON CONFLICT (thread) DO UPDATE"
        " SET before = excluded.before, text = excluded.text",
        (thread, row[0], summary.text),
    )


def drop(tx: Transaction, key: ThreadKey) -> None:
    """Forget the summary of a thread whose messages were replaced."""
    tx.connection.execute("DELETE FROM summary WHERE thread = ?", (tx.head(key).id,))


def get(connection: sqlite3.Connection, key: ThreadKey) -> Summary | None:
    """The summary that is in force."""
    thread = threads.number(connection, key)
    row = connection.execute("SELECT before, text FROM summary WHERE thread = ?", (thread,)).fetchone()
    if row is None:
        return None
    first = connection.execute(
        "SELECT message_id FROM message WHERE thread = ? AND id >= ? ORDER BY id LIMIT 1", (thread, row[0])
    ).fetchone()
    return Summary(row[1], None if first is None else first[0])


def history(connection: sqlite3.Connection, key: ThreadKey) -> list[Message]:
    """What a model is given of a thread: the summary, where there is one, and the messages that it does not cover."""
    summary = get(connection, key)
    everything = messages.history(connection, key)
    if summary is None:
        return everything
    return [summary_message(summary.text), *since(everything, summary.first_kept)]


def since(everything: list[Message], first_kept: str | None) -> list[Message]:
    """The messages from `first_kept` on; none for None."""
    for index, message in enumerate(everything):
        if message.message_id == first_kept:
            return everything[index:]
    return []
