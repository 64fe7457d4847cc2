"""Opening a home's database: the order of checks that make it ours and sound before anything is written to it.

Lock, file system, damage, migration, epoch. Whatever fails, the file is left as it was found and the lock is given
free. All of it blocks and runs in the writer's thread.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, final

from hermes_ws.contract.errors import HermesError, StorageUnavailable
from hermes_ws.journal import schema
from hermes_ws.journal.failures import storage_error
from hermes_ws.journal.filesystem import refuse_network
from hermes_ws.journal.lock import OwnerLock
from hermes_ws.journal.schema import STEPS, Step, migrate, refuse_unknown

Durability = Literal["full", "normal"]

BUSY_SECONDS = 10.0
"""How long a statement waits for a program that holds the database (a backup, a person's sqlite3). Case STORE-03:
patience is a time, not a number of tries; this is below the shortest deadline of a client's request."""

STATEMENTS = 256
"""Prepared statements kept per connection; there are about a hundred, and one per size of a batch of events."""


_CLOCK: Final = 1_000_000
"""Units in a second of the clock in `meta`, which are whole numbers."""


@final
@dataclass(frozen=True, slots=True)
class Place:
    """Where a database is and how it is to be used."""

    database: Path
    lock: Path
    instance_id: str
    durability: Durability
    steps: Sequence[Step] = STEPS
    network_file_systems: tuple[str, ...] = ()
    """Those that the home may lie on, by name."""


@final
@dataclass(frozen=True, slots=True)
class Opened:
    """An open database: the writing connection, the lock on its home, the epoch, and the last time stamp in it."""

    connection: sqlite3.Connection
    lock: OwnerLock
    epoch: int
    last_ts: float
    recovered: bool
    """Whether the last owner ended without closing it."""


def open_place(place: Place) -> Opened:
    """Open for writing. Raises `ProfileUnusable` (owned, or on a network), `StorageUnavailable`, `StorageFull`."""
    lock = OwnerLock.take(place.lock)
    try:
        return _open_locked(place, lock)
    except sqlite3.Error as error:
        lock.release()
        raise storage_error(error, place.database) from error
    except OSError as error:
        lock.release()
        raise StorageUnavailable(
            f"{place.database} cannot be opened: {error.strerror}.", file=str(place.database)
        ) from error
    except BaseException:
        lock.release()
        raise


def _open_locked(place: Place, lock: OwnerLock) -> Opened:
    place.database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    refuse_network(place.database.parent, place.network_file_systems)
    if not place.database.exists():
        # A new, empty file that nobody else may read; SQLite gives its mode to -wal and -shm. No connection exists yet.
        os.close(os.open(place.database, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    connection = connect(place.database)
    try:
        refuse_unknown(connection, place.database, place.steps)
        recovered = _check(connection, place.database)
        schema.begin(connection)
        mode = str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        if mode != "wal":
            raise StorageUnavailable(
                f"{place.database} cannot keep a write-ahead log (its mode is {mode}).", file=str(place.database)
            )
        connection.execute(f"PRAGMA synchronous = {place.durability.upper()}")
        migrate(connection, place.database, place.steps)
        epoch = _raise_epoch(connection, lock)
        lock.write(place.instance_id, epoch)
        last_ts = _last_ts(connection, recovered=recovered)
        return Opened(connection, lock, epoch, last_ts, recovered)
    except BaseException:
        connection.close()
        raise


def connect(database: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode. It may be used from any thread, by one at a time."""
    connection = sqlite3.connect(
        database, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=STATEMENTS
    )
    connection.execute("PRAGMA foreign_keys = ON")
    if read_only:
        connection.execute("PRAGMA query_only = ON")
    return connection


def _check(connection: sqlite3.Connection, database: Path) -> bool:
    """Look for damage if the last owner did not close the file (case STORE-05). True if it did not."""
    if int(connection.execute("PRAGMA user_version").fetchone()[0]) == 0:
        return False
    row = connection.execute("SELECT value FROM meta WHERE key = 'clean'").fetchone()
    if row is not None and row[0] == 1:
        return False
    found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if found != "ok":
        raise StorageUnavailable(
            f"{database} is damaged: {found}.",
            hint="Nothing was overwritten. Keep a copy of the file and its -wal, and restore a backup.",
            file=str(database),
        )
    return True


def _raise_epoch(connection: sqlite3.Connection, lock: OwnerLock) -> int:
    """One more than either place remembers, so that putting back a backup of one of them repeats no epoch."""
    connection.execute("BEGIN IMMEDIATE")
    stored = int(connection.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()[0])
    epoch = max(stored, lock.previous.epoch if lock.previous is not None else 0) + 1
    connection.execute("UPDATE meta SET value = ? WHERE key = 'epoch'", (epoch,))
    connection.execute("UPDATE meta SET value = 0 WHERE key = 'clean'")
    connection.execute("COMMIT")
    return epoch


def _last_ts(connection: sqlite3.Connection, *, recovered: bool) -> float:
    """The last time stamp that was given out, so that a clock that was put back meanwhile disorders nothing."""
    if recovered:
        row = connection.execute(
            "SELECT max((SELECT ts FROM event WHERE event.thread = thread.id"
            " ORDER BY generation DESC, seq DESC LIMIT 1)) FROM thread"
        ).fetchone()
        return float(row[0] or 0.0)
    clock = connection.execute("SELECT value FROM meta WHERE key = 'clock'").fetchone()[0]
    return int(clock) / _CLOCK


def close_place(opened: Opened, last_ts: float, *, clean: bool = True) -> HermesError | None:
    """Mark the file as closed, close it, and give the home free. Tells what failed; the home is free all the same.

    A file that is not `clean` is left as it is, so that the next owner checks it.
    """
    if not clean:
        opened.connection.close()
        opened.lock.release()
        return None
    failed: HermesError | None = None
    connection = opened.connection
    try:
        connection.execute("BEGIN IMMEDIATE")
        epoch = connection.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
        if epoch == (opened.epoch,):
            connection.execute("UPDATE meta SET value = ? WHERE key = 'clock'", (math.ceil(last_ts * _CLOCK),))
            connection.execute("UPDATE meta SET value = 1 WHERE key = 'clean'")
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        failed = StorageUnavailable(f"The database could not be marked as closed: {error}.")
    finally:
        connection.close()
        opened.lock.release()
    return failed
