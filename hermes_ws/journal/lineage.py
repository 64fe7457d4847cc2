"""Where a thread that is not `main` comes from: a fork of another thread, or a subagent that one started."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, final

import orjson
from pydantic import JsonValue

from hermes_ws.journal import threads
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.transaction import Transaction
from hermes_ws.wire.frames import encode

Kind = Literal["fork", "subagent"]

_COLUMNS = (
    "t.session_id, t.thread_id, t.kind, l.parent, l.depth, l.about, l.result, l.created_at, t.execution_generation"
)
_FROM = "FROM lineage l JOIN thread t ON t.id = l.thread"


@final
@dataclass(frozen=True, slots=True)
class Lineage:
    """A thread's origin. `parent` is a thread of the same session; `about` is what it was made with, and never changes.

    `result` is what came of a subagent's task, once it has ended; None while it has not.
    """

    key: ThreadKey
    kind: str
    parent: str
    depth: int
    about: Mapping[str, JsonValue]
    result: Mapping[str, JsonValue] | None
    created_at: float
    execution_generation: int


def add(
    tx: Transaction, key: ThreadKey, kind: Kind, *, parent: str, depth: int, about: Mapping[str, JsonValue]
) -> None:
    """Make the thread together with its origin. The session and the parent must exist."""
    record = threads.ensure(tx, key, kind)
    tx.connection.execute(
        "INSERT INTO lineage (thread, parent, depth, about, created_at) VALUES (?, ?, ?, ?, ?)",
        (record.id, parent, depth, encode(about).decode(), tx.now),
    )


def finish(tx: Transaction, key: ThreadKey, result: Mapping[str, JsonValue]) -> None:
    """Keep what came of a subagent's task."""
    tx.connection.execute("UPDATE lineage SET result = ? WHERE thread = ?", (encode(result).decode(), tx.head(key).id))


def get(connection: sqlite3.Connection, key: ThreadKey) -> Lineage | None:
    """The origin of a thread; None for one that began by itself, as `main` does."""
    row = connection.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE t.session_id = ? AND t.thread_id = ?", (key.session_id, key.thread_id)
    ).fetchone()
    return None if row is None else _lineage(row)


def of_session(connection: sqlite3.Connection, session_id: str, kind: Kind | None = None) -> list[Lineage]:
    """The origins of a session's threads, oldest first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE t.session_id = ?1 AND (?2 IS NULL OR t.kind = ?2) ORDER BY t.id",
        (session_id, kind),
    )
    return [_lineage(row) for row in rows]


def tools_used(connection: sqlite3.Connection, key: ThreadKey) -> tuple[int, str | None]:
    """How many calls a thread made, and the tool of the last one, as far as its journal tells."""
    thread = threads.number(connection, key)
    rows = connection.execute(
        "SELECT json_extract(CAST(payload AS TEXT), '$.name') FROM event WHERE thread = ? AND type = 'tool.start'"
        " ORDER BY generation, seq",
        (thread,),
    ).fetchall()
    return len(rows), str(rows[-1][0]) if rows else None


def _lineage(row: tuple[Any, ...]) -> Lineage:
    session_id, thread_id, kind, parent, depth, about, result, created_at, generation = row
    return Lineage(
        key=ThreadKey(session_id, thread_id),
        kind=kind,
        parent=parent,
        depth=depth,
        about=cast("dict[str, JsonValue]", orjson.loads(about)),
        result=None if result is None else cast("dict[str, JsonValue]", orjson.loads(result)),
        created_at=created_at,
        execution_generation=generation,
    )
