"""What belongs to no home: `server.db` in the launch home, with the directory of origins and the tokens.

An origin is the beginning of every session id of a home. Two homes with one origin are one home and its copy by hand;
whichever was seen first keeps it, and the other is refused until it gets an identity of its own.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final, TypeVar, cast, final

import orjson
import trio

from hermes_ws.contract.errors import ProfileUnusable, StorageUnavailable
from hermes_ws.hosting import tokens
from hermes_ws.hosting.tokens import Token
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

WAKES: Final = "CREATE TABLE IF NOT EXISTS wake (origin TEXT PRIMARY KEY, due REAL NOT NULL) STRICT, WITHOUT ROWID"
"""When a closed profile is to be opened next."""


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

    async def forget(self, origin: str) -> None:
        """A home is gone for good: take out what was entered under its origin."""
        for table in ("origin", "wake"):
            await in_thread(self._limiter, self._execute, f"DELETE FROM {table} WHERE origin = ?", origin)

    async def origins(self) -> list[tuple[str, str]]:
        """The origins that are taken, each with the name of its profile."""
        rows = await in_thread(self._limiter, self._execute, "SELECT origin, name FROM origin")
        return [(str(origin), str(name)) for origin, name in rows]

    async def wake(self, origin: str, due: float | None) -> None:
        """Remember when a profile is to be opened for what is due in it; None for not at all."""
        await in_thread(self._limiter, self._execute, "DELETE FROM wake WHERE origin = ?", origin)
        if due is not None:
            await in_thread(self._limiter, self._execute, "INSERT INTO wake VALUES (?, ?)", origin, due)

    async def wakes(self) -> list[tuple[str, float]]:
        """The origins of all profiles that are to be opened, and when."""
        rows = await in_thread(self._limiter, self._execute, "SELECT origin, due FROM wake")
        return [(str(origin), float(cast("float", due))) for origin, due in rows]

    async def add_token(self, token: Token) -> None:
        """Keep a token."""
        await in_thread(self._limiter, lambda: self._execute(tokens.INSERT, *tokens.values(token)))

    async def remove_tokens(self, ids: frozenset[str]) -> None:
        """Keep these no longer."""
        await in_thread(self._limiter, self._execute, tokens.DELETE, orjson.dumps(sorted(ids)).decode())

    async def tokens(self) -> list[Token]:
        """All that are kept."""
        return [tokens.token(row) for row in await in_thread(self._limiter, self._execute, tokens.SELECT)]

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
                connection.execute(WAKES)
                connection.execute(tokens.TABLE)
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

    def _execute(self, statement: str, *values: tokens.Value) -> list[tuple[object, ...]]:
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
