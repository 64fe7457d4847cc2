"""Reading beside the writer."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import trio

from hermes_ws.contract.errors import StorageUnavailable
from hermes_ws.journal import readers, sessions
from hermes_ws.journal.database import Database
from hermes_ws.journal.sessions import NewSession


async def test_a_read_sees_one_moment(journal: Database) -> None:
    def count_twice(connection: sqlite3.Connection) -> tuple[int, int]:
        before = sessions.count(connection)
        trio.from_thread.run(journal.transact, lambda tx: sessions.create(tx, second))
        return before, sessions.count(connection)

    second = NewSession("ses-2", None, "default", "/", "api", "owner", "d")
    assert await journal.read(count_twice) == (1, 1)
    assert await journal.read(sessions.count) == 2


async def test_a_read_cannot_write(journal: Database) -> None:
    with pytest.raises(StorageUnavailable, match="readonly"):
        await journal.read(lambda connection: connection.execute("DELETE FROM session"))
    assert await journal.read(sessions.count) == 1


async def test_a_query_that_is_wrong_is_raised_as_it_is(journal: Database) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        await journal.read(lambda connection: connection.execute("SELECT * FROM nowhere"))
    with pytest.raises(KeyError):
        await journal.read(lambda _: {}["key"])
    assert await journal.read(lambda connection: connection.execute("ROLLBACK").fetchone()) is None
    assert await journal.read(sessions.count) == 1


async def test_no_more_connections_are_opened_than_are_allowed(journal: Database) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(5 * readers.READERS):
            nursery.start_soon(journal.read, sessions.count)
    assert 1 <= journal.statistics().read_connections <= readers.READERS


async def test_a_file_that_cannot_be_opened_is_an_error_with_its_name(
    journal: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(database: Path, *, read_only: bool = False) -> sqlite3.Connection:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(readers, "connect", refuse)
    with pytest.raises(StorageUnavailable, match=r"sessions\.db"):
        await journal.read(sessions.count)


async def test_reads_that_run_are_waited_for_when_the_home_closes(journal: Database) -> None:
    results = list[int]()

    async def read() -> None:
        results.append(await journal.read(sessions.count))

    async with trio.open_nursery() as nursery:
        for _ in range(readers.READERS):
            nursery.start_soon(read)
        await trio.lowlevel.checkpoint()
        nursery.start_soon(journal.close)
    assert results == [1] * readers.READERS
    assert journal.statistics().read_connections == 0
