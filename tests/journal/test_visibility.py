"""In which order what is committed becomes visible, and to whom."""

from __future__ import annotations

import contextvars
import sqlite3
from collections.abc import Callable

import pytest
import trio
import trio.testing

from hermes_ws.contract.errors import (
    ThreadUnknown,
)
from hermes_ws.journal import threads
from hermes_ws.journal.database import Database, ThreadKey, Transaction
from hermes_ws.wire.cursor import Cursor
from tests.journal.conftest import Opener
from tests.journal.writes import KEY, Held, notice, queue, say, stored

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
