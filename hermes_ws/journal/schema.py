"""The tables of a home's database, and how an older one becomes a newer one.

`user_version` says which version a file has. Migrations go forward only, one transaction each, and before the first of
them the file is copied beside itself with SQLite's online backup. A file that is newer, or not known at all, is refused
as it is.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hermes_ws.contract.errors import StorageUnavailable

Step = Sequence[str]
"""The statements that lead from one version to the next."""

_TEXT: Final = "json_extract(CAST({0}.body AS TEXT), '$.text')"
"""The text of a message, inside its body."""

_VERSION_1: Final[Step] = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "INSERT INTO meta VALUES ('epoch', 0), ('clean', 1), ('question', 0), ('clock', 0)",
    """CREATE TABLE session (
        session_id TEXT PRIMARY KEY, title TEXT, archived INTEGER NOT NULL DEFAULT 0, agent TEXT NOT NULL,
        cwd TEXT NOT NULL, source TEXT NOT NULL, launch TEXT NOT NULL, principal TEXT NOT NULL, request_id TEXT,
        digest TEXT NOT NULL, revision INTEGER NOT NULL, created_at REAL NOT NULL, updated_at REAL NOT NULL,
        pinned INTEGER NOT NULL DEFAULT 0
    ) STRICT""",
    "CREATE UNIQUE INDEX session_request ON session (principal, request_id) WHERE request_id IS NOT NULL",
    "CREATE INDEX session_recent ON session (updated_at, session_id)",
    "CREATE INDEX session_title ON session (title) WHERE title IS NOT NULL",
    """CREATE TABLE thread (
        id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES session ON DELETE CASCADE,
        thread_id TEXT NOT NULL, kind TEXT NOT NULL, generation INTEGER NOT NULL,
        execution_generation INTEGER NOT NULL, created_at REAL NOT NULL, title TEXT,
        UNIQUE (session_id, thread_id)
    ) STRICT""",
    """CREATE TABLE event (
        thread INTEGER NOT NULL REFERENCES thread ON DELETE CASCADE, generation INTEGER NOT NULL, seq INTEGER NOT NULL,
        type TEXT NOT NULL, ts REAL NOT NULL, execution_generation INTEGER, admission_id TEXT, payload BLOB NOT NULL,
        PRIMARY KEY (thread, generation, seq)
    ) STRICT, WITHOUT ROWID""",
    # `steers` is the execution that an input is meant for and no other, null for one that runs in its turn; `attached`
    # is what came with it: blocks as JSON, null for most.
    """CREATE TABLE admission (
        id INTEGER PRIMARY KEY AUTOINCREMENT, admission_id TEXT NOT NULL UNIQUE,
        thread INTEGER NOT NULL REFERENCES thread ON DELETE CASCADE, session_id TEXT NOT NULL, thread_id TEXT NOT NULL,
        principal TEXT NOT NULL, input_id TEXT NOT NULL, digest TEXT NOT NULL, text TEXT NOT NULL,
        finite INTEGER NOT NULL, unattended INTEGER NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('queued', 'started', 'finished', 'cancelled', 'unknown')),
        execution_generation INTEGER, cursor_generation INTEGER NOT NULL, cursor_seq INTEGER NOT NULL, outcome TEXT,
        usage TEXT, created_at REAL NOT NULL, steers INTEGER, attached TEXT,
        UNIQUE (principal, session_id, input_id)
    ) STRICT""",
    "CREATE INDEX admission_pending ON admission (session_id, thread_id, id)"
    " WHERE status IN ('queued', 'started', 'unknown')",
    "CREATE INDEX admission_session ON admission (session_id, id)",
    """CREATE TABLE execution (
        thread INTEGER NOT NULL REFERENCES thread ON DELETE CASCADE, execution_generation INTEGER NOT NULL,
        admission_id TEXT NOT NULL REFERENCES admission (admission_id) ON DELETE CASCADE, epoch INTEGER NOT NULL,
        started_at REAL NOT NULL, ended_at REAL, outcome TEXT, error TEXT, usage TEXT,
        PRIMARY KEY (thread, execution_generation)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE message (
        id INTEGER PRIMARY KEY AUTOINCREMENT, thread INTEGER NOT NULL REFERENCES thread ON DELETE CASCADE,
        message_id TEXT NOT NULL, role TEXT NOT NULL, body BLOB NOT NULL,
        UNIQUE (thread, message_id)
    ) STRICT""",
    "CREATE INDEX message_order ON message (thread, id)",
    """CREATE TABLE question (
        question_id TEXT PRIMARY KEY, thread INTEGER NOT NULL REFERENCES thread ON DELETE CASCADE,
        session_id TEXT NOT NULL, thread_id TEXT NOT NULL, kind TEXT NOT NULL, epoch INTEGER NOT NULL,
        execution_generation INTEGER NOT NULL, admission_id TEXT, params TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('open', 'settled', 'expired', 'withdrawn', 'abandoned')),
        result TEXT, asked_at REAL NOT NULL, deadline REAL, settled_at REAL
    ) STRICT""",
    "CREATE INDEX question_open ON question (session_id, thread_id) WHERE state = 'open'",
    """CREATE TABLE timer (
        timer_id TEXT PRIMARY KEY, kind TEXT NOT NULL, due REAL NOT NULL, payload BLOB NOT NULL
    ) STRICT""",
    """CREATE TABLE blob (
        hash TEXT PRIMARY KEY, size INTEGER NOT NULL, made_at REAL NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE blob_use (
        hash TEXT NOT NULL REFERENCES blob, thread INTEGER NOT NULL REFERENCES thread ON DELETE CASCADE,
        PRIMARY KEY (hash, thread)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX blob_of_thread ON blob_use (thread)",
    """CREATE TABLE lineage (
        thread INTEGER PRIMARY KEY REFERENCES thread ON DELETE CASCADE, parent TEXT NOT NULL, depth INTEGER NOT NULL,
        about TEXT NOT NULL, result TEXT, created_at REAL NOT NULL
    ) STRICT""",
    """CREATE TABLE summary (
        thread INTEGER PRIMARY KEY REFERENCES thread ON DELETE CASCADE, before INTEGER NOT NULL, text TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE spending (
        id INTEGER PRIMARY KEY AUTOINCREMENT, thread INTEGER NOT NULL REFERENCES thread ON DELETE CASCADE,
        at REAL NOT NULL, usage TEXT NOT NULL
    ) STRICT""",
    "CREATE INDEX spending_thread ON spending (thread)",
    """CREATE TABLE file_before (
        id INTEGER PRIMARY KEY AUTOINCREMENT, thread INTEGER NOT NULL REFERENCES thread ON DELETE CASCADE,
        execution_generation INTEGER NOT NULL, path TEXT NOT NULL, before TEXT, after TEXT NOT NULL,
        made_at REAL NOT NULL
    ) STRICT""",
    "CREATE INDEX file_of_thread ON file_before (thread, id)",
    """CREATE TABLE schedule (
        schedule_id TEXT PRIMARY KEY, plan TEXT NOT NULL, state TEXT NOT NULL, last TEXT, created_at REAL NOT NULL
    ) STRICT, WITHOUT ROWID""",
    "CREATE TABLE accepted (digest TEXT PRIMARY KEY, accepted_at REAL NOT NULL) STRICT, WITHOUT ROWID",
    """CREATE TABLE audit (
        id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, principal TEXT NOT NULL, credential TEXT,
        connection TEXT NOT NULL, method TEXT NOT NULL, session_id TEXT, outcome TEXT NOT NULL
    ) STRICT""",
    # What can be searched is the text of messages, which stays where it is: the index holds no copy of it.
    f"CREATE VIEW message_text AS SELECT id, {_TEXT.format('message')} AS text FROM message",
    """CREATE VIRTUAL TABLE message_search USING fts5(
        text, content = 'message_text', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
    )""",
    f"""CREATE TRIGGER message_added AFTER INSERT ON message WHEN {_TEXT.format("new")} <> '' BEGIN
        INSERT INTO message_search (rowid, text) VALUES (new.id, {_TEXT.format("new")});
    END""",
    f"""CREATE TRIGGER message_gone AFTER DELETE ON message WHEN {_TEXT.format("old")} <> '' BEGIN
        INSERT INTO message_search (message_search, rowid, text) VALUES ('delete', old.id, {_TEXT.format("old")});
    END""",
    # It outlives its session: the answer to a repeated deletion is here.
    """CREATE TABLE receipt (
        principal TEXT NOT NULL, request_id TEXT NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL,
        created_at REAL NOT NULL, PRIMARY KEY (principal, request_id)
    ) STRICT, WITHOUT ROWID""",
)

STEPS: Final[Sequence[Step]] = (_VERSION_1,)
"""Step n leads from version n to n + 1. A step that was released is never changed."""


APPLICATION: Final = 0x4857_4A52
"""SQLite's `application_id` of a file with these tables. A file with others keeps what it has, whatever its version."""


def refuse_unknown(connection: sqlite3.Connection, database: Path, steps: Sequence[Step] = STEPS) -> int:
    """The version of a file that is empty or of this program, and 0 for an empty one. Only reads.

    Raises `StorageUnavailable` for any other: of a newer version, of another program, or made before there was a first
    version.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    empty = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
    if (version, application) == (0, 0) and empty:
        return 0
    if application != APPLICATION or version == 0:
        raise StorageUnavailable(
            f"{database} is a database of another program, or older than the first version of this one.",
            hint="Nothing was changed in it. Move the file away, with its -wal and -shm, to begin with an empty one.",
            file=str(database),
        )
    if version > len(steps):
        raise StorageUnavailable(
            f"{database} has version {version}; this program knows versions up to {len(steps)}.",
            hint="Use the newer hermes-ws that wrote it, or put its copy from before the migration back.",
            file=str(database),
        )
    return version


def migrate(connection: sqlite3.Connection, database: Path, steps: Sequence[Step] = STEPS) -> Path | None:
    """Bring the database to the version of `steps`. Returns the copy that was made before, if there was a need for one.

    Each step is one transaction: a step that fails leaves the file at the version before it. Raises what
    `refuse_unknown` raises, and sqlite3 errors.
    """
    version = refuse_unknown(connection, database, steps)
    if version == len(steps):
        return None
    copy = _copy(connection, database, version) if version > 0 else None
    for number in range(version, len(steps)):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in steps[number]:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {number + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return copy


def begin(connection: sqlite3.Connection) -> None:
    """Settle what only an empty file can be given: that it can give pages back (`vacuum.py`). To come first."""
    if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")


def _copy(connection: sqlite3.Connection, database: Path, version: int) -> Path:
    """The whole database as it is now, durable, as `<name>.v<version>` beside it. The file itself is only read."""
    kept = database.with_name(f"{database.name}.v{version}")
    _copy_over(connection, kept)
    return kept


def copy_to(connection: sqlite3.Connection, kept: Path) -> None:
    """The whole database as it is now, durable, as a file that does not exist yet and that nobody else may read.

    Raises FileExistsError, OSError and sqlite3 errors; then nothing is left behind.
    """
    if kept.exists():
        raise FileExistsError(errno.EEXIST, "File exists", str(kept))
    _copy_over(connection, kept)


def _copy_over(connection: sqlite3.Connection, kept: Path) -> None:
    unfinished = kept.with_name(f"{kept.name}.part")
    unfinished.unlink(missing_ok=True)
    # It is another file than the live database, which only SQLite opens.
    os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        target = sqlite3.connect(unfinished, isolation_level=None)
        try:
            connection.backup(target)
        finally:
            target.close()
        _sync(unfinished)
        unfinished.replace(kept)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    _sync(kept.parent)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
