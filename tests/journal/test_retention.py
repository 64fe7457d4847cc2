"""What is removed when it is old, and how the room comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_ws.contract.errors import ThreadUnknown
from hermes_ws.contract.events import Notice
from hermes_ws.journal import admissions, retention, sessions
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.admissions import NewAdmission
from hermes_ws.journal.database import Database, Transaction
from hermes_ws.journal.sessions import NewSession
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import event_frame
from tests.journal.conftest import Opener

BYE = event_frame({"type": "session.closed", "ts": 1.0, "payload": {}})


def bye(keys: tuple[ThreadKey, ...]) -> None:
    """Nobody listens."""


async def made(journal: Database, *names: str) -> None:
    for name in names:
        new = NewSession(name, None, "default", "/", "api", "owner", f"digest of {name}")
        await journal.transact(lambda tx, new=new: sessions.create(tx, new))


async def removable(journal: Database, before: float | None = None) -> list[str]:
    return await journal.read(lambda connection: retention.removable(connection, before, 100))


@pytest.fixture
async def aged(open_home: Opener) -> Database:
    """Sessions s-1 to s-4, used at 1, 2, 3 and 4."""
    times = iter(range(1, 1000))
    database = await open_home(clock=lambda: float(next(times)))
    await made(database, "s-1", "s-2", "s-3", "s-4")
    return database


async def test_the_one_used_longest_ago_goes_first_and_archived_ones_before_it(aged: Database) -> None:
    assert await removable(aged) == ["s-1", "s-2", "s-3", "s-4"]
    await aged.transact(lambda tx: tx.connection.execute("UPDATE session SET archived = 1 WHERE session_id = 's-3'"))
    assert await removable(aged) == ["s-3", "s-1", "s-2", "s-4"]
    assert await removable(aged, before=2.5) == ["s-1", "s-2"]


async def test_what_is_pinned_or_waits_for_something_stays(aged: Database) -> None:
    def work(tx: Transaction) -> None:
        tx.connection.execute("UPDATE session SET pinned = 1 WHERE session_id = 's-1'")
        key = ThreadKey("s-2", "main")
        admissions.admit(tx, NewAdmission(key, "owner", "i-1", "d", "text", False, False, False))
        tx.connection.execute(
            "INSERT INTO question SELECT 'q', id, 's-3', 'main', 'approval', 1, 1, NULL, '{}', 'open', NULL, 1.0, NULL,"
            " NULL FROM thread WHERE session_id = 's-3'"
        )

    await aged.transact(work)
    assert await removable(aged) == ["s-4"]
    for name in ("s-1", "s-2", "s-3"):
        assert not await aged.remove_session(name, bye)
    assert await aged.remove_session("s-4", bye)
    assert await aged.read(sessions.count) == 3


async def test_one_that_was_used_since_it_was_looked_at_stays(aged: Database) -> None:
    assert await removable(aged, before=1.5) == ["s-1"]
    await aged.transact(lambda tx: sessions.touch(tx, "s-1"))
    assert not await aged.remove_session("s-1", bye, before=1.5)
    assert await removable(aged, before=1.5) == []


async def test_what_is_removed_is_gone_for_those_who_listen_and_for_those_who_write(aged: Database) -> None:
    key = ThreadKey("s-1", "main")
    tail = await aged.open_tail(key)
    heard: list[None] = []
    tail.attach(lambda: heard.append(None))
    await aged.transact(lambda tx: tx.append(key, "notice", Notice(level="info", type="t", message="m")))
    heard.clear()

    def gone(keys: tuple[ThreadKey, ...]) -> None:
        for each in keys:
            aged.end_tail(each, BYE)

    assert await aged.remove_session("s-1", gone)
    assert heard == [None]
    assert tail.farewell is BYE
    with pytest.raises(ThreadUnknown):
        await aged.transact(lambda tx: tx.append(key, "notice", Notice(level="info", type="t", message="m")))
    with pytest.raises(ThreadUnknown):
        await aged.open_tail(key)


async def test_a_removed_session_can_be_followed_by_one_of_the_same_name(aged: Database) -> None:
    key = ThreadKey("s-1", "main")
    await aged.transact(lambda tx: tx.append(key, "notice", Notice(level="info", type="t", message="m")))
    assert await aged.remove_session("s-1", bye)
    await made(aged, "s-1")
    assert await aged.transact(
        lambda tx: tx.append(key, "notice", Notice(level="info", type="t", message="m"))
    ) == Cursor(1, 1)


async def test_room_that_became_free_is_given_back_in_steps(aged: Database, home: Path) -> None:
    key = ThreadKey("s-1", "main")

    def fill(tx: Transaction) -> None:
        for _ in range(40):
            tx.append(key, "notice", Notice(level="info", type="t", message="x" * 100_000))

    await aged.transact(fill)
    full = await aged.read(retention.used_bytes)
    assert full > 4_000_000
    assert await aged.remove_session("s-1", bye)
    assert await aged.read(retention.used_bytes) < full / 4
    left = [await aged.transact(retention.vacuum)]
    while left[-1]:
        left.append(await aged.transact(retention.vacuum))
    assert len(left) > 2
    assert left == sorted(left, reverse=True)
    pages = await aged.read(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0])
    assert pages < 300
