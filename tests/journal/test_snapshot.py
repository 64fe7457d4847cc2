"""One coherent boundary of a thread."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes_ws.contract.errors import SessionUnknown, ThreadUnknown
from hermes_ws.journal import admissions, questions, snapshot
from hermes_ws.journal.admissions import NewAdmission
from hermes_ws.journal.database import Database, ThreadKey
from hermes_ws.journal.questions import NewQuestion
from hermes_ws.journal.snapshot import DiskSnapshot
from hermes_ws.wire.cursor import Cursor

KEY = ThreadKey("ses-1", "main")
INPUT = NewAdmission(KEY, "owner", "in-1", "digest", "Hello " * 1000)


async def take(journal: Database, after: Cursor | None = None, messages: bool | None = None) -> DiskSnapshot:
    return await journal.read(lambda connection: snapshot.take(connection, KEY, after, messages))


async def test_an_empty_thread(journal: Database) -> None:
    taken = (await take(journal)).to_snapshot("work", {"model": "m"})
    assert taken.model_dump() == {
        "session_id": "ses-1",
        "thread_id": "main",
        "profile": "work",
        "position": "fresh",
        "generation": 1,
        "cursor": "1:0",
        "execution": None,
        "questions": [],
        "pending": [],
        "in_progress": None,
        "messages": [],
        "more_messages": False,
        "revision": 1,
        "info": {"model": "m"},
    }


async def test_a_thread_in_the_middle_of_its_work(journal: Database) -> None:
    await journal.transact(lambda tx: admissions.admit(tx, INPUT))
    await journal.transact(lambda tx: admissions.admit(tx, replace(INPUT, input_id="in-2")))
    await journal.transact(lambda tx: admissions.claim(tx, KEY))
    running = (await take(journal)).to_snapshot("work", {}, ("m1", "so far"))
    assert running.cursor == "1:4"
    assert running.execution is not None
    assert (running.execution.execution_generation, running.execution.state) == (1, "running")
    assert [(each.input_id, each.status) for each in running.pending] == [("in-1", "started"), ("in-2", "queued")]
    assert len(running.pending[0].text) == snapshot.PENDING_TEXT
    assert running.messages is not None
    assert [each.role for each in running.messages] == ["user"]
    assert running.in_progress is not None
    assert running.in_progress.text == "so far"

    await journal.transact(lambda tx: questions.open(tx, NewQuestion("srq-o-1", KEY, "approval", 1, {})))
    waiting = await take(journal)
    assert waiting.execution is not None
    assert waiting.execution.state == "waiting"
    assert [each.id for each in waiting.questions] == ["srq-o-1"]
    finishing = waiting.to_snapshot("work", {}, finishing=True)
    assert finishing.execution is not None
    assert finishing.execution.state == "finishing"

    await journal.transact(lambda tx: admissions.settle(tx, KEY, 1, "completed"))
    settled = (await take(journal)).to_snapshot("work", {}, finishing=True)
    assert settled.execution is None


async def test_history_comes_to_the_fresh_or_to_those_who_ask(journal: Database) -> None:
    await journal.transact(lambda tx: admissions.admit(tx, INPUT))
    for after, asked, there in (
        (None, None, True),
        (None, True, True),
        (None, False, False),
        (Cursor(1, 0), None, False),
        (Cursor(1, 0), True, True),
    ):
        assert ((await take(journal, after, asked)).messages is not None) == there


async def test_the_start_is_by_the_clients_position(journal: Database) -> None:
    await journal.transact(lambda tx: admissions.admit(tx, INPUT))
    for after, position, start in (
        (None, "fresh", Cursor(1, 1)),
        (Cursor(1, 0), "ok", Cursor(1, 0)),
        (Cursor(1, 5), "ahead", Cursor(1, 0)),
    ):
        taken = await take(journal, after)
        assert (taken.start.position, taken.start.cursor, taken.cursor) == (position, start, Cursor(1, 1))


async def test_what_is_not_there_has_no_snapshot(journal: Database) -> None:
    with pytest.raises(SessionUnknown):
        await journal.read(lambda connection: snapshot.take(connection, ThreadKey("none", "main")))
    with pytest.raises(ThreadUnknown):
        await journal.read(lambda connection: snapshot.take(connection, ThreadKey("ses-1", "none")))
