"""Homes that have a past: sessions and events written before a server opens them."""

from __future__ import annotations

import sqlite3
import time
import uuid
from dataclasses import asdict
from pathlib import Path

import orjson
import trio

from hermes_ws.contract.events import Notice
from hermes_ws.journal import sessions
from hermes_ws.journal.database import Database
from hermes_ws.journal.sessions import NewSession
from hermes_ws.scope.identity import ORIGIN_LENGTH, Identity
from hermes_ws.wire.frames import encode

ORIGIN = "b" * ORIGIN_LENGTH
"""Of the home's identity, so that the id of its session is known beforehand."""

SESSION = f"{ORIGIN}-{'b' * 16}"
NOTICE = Notice(level="info", type="bench", message="x" * 120)
"""An event of about 300 bytes on the wire, as most are."""

_FILL = """WITH RECURSIVE n(i) AS (SELECT ?1 + 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
    INSERT INTO event SELECT ?3, 1, i, 'notice', 1.0 + i, NULL, NULL, ?4 FROM n"""


async def database(home: Path) -> Database:
    """The store of a home, open."""
    return await Database.open(
        home, home / "state" / "sessions.db", home / "run" / "owner.lock", instance_id="bench", profile="bench"
    )


def write(home: Path, events: int) -> None:
    """Give a home one session with so many events on its thread."""
    identity = Identity(id=uuid.uuid4().hex, origin=ORIGIN, name=home.name, created_at=time.time())
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "profile.json").write_text(orjson.dumps(asdict(identity)).decode())
    (home / "profile.json").chmod(0o600)
    trio.run(_session, home)
    fill(home, events)


def fill(home: Path, events: int) -> None:
    """Let the thread of the session grow to so many events."""
    connection = sqlite3.connect(home / "state" / "sessions.db", isolation_level=None)
    thread, head = connection.execute(
        "SELECT id, coalesce((SELECT max(seq) FROM event WHERE thread = thread.id), 0) FROM thread"
    ).fetchone()
    connection.execute("BEGIN")
    connection.execute(_FILL, (head, events, thread, encode(NOTICE)))
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


async def _session(home: Path) -> None:
    opened = await database(home)
    new = NewSession(SESSION, None, "default", str(home / "home"), "api", "owner", "digest")
    await opened.transact(lambda tx: sessions.create(tx, new))
    await opened.close()
