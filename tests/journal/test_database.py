"""One home's journal: what is appended, commits in groups, and what a failure takes with it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from hermes_ws.contract.errors import (
    LimitReached,
    StorageUnavailable,
    ThreadUnknown,
)
from hermes_ws.journal import events, sessions, threads, transaction
from hermes_ws.journal.database import Database, Later, ThreadKey, Transaction
from hermes_ws.journal.writer import Job
from hermes_ws.wire.cursor import Cursor
from tests.journal.conftest import NEW, Opener, look
from tests.journal.writes import KEY, Held, notice, queue, say, stored

# --- appending --------------------------------------------------------------------------------------------------------


async def test_events_are_numbered_from_one_without_a_gap(journal: Database) -> None:
    assert [await journal.transact(say()) for _ in range(3)] == [Cursor(1, 1), Cursor(1, 2), Cursor(1, 3)]
    found = await stored(journal)
    assert [event.cursor for event in found] == [Cursor(1, 1), Cursor(1, 2), Cursor(1, 3)]


async def test_each_thread_is_numbered_by_itself(journal: Database) -> None:
    fork = ThreadKey("ses-1", "fork")
    await journal.transact(lambda tx: threads.ensure(tx, fork, "fork"))
    await journal.transact(say())
    assert await journal.transact(say(key=fork)) == Cursor(1, 1)
    assert await journal.transact(say()) == Cursor(1, 2)


async def test_an_event_comes_back_as_it_was_appended(journal: Database) -> None:
    def work(tx: Transaction) -> Cursor:
        return tx.append(KEY, "notice", notice("grüße \ud800"), execution_generation=4, admission_id="adm-1")

    await journal.transact(work)
    (event,) = await stored(journal)
    assert (event.type, event.execution_generation, event.admission_id, event.ts) == ("notice", 4, "adm-1", 1000.0)
    assert b"gr\xc3\xbc\xc3\x9fe \xef\xbf\xbd" in event.payload


async def test_a_work_sees_what_it_appended_itself(journal: Database) -> None:
    def work(tx: Transaction) -> list[int]:
        tx.append(KEY, "notice", notice())
        seen = [len(events.since(tx.connection, KEY, Cursor(1, 0))[0])]
        tx.append(KEY, "notice", notice())
        record = threads.get(tx.connection, KEY)
        assert record is not None
        return [*seen, record.head, tx.head(KEY).seq]

    assert await journal.transact(work) == [1, 2, 2]


async def test_a_thread_that_is_not_there_takes_no_events(journal: Database) -> None:
    with pytest.raises(ThreadUnknown):
        await journal.transact(say(key=ThreadKey("ses-1", "none")))


async def test_a_payload_that_fits_into_no_frame_is_refused(journal: Database) -> None:
    """Case FRAME-05: it is refused where it is made, so that none is resent for ever."""
    with pytest.raises(LimitReached, match="is the most"):
        await journal.transact(say("x" * transaction.PAYLOAD_BYTES))
    await journal.transact(say("x" * (transaction.PAYLOAD_BYTES - 100)))
    tail = await journal.open_tail(KEY)
    await journal.transact(say("\x01" * 150_000))
    assert len(tail.take(Cursor(1, 1), None, 1).frames[0]) < 1024 * 1024


async def test_many_events_of_one_work_are_all_there(journal: Database) -> None:
    count = 3 * transaction.INSERTED_AT_ONCE + 1

    def work(tx: Transaction) -> None:
        for _ in range(count):
            tx.append(KEY, "notice", notice())

    await journal.transact(work)
    assert len(await stored(journal)) == count


async def test_heads_are_read_again_when_too_many_are_remembered(
    journal: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "HEADS_KEPT", 0)
    assert [(await journal.transact(say())).seq for _ in range(3)] == [1, 2, 3]


# --- the clock --------------------------------------------------------------------------------------------------------


async def test_a_clock_that_jumps_back_does_not_disorder(open_home: Opener) -> None:
    times = [100.0, 200.0, 50.0, 60.0]
    database = await open_home(clock=lambda: times.pop(0))
    await database.transact(lambda tx: sessions.create(tx, NEW))
    for _ in range(3):
        await database.transact(say())
    assert [event.ts for event in await stored(database)] == [200.0, 200.0, 200.0]
    await database.close()
    again = await open_home(clock=lambda: 7.0)
    await again.transact(say())
    assert (await stored(again))[-1].ts == 200.0


# --- groups -----------------------------------------------------------------------------------------------------------


async def test_what_is_queued_is_committed_together_and_nothing_waits_for_company(journal: Database) -> None:
    before = journal.statistics().groups
    await journal.transact(say())
    assert journal.statistics().groups == before + 1
    held = Held()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(journal.transact, held.work)
        await held.reached()
        await queue(nursery, journal, *[say(str(number)) for number in range(20)])
        held.release()
    assert journal.statistics().groups == before + 2
    assert [event.seq for event in await stored(journal)] == list(range(1, 22))


async def test_what_comes_behind_a_work_is_committed_with_it_whatever_becomes_of_that(journal: Database) -> None:
    def fails(tx: Transaction) -> None:
        raise LookupError("not this one")

    follows = [Later(say(text)) for text in ("behind", "behind what fails", "never queued")]
    assert [each.queued for each in follows] == [False] * 3
    held, before = Held(), journal.statistics().groups
    async with trio.open_nursery() as nursery:
        nursery.start_soon(journal.transact, held.work)
        await held.reached()
        nursery.start_soon(partial(journal.transact, say("first"), behind=follows[0]))
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(journal.transact, say("last"))
        await trio.testing.wait_all_tasks_blocked()
        held.release()
        assert await follows[0].wait() == Cursor(1, 2)
    assert journal.statistics().groups == before + 1
    with pytest.raises(LookupError):
        await journal.transact(fails, behind=follows[1])
    assert await follows[1].wait() == Cursor(1, 4), "also when it is long done"
    with trio.CancelScope() as scope:
        scope.cancel()
        await journal.transact(say("cancelled"), behind=follows[2])
    assert not follows[2].queued
    assert len(await stored(journal)) == 4


async def test_a_group_is_bounded(journal: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_ws.journal.writer.GROUP", 6)
    before = journal.statistics().groups
    held = Held()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(journal.transact, held.work)
        await held.reached()
        await queue(nursery, journal, *[say() for _ in range(9)])
        held.release()
    assert journal.statistics().groups - before == 3
    assert len(await stored(journal)) == 9


async def test_a_work_that_fails_takes_no_other_with_it(journal: Database) -> None:
    def appends_and_fails(tx: Transaction) -> None:
        tx.append(KEY, "notice", notice("lost"))
        raise ValueError("mine")

    def writes_and_fails(tx: Transaction) -> None:
        tx.append(KEY, "notice", notice("lost"))
        tx.connection.execute("UPDATE session SET title = 'lost'")
        tx.append(KEY, "notice", notice("lost"))
        threads.ensure(tx, ThreadKey("ses-1", "lost"))
        tx.after_commit(lambda: called.append("lost"))
        raise KeyError("mine")

    def violates(tx: Transaction) -> None:
        tx.connection.execute("INSERT INTO session SELECT * FROM session")

    def mistypes(tx: Transaction) -> None:
        tx.connection.execute("NO SUCH STATEMENT")

    called, held, raised = list[str](), Held(), dict[str, type[BaseException]]()

    async def expect(name: str, work: Callable[[Transaction], object]) -> None:
        try:
            await journal.transact(work)
        except Exception as error:
            raised[name] = type(error)

    before = journal.statistics().groups
    async with trio.open_nursery() as nursery:
        nursery.start_soon(journal.transact, held.work)
        await held.reached()
        for work in (say("a"), appends_and_fails, say("b"), writes_and_fails, violates, mistypes, say("c")):
            nursery.start_soon(expect, work.__name__, work)
            await trio.testing.wait_all_tasks_blocked()
        held.release()
    assert journal.statistics().groups == before + 1
    assert raised == {
        "appends_and_fails": ValueError,
        "writes_and_fails": KeyError,
        "violates": sqlite3.IntegrityError,
        "mistypes": sqlite3.OperationalError,
    }
    assert [event.payload.count(b"lost") for event in await stored(journal)] == [0, 0, 0]
    assert called == []
    assert await journal.read(lambda connection: sessions.by_title(connection, "lost")) is None
    with pytest.raises(ThreadUnknown):
        await journal.transact(say(key=ThreadKey("ses-1", "lost")))
    assert journal.trouble is None


async def test_a_work_that_ends_the_transaction_fails_with_its_whole_group(journal: Database) -> None:
    held, results = Held(), list[str]()

    async def expect(work: Callable[[Transaction], object]) -> None:
        try:
            await journal.transact(work)
        except Exception as error:
            results.append(type(error).__name__)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(expect, held.work)
        await held.reached()
        for work in (say(), lambda tx: tx.append(KEY, "notice", 1 / 0), lambda tx: tx.connection.execute("ROLLBACK")):
            nursery.start_soon(expect, work)
            await trio.testing.wait_all_tasks_blocked()
        held.release()
    assert sorted(results) == ["RuntimeError", "RuntimeError", "RuntimeError", "ZeroDivisionError"]
    assert await stored(journal) == []
    assert await journal.transact(say()) == Cursor(1, 1)


async def test_a_work_that_cannot_be_undone_fails_with_its_whole_group(journal: Database) -> None:
    def loses_its_savepoint(tx: Transaction) -> None:
        tx.connection.execute("RELEASE work")
        raise ValueError

    with pytest.raises(RuntimeError, match="nothing of its works was stored"):
        await journal.transact(loses_its_savepoint)
    assert await journal.transact(say()) == Cursor(1, 1)


# --- closing ----------------------------------------------------------------------------------------------------------


async def test_closing_finishes_what_is_queued_and_marks_the_file(journal: Database, file: Path) -> None:
    held = Held()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(journal.transact, held.work)
        await held.reached()
        await queue(nursery, journal, say(), say())
        nursery.start_soon(journal.close)
        nursery.start_soon(journal.close)
        while not journal._writer._closing:  # noqa: ASYNC110 - there is nothing to be told by
            await trio.sleep(0.001)
        held.release()
    assert look(file, "SELECT value FROM meta WHERE key = 'clean'") == [(1,)]
    assert look(file, "SELECT count(*) FROM event") == [(2,)]
    assert not file.with_name("sessions.db-wal").exists()


async def test_a_closed_journal_refuses(journal: Database) -> None:
    await journal.close()
    await journal.close()
    with pytest.raises(StorageUnavailable, match="is closed"):
        await journal.transact(say())
    with pytest.raises(StorageUnavailable, match="is closed"):
        await journal.read(sessions.count)


async def test_closing_is_not_cancelled_and_says_what_failed(journal: Database) -> None:
    await journal.transact(lambda tx: tx.connection.execute("PRAGMA query_only = ON"))
    with trio.CancelScope() as scope:
        scope.cancel()
        with pytest.raises(StorageUnavailable, match="could not be marked"):
            await journal.close()


def test_a_writer_whose_run_is_over_gives_the_home_free(home: Path, file: Path, lock: Path) -> None:
    held, before = Held(), set(threading.enumerate())

    async def leave() -> None:
        left = await Database.open(home, file, lock, instance_id="i", profile="work")
        left._writer._queue.put(Job(held.work, trio.lowlevel.current_task()))
        await held.reached()

    async def again() -> int:
        database = await Database.open(home, file, lock, instance_id="i", profile="work")
        await database.close()
        return database.epoch

    trio.run(leave)
    held.release()
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("journal"):
            thread.join(10)
    assert trio.run(again) == 2
