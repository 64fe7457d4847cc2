"""Sessions as they are stored: making one, finding one, listing them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, final

import orjson
from pydantic import JsonValue

from hermes_ws.contract.errors import AdmissionConflict, InvalidParams
from hermes_ws.journal import threads
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.threads import ThreadRecord
from hermes_ws.journal.transaction import Transaction
from hermes_ws.wire.frames import encode, scrub

SessionState = Literal["idle", "running", "waiting", "lost"]

PREVIEW = 200
"""Characters of the last input that a list shows; two lines of a wide terminal."""

_COLUMNS = (
    "session_id, title, archived, agent, cwd, source, launch, principal, request_id, digest, revision, created_at,"
    " updated_at, pinned"
)

PENDING = "status IN ('queued', 'started', 'unknown')"
"""What has not ended. Word for word the condition of the index `admission_pending`, or SQLite would not use it."""

_STATE = f"""CASE
    WHEN EXISTS (SELECT 1 FROM admission a INDEXED BY admission_pending
        WHERE a.session_id = s.session_id AND {PENDING} AND a.status = 'unknown') THEN 'lost'
    WHEN EXISTS (SELECT 1 FROM question q WHERE q.session_id = s.session_id AND q.state = 'open') THEN 'waiting'
    WHEN EXISTS (SELECT 1 FROM admission a INDEXED BY admission_pending
        WHERE a.session_id = s.session_id AND {PENDING}) THEN 'running'
    ELSE 'idle' END"""

_PREVIEW = """coalesce((SELECT substr(text, 1, ?) FROM admission a
    WHERE a.session_id = s.session_id ORDER BY id DESC LIMIT 1), '')"""


@final
@dataclass(frozen=True, slots=True)
class NewSession:
    """What a session is made with. `digest` stands for its content, so that a repeated request can be told. With
    `if_missing` it is made only where there is none of that title."""

    session_id: str
    title: str | None
    agent: str
    cwd: str
    source: str
    principal: str
    digest: str
    request_id: str | None = None
    launch: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    if_missing: bool = False


@final
@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session as it is stored. `launch` is the request that made it, and never changes; times are since 1970."""

    session_id: str
    title: str | None
    archived: bool
    agent: str
    cwd: str
    source: str
    launch: Mapping[str, JsonValue]
    principal: str
    request_id: str | None
    digest: str
    revision: int
    created_at: float
    updated_at: float
    pinned: bool

    def with_launch(self, launch: Mapping[str, JsonValue]) -> SessionRecord:
        """This session as if it had been made with another request. Stores nothing."""
        return replace(self, launch=launch)


@final
@dataclass(frozen=True, slots=True)
class CreatedSession:
    """A session with its main thread. `new` is False when the request was a repeated one, or one of that title was
    there already, which `existing` tells."""

    record: SessionRecord
    thread: ThreadRecord
    new: bool
    existing: bool = False


@final
@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session in a list: what it does now, and the beginning of its last input."""

    record: SessionRecord
    state: SessionState
    preview: str


def create(tx: Transaction, new: NewSession) -> CreatedSession:
    """Make a session and its thread `main`; the stored one for a repeated `request_id` of the same principal.

    Raises `AdmissionConflict` if that request had other content.
    """
    connection = tx.connection
    if new.request_id is not None:
        row = connection.execute(
            f"SELECT {_COLUMNS} FROM session WHERE principal = ? AND request_id = ?", (new.principal, new.request_id)
        ).fetchone()
        if row is not None:
            record = _record(row)
            if record.digest != new.digest:
                raise AdmissionConflict(
                    f"The request {new.request_id} made another session.", session_id=record.session_id
                )
            return CreatedSession(record, threads.ensure(tx, ThreadKey(record.session_id, "main")), new=False)
    title = scrub(new.title) if new.title is not None else None
    there = by_title(connection, title) if new.if_missing and title is not None else None
    if there is not None:
        return CreatedSession(there, threads.ensure(tx, ThreadKey(there.session_id, "main")), new=False, existing=True)
    connection.execute(
        f"INSERT INTO session ({_COLUMNS}) VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, 0)",
        (new.session_id, title, new.agent, new.cwd, new.source, encode(new.launch).decode(), new.principal,
         new.request_id, new.digest, tx.now, tx.now),
    )  # fmt: skip
    record = get(connection, new.session_id)
    assert record is not None
    return CreatedSession(record, threads.ensure(tx, ThreadKey(new.session_id, "main")), new=True)


def edit(tx: Transaction, session_id: str, **changed: object) -> SessionRecord:
    """Change columns of the session (`title`, `archived`, `pinned`, `launch` as JSON) and raise its revision by one."""
    assignments = "".join(f"{column} = ?, " for column in changed)
    tx.connection.execute(
        f"UPDATE session SET {assignments}revision = revision + 1, updated_at = ? WHERE session_id = ?",
        (*changed.values(), tx.now, session_id),
    )
    record = get(tx.connection, session_id)
    assert record is not None
    return record


def touch(tx: Transaction, session_id: str) -> None:
    """Bring the session to the top of the list: something was asked of it, or it ended something."""
    tx.connection.execute("UPDATE session SET updated_at = ? WHERE session_id = ?", (tx.now, session_id))


def get(connection: sqlite3.Connection, session_id: str) -> SessionRecord | None:
    """The session, or None."""
    return _one(connection, "WHERE session_id = ?", (session_id,))


def by_title(connection: sqlite3.Connection, title: str) -> SessionRecord | None:
    """The session of that title; the one used last if several have it."""
    return _one(connection, "WHERE title = ? ORDER BY updated_at DESC, session_id DESC LIMIT 1", (title,))


def latest(connection: sqlite3.Connection, source: str | None = None) -> SessionRecord | None:
    """The session used last, of all or of one source. Archived ones do not count."""
    if source is None:
        return _one(connection, "WHERE archived = 0 ORDER BY updated_at DESC, session_id DESC LIMIT 1", ())
    return _one(
        connection,
        "WHERE archived = 0 AND source = ? ORDER BY updated_at DESC, session_id DESC LIMIT 1",
        (source,),
    )


def thread_keys(connection: sqlite3.Connection, session_id: str) -> list[ThreadKey]:
    """Its threads, the oldest first."""
    rows = connection.execute("SELECT thread_id FROM thread WHERE session_id = ? ORDER BY id", (session_id,))
    return [ThreadKey(session_id, thread_id) for (thread_id,) in rows]


def count(connection: sqlite3.Connection) -> int:
    """How many sessions there are."""
    return int(connection.execute("SELECT count(*) FROM session").fetchone()[0])


def page(
    connection: sqlite3.Connection,
    limit: int,
    before: str | None = None,
    query: str | None = None,
    state: SessionState | None = None,
    *,
    archived: bool = False,
    source: str | None = None,
    agent: str | None = None,
) -> tuple[list[SessionSummary], str | None]:
    """Sessions that are (not) archived, pinned ones first, then those used last; and what to pass as `before` for the
    following page.

    `query` looks for its words' letters in title and preview. Raises `InvalidParams` for a `before` of no page.
    """
    values: list[object] = [PREVIEW, archived]
    bound = ""
    if before is not None:
        bound = " AND (s.pinned, s.updated_at, s.session_id) < (?, ?, ?)"
        values += _place(before)
    filters = ""
    if query:
        filters += r" AND (title LIKE ? ESCAPE '\' OR preview LIKE ? ESCAPE '\')"
        pattern = "%" + scrub(query).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        values += [pattern, pattern]
    for column, wanted in (("state", state), ("source", source), ("agent", agent)):
        if wanted is not None:
            filters += f" AND {column} = ?"
            values.append(wanted)
    rows = connection.execute(
        f"SELECT {_COLUMNS}, state, preview FROM (SELECT s.*, {_STATE} AS state, {_PREVIEW} AS preview FROM session s"
        f" WHERE archived = ?{bound}) WHERE 1 = 1{filters}"
        " ORDER BY pinned DESC, updated_at DESC, session_id DESC LIMIT ?",
        (*values, limit + 1),
    ).fetchall()
    found = [SessionSummary(_record(row[:-2]), row[-2], row[-1]) for row in rows[:limit]]
    if len(rows) <= limit:
        return found, None
    last = found[-1].record
    return found, place(last.pinned, last.updated_at, last.session_id)


def place(pinned: bool, updated_at: float, session_id: str) -> str:
    """What to pass as `before` for what follows this session in a list, be it of one profile or of several."""
    return f"{int(pinned)}~{updated_at!r}~{session_id}"


def summary(connection: sqlite3.Connection, record: SessionRecord) -> SessionSummary:
    """What a list shows of one session."""
    row = connection.execute(
        f"SELECT {_STATE}, {_PREVIEW} FROM session s WHERE session_id = ?", (PREVIEW, record.session_id)
    ).fetchone()
    return SessionSummary(record, row[0], row[1])


def _place(before: str) -> tuple[int, float, str]:
    pinned, _, rest = before.partition("~")
    at, _, session_id = rest.partition("~")
    try:
        return int(pinned), float(at), session_id
    except ValueError:
        raise InvalidParams(
            "This is no page of the list.", hint="Pass the `next` of the page before, or nothing.", path="before"
        ) from None


def _one(connection: sqlite3.Connection, where: str, values: tuple[object, ...]) -> SessionRecord | None:
    row = connection.execute(f"SELECT {_COLUMNS} FROM session {where}", values).fetchone()
    return _record(row) if row is not None else None


def _record(row: tuple[Any, ...]) -> SessionRecord:
    session_id, title, archived, agent, cwd, source, launch, *rest = row
    return SessionRecord(session_id, title, bool(archived), agent, cwd, source, orjson.loads(launch), *rest)
