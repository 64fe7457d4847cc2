"""Threads beside `main`: where they come from, what they are called, and what they do."""

from __future__ import annotations

import pytest

from hermes_ws.contract.errors import ThreadUnknown
from hermes_ws.contract.events import Notice, ToolStart
from hermes_ws.journal import admissions, lineage, questions, recovery, thread_list, threads
from hermes_ws.journal.admissions import NewAdmission
from hermes_ws.journal.database import Database, ThreadKey, Transaction
from hermes_ws.journal.lineage import Lineage
from hermes_ws.journal.questions import NewQuestion
from hermes_ws.wire.frames import event_frame
from tests.journal.conftest import Opener

MAIN = ThreadKey("ses-1", "main")
FORK = ThreadKey("ses-1", "t-fork")
TASK = ThreadKey("ses-1", "t-task")
SIDE = ThreadKey("ses-1", "t-side")
NOTICE = Notice(level="info", type="test", message="said")


def family(tx: Transaction) -> None:
    lineage.add(tx, FORK, "fork", parent="main", depth=1, about={"from": "msg-1"})
    lineage.add(tx, TASK, "subagent", parent="t-fork", depth=2, about={"task": "Look"})


async def test_a_thread_knows_where_it_comes_from(journal: Database) -> None:
    await journal.transact(family)
    fork = Lineage(FORK, "fork", "main", 1, {"from": "msg-1"}, None, 1000.0, 0)
    task = Lineage(TASK, "subagent", "t-fork", 2, {"task": "Look"}, None, 1000.0, 0)
    assert await journal.read(lambda connection: lineage.of_session(connection, "ses-1")) == [fork, task]
    assert await journal.read(lambda connection: lineage.of_session(connection, "ses-1", "subagent")) == [task]
    assert await journal.read(lambda connection: lineage.get(connection, FORK)) == fork
    assert await journal.read(lambda connection: lineage.get(connection, MAIN)) is None


async def test_what_came_of_a_task_is_kept_with_it(journal: Database) -> None:
    await journal.transact(family)
    await journal.transact(lambda tx: lineage.finish(tx, TASK, {"text": "found"}))
    task = await journal.read(lambda connection: lineage.get(connection, TASK))
    assert task is not None
    assert task.result == {"text": "found"}


async def test_the_calls_of_a_thread_are_counted(journal: Database) -> None:
    await journal.transact(family)
    assert await journal.read(lambda connection: lineage.tools_used(connection, TASK)) == (0, None)
    for number, name in enumerate(("terminal", "read_file")):
        start = ToolStart(call_id=f"c{number}", name=name, arguments={})
        await journal.transact(lambda tx: tx.append(TASK, "tool.start", start))  # noqa: B023
    assert await journal.read(lambda connection: lineage.tools_used(connection, TASK)) == (2, "read_file")


async def test_a_list_tells_parents_titles_and_what_each_does(open_home: Opener, journal: Database) -> None:
    def work(tx: Transaction) -> None:
        family(tx)
        thread_list.create(tx, SIDE, "Beside \ud800")
        for key in (FORK, TASK, SIDE):
            admissions.admit(tx, NewAdmission(key, "owner", f"in-{key.thread_id}", "digest", "Hello"))
        admissions.claim(tx, TASK)
        questions.open(tx, NewQuestion("srq-1", TASK, "approval", 1, {}))
        admissions.claim(tx, SIDE)

    async def rows(database: Database) -> list[tuple[str, str, str | None, str | None, str]]:
        found = await database.read(lambda connection: thread_list.of_session(connection, "ses-1"))
        return [(each.thread_id, each.kind, each.title, each.parent, each.state) for each in found]

    await journal.transact(work)
    assert await rows(journal) == [
        ("main", "main", None, None, "idle"),
        ("t-fork", "fork", None, "main", "running"),
        ("t-task", "subagent", None, "t-fork", "waiting"),
        ("t-side", "side", "Beside \ufffd", None, "running"),
    ]
    await journal.close()
    again = await open_home()
    await again.transact(lambda tx: recovery.recover(tx, resume=False))
    assert [state for *_, state in await rows(again)] == ["idle", "running", "lost", "lost"]


async def test_a_thread_is_made_once_renamed_and_removed(journal: Database) -> None:
    made = await journal.transact(lambda tx: thread_list.create(tx, SIDE, "First"))
    assert (await journal.transact(lambda tx: thread_list.create(tx, SIDE, "Second"))).id == made.id
    await journal.transact(lambda tx: thread_list.rename(tx, SIDE, None))
    (_, side) = await journal.read(lambda connection: thread_list.of_session(connection, "ses-1"))
    assert side.title is None
    with pytest.raises(ThreadUnknown):
        await journal.transact(lambda tx: thread_list.rename(tx, FORK, "none"))
    await journal.transact(lambda tx: thread_list.delete(tx, SIDE))
    assert await journal.read(lambda connection: threads.get(connection, SIDE)) is None
    with pytest.raises(ThreadUnknown):
        await journal.transact(lambda tx: tx.append(SIDE, "notice", NOTICE))


async def test_two_threads_that_go_in_one_work_are_both_read_anew(journal: Database) -> None:
    await journal.transact(family)

    def work(tx: Transaction) -> None:
        for key in (TASK, FORK):
            before = tx.head(key).id
            thread_list.delete(tx, key)
            lineage.add(tx, key, "fork", parent="main", depth=1, about={})
            tx.append(key, "notice", NOTICE)
            assert tx.head(key).id != before

    await journal.transact(work)
    found = [await journal.read(lambda connection: threads.get(connection, key)) for key in (TASK, FORK)]  # noqa: B023
    assert [None if each is None else str(each.cursor) for each in found] == ["1:1", "1:1"]


async def test_a_tail_is_open_or_not(journal: Database) -> None:
    assert journal.tail_if_open(MAIN) is None
    journal.end_tail(MAIN, event_frame({"type": "thread.forked"}))  # nobody listens
    tail = await journal.open_tail(MAIN)
    assert journal.tail_if_open(MAIN) is tail
    journal.end_tail(MAIN, event_frame({"type": "thread.forked"}))
    assert journal.tail_if_open(MAIN) is None
