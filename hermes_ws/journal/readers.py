"""Reading: a few connections, used in worker threads, each read one coherent moment."""

from __future__ import annotations

import contextvars
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, final

import trio

from hermes_ws.contract.errors import StorageUnavailable
from hermes_ws.journal.failures import is_storage, os_error, storage_error
from hermes_ws.journal.opening import connect
from hermes_ws.scope.current import in_thread

T = TypeVar("T")

READERS = 4
"""Read connections per open home: more than a disk gains from, and three descriptors each."""


@final
class Readers:
    """A small pool of connections that cannot write. They are opened when first needed and kept."""

    def __init__(self, database: Path, context: contextvars.Context) -> None:
        self._database = database
        self._context = context
        self._free: list[sqlite3.Connection] = []
        self._limiter = trio.CapacityLimiter(READERS)
        self._closed = False

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run `query` in one read transaction. Raises `StorageUnavailable`; cancelling waits for the query to end."""
        return await self.use(lambda connection: _within(connection, query))

    async def use(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run `query` on a connection outside of any transaction of ours. Raises as `read` does."""
        if self._closed:
            raise StorageUnavailable(f"{self._database} is closed.", file=str(self._database))
        context = self._context.copy()
        return await in_thread(self._limiter, lambda: context.run(self._query, query))

    def _query(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection = self._take()
        except sqlite3.Error as error:
            raise storage_error(error, self._database) from error
        try:
            return query(connection)
        except sqlite3.Error as error:
            if is_storage(error):
                raise storage_error(error, self._database) from error
            raise
        except OSError as error:
            raise os_error(error, self._database) from error
        finally:
            self._free.append(connection)

    def _take(self) -> sqlite3.Connection:
        try:
            return self._free.pop()
        except IndexError:
            return connect(self._database, read_only=True)

    async def close(self) -> None:
        """Wait for the reads that run, then close the connections. Later reads are refused."""
        self._closed = True
        for _ in range(READERS):
            await self._limiter.acquire_on_behalf_of(object())
        await in_thread(trio.CapacityLimiter(1), self._close)

    def _close(self) -> None:
        while self._free:
            self._free.pop().close()

    @property
    def open(self) -> int:
        """Connections that are open and idle."""
        return len(self._free)


def _within(connection: sqlite3.Connection, query: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute("BEGIN")
    try:
        return query(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
