"""Committed events, read back: what follows a cursor, and what a client's cursor is worth."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple, final

from hermes_ws.contract.methods.threads import Position
from hermes_ws.journal import threads
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.stored_event import StoredEvent
from hermes_ws.wire.cursor import Cursor

__all__ = ["PAGE_BYTES", "PAGE_EVENTS", "Start", "StoredEvent", "position", "since"]

PAGE_EVENTS = 500
"""Events in one page of a catch-up: one read of some milliseconds, after which others have their turn."""

PAGE_BYTES = 256 * 1024
"""Bytes of payload in one page of a catch-up; a page is in memory once per connection that catches up."""


@final
class Start(NamedTuple):
    """What a client's cursor is worth, and the cursor from which it gets events."""

    position: Position
    cursor: Cursor


def position(client: Cursor | None, generation: int, head: int) -> Start:
    """Where a client stands in a journal that ends at `generation:head`.

    A cursor of another generation, or one beyond the head, is never answered with events that do not belong to it
    (cases REPLAY-02, REPLAY-14): the client starts anew from the beginning of the current generation.
    """
    if client is None:
        return Start("fresh", Cursor(generation, head))
    if client.generation == generation and client.seq <= head:
        return Start("ok", client)
    if client.generation < generation:
        return Start("rebased", Cursor(generation, 0))
    return Start("ahead", Cursor(generation, 0))


def since(
    connection: sqlite3.Connection,
    key: ThreadKey,
    cursor: Cursor,
    limit: int = PAGE_EVENTS,
    max_bytes: int = PAGE_BYTES,
) -> tuple[list[StoredEvent], bool]:
    """Events after the cursor, in order, and whether more follow. At least one if there is one, whatever its size."""
    thread = threads.number(connection, key)
    if thread is None:
        return [], False
    rows = connection.execute(
        "SELECT generation, seq, type, ts, payload, execution_generation, admission_id FROM event"
        " WHERE thread = ? AND generation = ? AND seq > ? ORDER BY seq LIMIT ?",
        (thread, cursor.generation, cursor.seq, limit + 1),
    )
    events: list[StoredEvent] = []
    size = 0
    for row in rows:
        size += len(row[4])
        if len(events) == limit or (events and size > max_bytes):
            rows.close()
            return events, True
        events.append(StoredEvent._make(row))
    return events, False
