"""What is removed when it is old, or when a home grows too large, and giving the room back to the disk.

Whole sessions go, the ones that were not used for longest first, archived ones before others; never a part of one, so
that each cursor into a thread that exists stays good. What is pinned, runs, waits, or asks something stays, whatever
its age; who is still open is told by the caller. The room that they leave is given back in small steps, each of them
one short commit, so that nobody waits for it.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.transaction import Transaction

VACUUM_PAGES: Final = 256
"""Pages given back in one commit: one MiB, some milliseconds of the writer."""

VACUUM_FROM: Final = 1024
"""Free pages from which on giving them back is worth it; fewer are soon used again."""

_REMOVABLE: Final = (
    "pinned = 0 AND NOT EXISTS (SELECT 1 FROM admission a INDEXED BY admission_pending WHERE"
    " a.session_id = session.session_id AND status IN ('queued', 'started', 'unknown'))"
    " AND NOT EXISTS (SELECT 1 FROM question q WHERE q.session_id = session.session_id AND q.state = 'open')"
)


def removable(connection: sqlite3.Connection, before: float | None, limit: int) -> list[str]:
    """Sessions that may be removed, the first to go first; with `before` only those not used since then."""
    rows = connection.execute(
        f"SELECT session_id FROM session WHERE (?1 IS NULL OR updated_at < ?1) AND {_REMOVABLE}"
        " ORDER BY archived DESC, updated_at, session_id LIMIT ?2",
        (before, limit),
    )
    return [str(row[0]) for row in rows]


def remove(tx: Transaction, session_id: str, before: float | None = None) -> tuple[ThreadKey, ...] | None:
    """Remove a session and all that belongs to it; its threads, whose tails are to end after the commit.

    None, and it stays, when it is not removable any more: it was used since it was looked at.
    """
    names = tx.connection.execute("SELECT thread_id FROM thread WHERE session_id = ?", (session_id,)).fetchall()
    done = tx.connection.execute(
        f"DELETE FROM session WHERE session_id = ?1 AND (?2 IS NULL OR updated_at < ?2) AND {_REMOVABLE}",
        (session_id, before),
    )
    if done.rowcount == 0:
        return None
    keys = tuple(ThreadKey(session_id, str(name)) for (name,) in names)
    for key in keys:
        tx.forget_head(key)
    return keys


def used_bytes(connection: sqlite3.Connection) -> int:
    """What the home's conversations take: the pages in use, and the blobs."""
    page, pages, free = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_size", "page_count", "freelist_count")
    )
    blobs = int(connection.execute("SELECT coalesce(sum(size), 0) FROM blob").fetchone()[0])
    return page * (pages - free) + blobs


def free_pages(connection: sqlite3.Connection) -> int:
    """Pages of the file that hold nothing."""
    return int(connection.execute("PRAGMA freelist_count").fetchone()[0])


def vacuum(tx: Transaction) -> int:
    """Give some free pages back to the disk; how many are left."""
    connection = tx.connection
    for _ in range(VACUUM_PAGES):
        # One page each: the module steps once through a statement that has no columns, whatever number it is given.
        connection.execute("PRAGMA incremental_vacuum(1)")
    return free_pages(connection)
