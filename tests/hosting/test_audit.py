"""The audit log: noted without waiting, written in order, and honest about what a disk did not take."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from hermes_ws.contract.errors import StorageFull
from hermes_ws.hosting import audit
from hermes_ws.hosting.audit import AGAIN_S, AuditLog
from hermes_ws.journal import audit as rows
from hermes_ws.journal.audit import Deed
from hermes_ws.journal.database import Database


class Lines:
    """The twin of a profile's log."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []

    def write(self, level: str, event: str, **fields: Any) -> None:
        self.said.append((event, fields))


class Disk:
    """The twin of a journal: takes transactions or not, and counts them."""

    def __init__(self) -> None:
        self.full = False
        self.taken = 0

    async def transact(self, work: Any) -> None:
        await trio.lowlevel.checkpoint()
        if self.full:
            raise StorageFull("no room")
        self.taken += 1


def deed(number: int, *, principal: str = "owner", method: str = "prompt.submit") -> Deed:
    return Deed(float(number), principal, None, "c-1", method, "s-1", "ok")


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(
        tmp_path, tmp_path / "sessions.db", tmp_path / "owner.lock", instance_id="i", profile="default"
    )
    yield database
    await database.close()


async def test_what_was_noted_a_moment_ago_is_on_the_page(journal: Database) -> None:
    log = AuditLog(journal, Lines())
    for number in range(1, 6):
        log.note(deed(number, principal="owner" if number % 2 else "desk"))
    newest = await log.page(2, None, None, None)
    assert [each.at for _, each in newest] == [5.0, 4.0]
    older = await log.page(10, newest[-1][0], None, None)
    assert [each.at for _, each in older] == [3.0, 2.0, 1.0]
    assert [each.at for _, each in await log.page(10, None, "desk", None)] == [4.0, 2.0]
    assert await log.page(10, None, None, "token.create") == []


async def test_only_so_many_are_kept(journal: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "KEPT", 3)
    monkeypatch.setattr(rows, "TRIM_EVERY", 2)
    log = AuditLog(journal, Lines())
    for number in range(1, 9):
        log.note(deed(number))
        await log.page(1, None, None, None)
    assert [each.at for _, each in await log.page(10, None, None, None)] == [8.0, 7.0, 6.0]


async def test_they_are_written_together_and_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "AT_ONCE", 2)
    disk: Any = Disk()
    log = AuditLog(disk, Lines())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log.run)
        await wait_all_tasks_blocked()
        for number in range(5):
            log.note(deed(number))
        await wait_all_tasks_blocked()
        assert disk.taken == 3
        nursery.cancel_scope.cancel()


async def test_a_disk_that_takes_nothing_is_asked_again(autojump_clock: MockClock) -> None:
    disk: Any = Disk()
    disk.full = True
    log = AuditLog(disk, Lines())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log.run)
        log.note(deed(1))
        await trio.sleep(3 * AGAIN_S)
        disk.full = False
        await trio.sleep(2 * AGAIN_S)
        assert disk.taken == 1
        nursery.cancel_scope.cancel()


async def test_what_could_not_be_written_is_counted_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "WAITING", 3)
    disk: Any = Disk()
    lines = Lines()
    log = AuditLog(disk, lines)
    for number in range(5):
        log.note(deed(number))
    await log.flush()
    assert lines.said == [("audit.lost", {"count": 2})]
    disk.full = True
    log.note(deed(9))
    await log.flush()
    assert lines.said[-1] == ("audit.lost", {"count": 3})


async def test_what_is_kept_is_durable_when_that_is_said(journal: Database) -> None:
    log = AuditLog(journal, Lines())
    for number in range(1, 4):
        await log.keep(deed(number))
        stored = await journal.read(lambda connection: rows.page(connection, 10))
        assert [each.at for _, each in stored] == [float(each) for each in range(number, 0, -1)]


async def test_deeds_side_by_side_share_a_transaction() -> None:
    disk: Any = Disk()
    log = AuditLog(disk, Lines())
    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(log.keep, deed(number))
    assert disk.taken < 5


async def test_a_disk_that_takes_nothing_holds_nobody_up_and_gets_it_later(autojump_clock: MockClock) -> None:
    disk: Any = Disk()
    disk.full = True
    log = AuditLog(disk, Lines())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log.run)
        with trio.fail_after(AGAIN_S / 2):
            await log.keep(deed(1))
        assert disk.taken == 0
        disk.full = False
        await trio.sleep(2 * AGAIN_S)
        assert disk.taken == 1
        with trio.fail_after(AGAIN_S):
            await log.keep(deed(2))
        assert disk.taken == 2
        nursery.cancel_scope.cancel()


async def test_it_is_kept_although_the_request_is_taken_back(journal: Database) -> None:
    log = AuditLog(journal, Lines())
    with trio.CancelScope() as scope:
        scope.cancel()
        await log.keep(deed(1))
    assert [each.at for _, each in await log.page(10, None, None, None)] == [1.0]


async def test_nobody_waits_for_what_was_given_up(autojump_clock: MockClock) -> None:
    disk: Any = Disk()
    log = AuditLog(disk, Lines())
    disk.full = True
    log.note(deed(1))
    await log.flush()
    disk.full = False
    with trio.fail_after(1):
        await log.keep(deed(2))
    assert disk.taken == 1
