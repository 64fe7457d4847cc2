"""What becomes of a work when what the journal stands on fails."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
import trio.testing

from hermes_ws.contract.errors import (
    StaleEpoch,
    StorageFull,
    StorageUnavailable,
)
from hermes_ws.journal import transaction
from hermes_ws.journal.database import Database, Transaction
from hermes_ws.wire.cursor import Cursor
from tests.journal.writes import KEY, Held, say, stored

# --- failures of what it stands on ------------------------------------------------------------------------------------


async def test_a_full_disk_is_said_and_writes_go_on_when_there_is_room(journal: Database) -> None:
    def fill(tx: Transaction) -> None:
        pages = tx.connection.execute("PRAGMA page_count").fetchone()[0]
        tx.connection.execute(f"PRAGMA max_page_count = {pages}")

    await journal.transact(fill)
    large = say("x" * 500_000)
    with pytest.raises(StorageFull):
        await journal.transact(large)
    with pytest.raises(StorageFull):
        await journal.transact(lambda tx: (large(tx), tx.connection))
    assert isinstance(journal.trouble, StorageFull)
    assert journal.statistics().read_only
    assert await stored(journal) == []
    await journal.transact(lambda tx: tx.connection.execute("PRAGMA max_page_count = 1000000"))
    assert await journal.transact(large) == Cursor(1, 1)
    assert journal.trouble is None


async def test_a_lock_that_another_program_holds_for_a_while_is_waited_for(journal: Database, file: Path) -> None:
    """Cases STORE-03, STORE-04."""
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    done = trio.Event()

    async def write() -> None:
        await journal.transact(say())
        done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await trio.sleep(0.05)
        assert not done.is_set()
        other.execute("ROLLBACK")
        other.close()
    assert len(await stored(journal)) == 1


async def test_a_lock_that_stays_is_an_error_with_a_hint(
    journal: Database, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await journal.transact(lambda tx: tx.connection.execute("PRAGMA busy_timeout = 1"))
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageUnavailable, match="locked") as caught:
        await journal.transact(say())
    assert "Another program" in caught.value.hint
    other.close()
    await journal.transact(say())


async def test_one_who_lost_the_home_writes_no_more(journal: Database, file: Path) -> None:
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("UPDATE meta SET value = value + 1 WHERE key = 'epoch'")
    for _ in range(2):
        with pytest.raises(StaleEpoch) as caught:
            await journal.transact(say())
        assert caught.value.data == {"epoch": 1, "active": 2}
    other.execute("DELETE FROM meta WHERE key = 'epoch'")
    with pytest.raises(StaleEpoch):
        await journal.transact(say())
    other.close()
    assert await stored(journal) == []


async def test_each_waiter_of_a_group_gets_an_exception_of_its_own(journal: Database) -> None:
    raised = list[BaseException]()

    async def expect() -> None:
        try:
            await journal.transact(say("x" * 500_000))
        except StorageFull as error:
            raised.append(error)

    await journal.transact(lambda tx: tx.connection.execute("PRAGMA max_page_count = 1"))
    held = Held()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(expect_full, journal, held.work)
        await held.reached()
        nursery.start_soon(expect)
        nursery.start_soon(expect)
        await trio.testing.wait_all_tasks_blocked()
        held.release()
    assert len({id(error) for error in raised}) == 2


async def expect_full(journal: Database, work: Callable[[Transaction], object]) -> None:
    with pytest.raises(StorageFull):
        await journal.transact(work)


def test_a_connection_beyond_answering_is_abandoned_without_a_word() -> None:
    class Broken:
        in_transaction = True

        def execute(self, sql: str) -> None:
            raise sqlite3.OperationalError(sql)

    heads = {KEY: transaction.Head(1, 1, 7)}
    transaction.Group(Broken(), 1, 0.0, heads).abandon()  # type: ignore[arg-type]
    assert heads == {}
