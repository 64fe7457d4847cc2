"""The journal against SQLite alone: committed appends of many producers, and catching up on a long thread.

Each figure is the median of rounds that alternate between ours and the reference, on the same disk, so that a noisy
minute falls on both.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from pathlib import Path
from statistics import median

import trio

from bench.figure import Figure
from hermes_ws.contract.events import Notice
from hermes_ws.journal import events, schema, sessions
from hermes_ws.journal.address import Address
from hermes_ws.journal.database import Database, ThreadKey, Transaction
from hermes_ws.journal.opening import connect
from hermes_ws.journal.sessions import NewSession
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import encode

ROUNDS = 5
"""Odd, so that the median was measured."""

PRODUCERS = 32
"""Tasks that append at once, each waiting for its commit: so many rows are in one commit of the reference."""

APPENDS = 8000
"""Events of one round: about half a second, and two checkpoints."""

CAUGHT_UP = 10_000
"""Events that one client missed."""

NOTICE = Notice(level="info", type="bench", message="x" * 120)
"""An event of about 200 bytes on the wire, as most are."""

_INSERT = "INSERT INTO event VALUES (?, 1, ?, 'notice', ?, NULL, NULL, ?)"


def _key(number: int) -> ThreadKey:
    return ThreadKey(f"ses-{number}", "main")


async def _opened(home: Path) -> Database:
    database = await Database.open(
        home, home / "state" / "sessions.db", home / "run" / "owner.lock", instance_id="bench", profile="bench"
    )

    def prepare(tx: Transaction) -> None:
        for number in range(PRODUCERS):
            sessions.create(tx, NewSession(f"ses-{number}", None, "default", "/", "api", "owner", "d"))

    await database.transact(prepare)
    return database


async def _append(database: Database, key: ThreadKey, count: int) -> None:
    for _ in range(count):
        await database.transact(lambda tx: tx.append(key, "notice", NOTICE))


async def _ours_appends(home: Path) -> float:
    database = await _opened(home)
    try:
        began = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for number in range(PRODUCERS):
                nursery.start_soon(_append, database, _key(number), APPENDS // PRODUCERS)
        return APPENDS / (time.perf_counter() - began)
    finally:
        await database.close()


def _raw(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True)
    connection = connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = OFF")
    schema.migrate(connection, path)
    return connection


def _raw_appends(home: Path) -> float:
    connection = _raw(home / "raw.db")
    body = encode(NOTICE)
    began = time.perf_counter()
    for seq in range(1, APPENDS // PRODUCERS + 1):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_INSERT, [(thread, seq, time.time(), body) for thread in range(PRODUCERS)])
        connection.execute("COMMIT")
    took = time.perf_counter() - began
    connection.close()
    return APPENDS / took


async def _ours_catch_up(database: Database) -> float:
    """Milliseconds until the last of the frames is there, in the pages that a connection reads."""
    address, cursor, more = Address("bench", "ses-0", "main"), Cursor(1, 0), True

    def page(connection: sqlite3.Connection) -> tuple[int, Cursor, bool]:
        found, more = events.since(connection, _key(0), cursor)
        return len([event.frame(address).ws for event in found]), found[-1].cursor, more

    began, count = time.perf_counter(), 0
    while more:
        read, cursor, more = await database.read(page)
        count += read
    took = time.perf_counter() - began
    assert count == CAUGHT_UP
    return took * 1000


async def _raw_catch_up(database: Database) -> float:
    """Milliseconds of reading the same rows at once."""

    def read(connection: sqlite3.Connection) -> float:
        began = time.perf_counter()
        rows = connection.execute("SELECT * FROM event WHERE thread = 1 ORDER BY generation, seq").fetchall()
        took = time.perf_counter() - began
        assert len(rows) == CAUGHT_UP
        return took * 1000

    return await database.read(read)


async def _catch_up(home: Path) -> tuple[list[float], list[float]]:
    database = await _opened(home)
    try:

        def fill(tx: Transaction) -> None:
            for _ in range(CAUGHT_UP):
                tx.append(_key(0), "notice", NOTICE)

        await database.transact(fill)
        ours, raw = list[float](), list[float]()
        for _ in range(ROUNDS):
            ours.append(await _ours_catch_up(database))
            raw.append(await _raw_catch_up(database))
        return ours, raw
    finally:
        await database.close()


def figures() -> list[Figure]:
    """The journal's lines of the table."""
    ours, raw = list[float](), list[float]()
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as place:
        for round in range(ROUNDS):
            home = Path(place) / str(round)
            ours.append(trio.run(_ours_appends, home))
            raw.append(_raw_appends(home / "raw"))
        caught_up, read = trio.run(_catch_up, Path(place) / "caught-up")
    return [
        Figure(
            f"committed appends, {PRODUCERS} producers (against SQLite group commit)", median(ours), median(raw), "/s"
        ),
        Figure(
            f"frames of {CAUGHT_UP:,} missed events (against reading their rows)", median(caught_up), median(read), "ms"
        ),
    ]


def main() -> None:
    """Print the figures."""
    for figure in figures():
        print(figure.row())


if __name__ == "__main__":
    main()
