"""Who did what, as it is stored: one row per request that could change something, and none of what it said."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from hermes_ws.journal.transaction import Transaction

KEPT: Final = 100_000
"""Rows that are kept; the oldest go. A year of a person who does something every five minutes."""

TRIM_EVERY: Final = 256
"""Rows after which is looked whether there are too many."""

_COLUMNS: Final = "at, principal, credential, connection, method, session_id, outcome"


@final
@dataclass(frozen=True, slots=True)
class Deed:
    """What somebody did. `outcome` is `ok` or the type of the error; `at` is seconds since 1970."""

    at: float
    principal: str
    credential: str | None
    connection: str
    method: str
    session_id: str | None
    outcome: str


def add(tx: Transaction, deeds: Sequence[Deed]) -> None:
    """Store them, in their order."""
    tx.connection.executemany(
        f"INSERT INTO audit ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (deed.at, deed.principal, deed.credential, deed.connection, deed.method, deed.session_id, deed.outcome)
            for deed in deeds
        ],
    )
    (last,) = tx.connection.execute("SELECT coalesce(max(id), 0) FROM audit").fetchone()
    if last // TRIM_EVERY != (last - len(deeds)) // TRIM_EVERY:
        tx.connection.execute("DELETE FROM audit WHERE id <= ?", (last - KEPT,))


def page(
    connection: sqlite3.Connection,
    limit: int,
    *,
    before: int | None = None,
    principal: str | None = None,
    method: str | None = None,
) -> list[tuple[int, Deed]]:
    """The latest ones, or those before a number, newest first."""
    rows = connection.execute(
        f"SELECT id, {_COLUMNS} FROM audit WHERE (?1 IS NULL OR id < ?1) AND (?2 IS NULL OR principal = ?2)"
        " AND (?3 IS NULL OR method = ?3) ORDER BY id DESC LIMIT ?4",
        (before, principal, method, limit),
    )
    return [(number, Deed(*rest)) for number, *rest in rows]
