"""One home's journal: commits in groups, what a failure takes with it, and in which order things become visible."""

from __future__ import annotations

import contextvars
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
import trio.testing

from hermes_ws.contract.errors import (
    LimitReached,
    StaleEpoch,
    StorageFull,
    StorageUnavailable,
    ThreadUnknown,
)
from hermes_ws.contract.events import Notice
from hermes_ws.journal import events, sessions, threads, transaction
from hermes_ws.journal.database import Database, ThreadKey, Transaction
from hermes_ws.journal.stored_event import StoredEvent
from hermes_ws.journal.writer import Job
from hermes_ws.wire.cursor import Cursor
from tests.journal.conftest import NEW, Opener, look

KEY = ThreadKey("ses-1", "main")


def notice(text: str = "") -> Notice:
    return Notice(level="info", type="test", message=text)


def say(text: str = "", key: ThreadKey = KEY) -> Callable[[Transaction], Cursor]:
    return lambda tx: tx.append(key, "notice", notice(text))


async def stored(journal: Database, key: ThreadKey = KEY) -> list[StoredEvent]:
    found, more = await journal.read(lambda connection: events.since(connection, key, Cursor(1, 0), 5000, 10**9))
    assert not more
    return found


class Held:
    """The writer, held in the middle of a work, so that what is queued meanwhile comes in one group after it."""

    def __init__(self) -> None:
        self._go = threading.Event()
        self._there = threading.Event()

    def work(self, tx: Transaction) -> None:
        self._there.set()
        self._go.wait(10)

    async def reached(self) -> None:
        await trio.to_thread.run_sync(self._there.wait, 10)

    def release(self) -> None:
        self._go.set()


async def queue(nursery: trio.Nursery, journal: Database, *works: Callable[[Transaction], object]) -> None:
    """Queue works in this order."""
    for work in works:
        nursery.start_soon(journal.transact, work)
        await trio.testing.wait_all_tasks_blocked()


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


# --- what becomes visible, and when -----------------------------------------------------------------------------------


async def test_before_a_transaction_returns_its_events_are_published_and_its_calls_made(journal: Database) -> None:
    tail, order = await journal.open_tail(KEY), list[str]()

    def work(name: str) -> Callable[[Transaction], None]:
        def run(tx: Transaction) -> None:
            tx.append(KEY, "notice", notice(name))
            tx.after_commit(lambda: order.append(f"{name} called at head {tail.head}"))

        return run

    async def wait(name: str) -> None:
        await journal.transact(work(name))
        order.append(f"{name} returned")

    tail.attach(lambda: order.append(f"told of {tail.head}"))
    held = Held()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(journal.transact, held.work)
        await held.reached()
        for name in ("a", "b"):
            nursery.start_soon(wait, name)
            await trio.testing.wait_all_tasks_blocked()
        held.release()
    assert order[:3] == ["a called at head 1", "b called at head 2", "told of 2"]
    assert sorted(order[3:]) == ["a returned", "b returned"]


async def test_a_call_after_the_commit_that_fails_is_learnt_by_its_own_caller_alone(journal: Database) -> None:
    def work(tx: Transaction) -> None:
        tx.append(KEY, "notice", notice())
        tx.after_commit(lambda: called.append(1 // 0))
        tx.after_commit(lambda: called.append(2))

    called = list[int]()
    with pytest.raises(ZeroDivisionError) as caught:
        await journal.transact(work)
    assert "is stored" in caught.value.__notes__[0]
    assert called == [2]
    assert len(await stored(journal)) == 1


async def test_a_queued_work_happens_although_its_task_is_cancelled(journal: Database) -> None:
    held = Held()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(journal.transact, held.work)
        await held.reached()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as inner:
                await queue(inner, journal, say())
                scope.cancel()
                held.release()
    assert len(await stored(journal)) == 1


async def test_a_task_that_is_cancelled_already_queues_nothing(journal: Database) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await journal.transact(say())
    assert scope.cancelled_caught
    assert await stored(journal) == []


async def test_works_run_in_the_context_of_the_home(open_home: Opener) -> None:
    variable = contextvars.ContextVar("variable", default="nobody")
    home = contextvars.Context()
    home.run(variable.set, "work")
    database = await open_home(context=home)
    variable.set("somebody else")
    assert await database.transact(lambda _: variable.get()) == "work"
    assert await database.read(lambda _: variable.get()) == "work"


# --- tails ------------------------------------------------------------------------------------------------------------


async def test_a_tail_begins_where_the_thread_ends(journal: Database) -> None:
    await journal.transact(say())
    tail = await journal.open_tail(KEY)
    assert (tail.generation, tail.head) == (1, 1)
    assert tail.take(Cursor(1, 0), None, 100).missing
    await journal.transact(say())
    assert tail.take(Cursor(1, 1), None, 100).cursor == Cursor(1, 2)
    assert journal.tail(KEY) is tail
    assert await journal.open_tail(KEY) is tail


async def test_nothing_that_is_committed_while_a_tail_opens_is_missed(journal: Database) -> None:
    tails = list[object]()

    async def open_tail() -> None:
        tails.append(await journal.open_tail(KEY))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(open_tail)
            nursery.start_soon(journal.transact, say())
    tail = journal.tail(KEY)
    assert tails == [tail] * 4
    assert tail.head == 4


async def test_a_tail_that_is_not_open_is_a_mistake_that_is_explained(journal: Database) -> None:
    with pytest.raises(RuntimeError, match="open_tail"):
        journal.tail(KEY)


async def test_no_tail_opens_for_a_thread_that_is_not_there(journal: Database) -> None:
    for _ in range(2):
        with pytest.raises(ThreadUnknown):
            await journal.open_tail(ThreadKey("ses-1", "none"))
    assert journal.statistics().tails == 0


async def test_a_thread_that_is_made_while_its_tail_opens_is_there(
    journal: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork = ThreadKey("ses-1", "fork")

    def make(tx: Transaction) -> None:
        threads.ensure(tx, fork)
        tx.append(fork, "notice", notice())

    def read_before_it_is_made(connection: sqlite3.Connection, key: ThreadKey) -> threads.ThreadRecord | None:
        monkeypatch.undo()
        trio.from_thread.run(journal.transact, make)
        return None

    monkeypatch.setattr(threads, "get", read_before_it_is_made)
    tail = await journal.open_tail(fork)
    assert (tail.generation, tail.head) == (1, 1)
    assert tail.take(Cursor(1, 0), None, 1).cursor == Cursor(1, 1)


async def test_a_tail_is_closed_only_when_nobody_needs_it(journal: Database) -> None:
    def listener() -> None: ...

    assert journal.close_tail(KEY)
    tail = await journal.open_tail(KEY)
    tail.attach(listener)
    assert not journal.close_tail(KEY)
    tail.detach(listener)
    tail.live_begin("message.delta", "m1")
    assert not journal.close_tail(KEY)
    tail.live_end("message.delta", "m1")
    assert journal.close_tail(KEY)
    assert journal.statistics().tails == 0


def test_a_connection_beyond_answering_is_abandoned_without_a_word() -> None:
    class Broken:
        in_transaction = True

        def execute(self, sql: str) -> None:
            raise sqlite3.OperationalError(sql)

    heads = {KEY: transaction.Head(1, 1, 7)}
    transaction.Group(Broken(), 1, 0.0, heads).abandon()  # type: ignore[arg-type]
    assert heads == {}


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
