"""What belongs to no home: `server.db` in the launch home, for now the directory of origins.

An origin is the beginning of every session id of a home. Two homes with one origin are one home and its copy by hand;
whichever was seen first keeps it, and the other is refused until it gets an identity of its own.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final, TypeVar, final

import trio

from hermes_ws.contract.errors import ProfileUnusable, StorageUnavailable
from hermes_ws.scope import guard
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.identity import Identity, ProfileName, read_identity

T = TypeVar("T")

BUSY_S = 5.0
"""Seconds to wait for another server that writes: it does so for microseconds."""

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS origin (
    origin TEXT PRIMARY KEY, profile_id TEXT NOT NULL, name TEXT NOT NULL, path TEXT NOT NULL
) STRICT, WITHOUT ROWID
"""


@final
class ServerStore:
    """Opened by the host, and used by one thread at a time. Everything returns when it is durable."""

    def __init__(self, home: ProfileHome) -> None:
        self._home = home
        self._limiter: Final = trio.CapacityLimiter(1)
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Make or open the file. Raises `StorageUnavailable`."""
        await in_thread(self._limiter, self._open)

    async def close(self) -> None:
        """Close the file; no effect when it is closed."""
        await in_thread(self._limiter, self._close)

    async def claim(self, name: ProfileName, home: ProfileHome, identity: Identity) -> None:
        """Enter a home under its origin. A renamed or moved home takes its entry along.

        Raises `ProfileUnusable` when another home, which is still there, has the same origin.
        """
        await in_thread(self._limiter, self._claim, name, home, identity)

    # --- in the thread -----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        path = self._home.state / "server.db"
        with guard.permit(self._home):
            try:
                self._home.state.mkdir(mode=0o700, exist_ok=True)
                connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
                path.chmod(0o600)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute(SCHEMA)
            except (sqlite3.Error, OSError) as error:
                raise _unavailable(path, error) from error
        self._connection = connection

    def _close(self) -> None:
        if self._connection is not None:
            with guard.permit(self._home):
                self._connection.close()
            self._connection = None

    def _claim(self, name: ProfileName, home: ProfileHome, identity: Identity) -> None:
        rows = self._execute("SELECT path FROM origin WHERE origin = ?", identity.origin)
        if rows and rows[0][0] != str(home.path):
            other = ProfileHome(Path(str(rows[0][0])))
            if _has_origin(other, identity.origin):
                raise ProfileUnusable(
                    f"The home of profile {name} is a copy of {other.path}: both have the same identity.",
                    hint=f"Give the copy its own with `hermes-ws profile adopt {name}`, or remove one of them.",
                    profile=name.text,
                )
        self._execute(
            "INSERT INTO origin VALUES (?, ?, ?, ?) ON CONFLICT (origin) DO UPDATE"
            " SET profile_id = excluded.profile_id, name = excluded.name, path = excluded.path",
            identity.origin,
            identity.id,
            name.text,
            str(home.path),
        )

    def _execute(self, statement: str, *values: str) -> list[tuple[object, ...]]:
        path = self._home.state / "server.db"
        if self._connection is None:
            raise StorageUnavailable("The server's own store is closed.", file=str(path))
        with guard.permit(self._home):
            try:
                return self._connection.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise _unavailable(path, error) from error


def _has_origin(home: ProfileHome, origin: str) -> bool:
    with guard.permit(home):
        try:
            identity = read_identity(home)
        except (ProfileUnusable, OSError):
            return True  # Damaged or out of reach for now: nobody may take its place on a guess.
    return identity is not None and identity.origin == origin


def _unavailable(path: Path, error: Exception) -> StorageUnavailable:
    return StorageUnavailable(
        f"{path} cannot be used: {error}.", hint="Check who owns the file and whether its disk is full.", file=str(path)
    )
