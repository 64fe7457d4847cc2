"""A fault plan: at which border, at which call, what goes wrong. Nothing here is left to luck.

A border is named by what passes it: a statement of SQL by its first words, a write to a socket by `write`. Each border
counts its own calls; the plan says what the call of a number meets.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes_ws.journal.opening import BUSY_SECONDS, STATEMENTS

Fault = Callable[[], None]


def sql(code: int, text: str, kind: type[sqlite3.DatabaseError] = sqlite3.OperationalError) -> Fault:
    """SQLite reports this."""

    def fail() -> None:
        error = kind(text)
        error.sqlite_errorcode = code
        raise error

    return fail


FULL = sql(sqlite3.SQLITE_FULL, "database or disk is full")
IO = sql(sqlite3.SQLITE_IOERR_WRITE, "disk I/O error")
BUSY = sql(sqlite3.SQLITE_BUSY, "database is locked")
READ_ONLY = sql(sqlite3.SQLITE_READONLY, "attempt to write a readonly database")
DAMAGED = sql(sqlite3.SQLITE_CORRUPT, "database disk image is malformed", sqlite3.DatabaseError)


def os_error(number: int) -> Fault:
    def fail() -> None:
        raise OSError(number, os.strerror(number))

    return fail


RESET = os_error(errno.ECONNRESET)
AGAIN = os_error(errno.EAGAIN)
INTERRUPTED = os_error(errno.EINTR)


@dataclass
class Stall:
    """A call that does not come back until it is let go; `reached` is set when it has begun."""

    reached: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def __call__(self) -> None:
        self.reached.set()
        assert self.go.wait(30), "nobody let the stalled call go"


@dataclass
class Plan:
    """`faults[border][n]` is what the n-th call at the border meets, counted from 0 since `arm`."""

    faults: Mapping[str, Mapping[int, Fault]]
    armed: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    met: int = 0

    def arm(self) -> None:
        self.armed = True
        self.counts.clear()

    def pass_border(self, border: str) -> None:
        if not self.armed:
            return
        number = self.counts[border]
        self.counts[border] += 1
        fault = self.faults.get(border, {}).get(number)
        if fault is not None:
            self.met += 1
            fault()


def always(fault: Fault, calls: int = 10_000) -> Mapping[int, Fault]:
    """Every call meets it."""
    return dict.fromkeys(range(calls), fault)


def connecting(plan: Plan) -> Callable[..., sqlite3.Connection]:
    """What stands in for `opening.connect`: the same connection, with the plan at its border."""

    class Faulty(sqlite3.Connection):
        def execute(self, statement: str, *given: Any) -> sqlite3.Cursor:
            plan.pass_border(statement.split("(")[0].strip().split(" VALUES")[0])
            return super().execute(statement, *given)

    def connect(database: Path, *, read_only: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(
            database,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=STATEMENTS,
            factory=Faulty,
        )
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    return connect
