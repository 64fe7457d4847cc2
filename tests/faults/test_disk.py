"""A disk that is full, fails, is busy, stalls, or gives back something else than was written."""

from __future__ import annotations

import contextlib
import random
import resource
import shutil
import sqlite3
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_ws.contract.errors import HermesError, StorageFull, StorageUnavailable
from hermes_ws.contract.events import Notice
from hermes_ws.journal import events, opening, sessions
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.database import Database, Transaction
from hermes_ws.journal.sessions import NewSession
from hermes_ws.wire.cursor import Cursor
from tests.faults.conftest import open_database
from tests.faults.plan import BUSY, DAMAGED, FULL, IO, READ_ONLY, Fault, Plan, Stall, connecting

KEY = ThreadKey("ses-1", "main")
BORDERS = ("BEGIN IMMEDIATE", "INSERT INTO event", "SAVEPOINT work", "RELEASE work", "COMMIT")
NEW = NewSession("ses-1", None, "default", "/home/user", "api", "owner", "digest")


def append(text: str) -> Callable[[Transaction], Cursor]:
    return lambda tx: tx.append(KEY, "notice", Notice(level="info", type="test", message=text))


def append_and_write(text: str) -> Callable[[Transaction], Cursor]:
    def work(tx: Transaction) -> Cursor:
        cursor = append(text)(tx)
        sessions.touch(tx, "ses-1")
        return cursor

    return work


async def stored(database: Database) -> list[tuple[int, str]]:
    found, _ = await database.read(lambda connection: events.since(connection, KEY, Cursor(1, 0), 5000, 10**9))
    return [(event.seq, Notice.model_validate_json(event.payload).message) for event in found]


def sound(file: Path) -> bool:
    connection = sqlite3.connect(file)
    try:
        return connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        connection.close()


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize(
    ("fault", "error"),
    [(FULL, StorageFull), (IO, StorageUnavailable), (BUSY, StorageUnavailable), (READ_ONLY, StorageUnavailable)],
    ids=["full", "io", "busy", "read-only"],
)
async def test_a_failed_write_is_said_loses_nothing_acknowledged_and_is_over_when_it_is_over(
    tmp_path: Path, disk: Callable[[Plan], Plan], border: str, fault: Fault, error: type[HermesError]
) -> None:
    """Case RES-06, STORE-04."""
    second = 2 if border == "RELEASE work" else 1  # What fails here is undone by another of the same.
    plan = disk(Plan({border: {0: fault, second: fault}}))
    database = await open_database(tmp_path)
    await database.transact(lambda tx: sessions.create(tx, NEW))
    tail = await database.open_tail(KEY)
    await database.transact(append("before"))
    plan.arm()
    for _ in range(2):
        with pytest.raises(error):
            await database.transact(append_and_write("refused"))
    assert database.trouble is not None
    assert await stored(database) == [(1, "before")]
    assert await database.transact(append_and_write("after")) == Cursor(1, 2)
    assert database.trouble is None
    assert plan.met == 2
    assert await stored(database) == [(1, "before"), (2, "after")]
    assert tail.head == 2
    await database.close()
    assert sound(tmp_path / "state" / "sessions.db")


@pytest.mark.parametrize("border", BORDERS)
async def test_after_damage_nothing_more_reaches_the_file(
    tmp_path: Path, disk: Callable[[Plan], Plan], border: str
) -> None:
    """Case STORE-05."""
    plan = disk(Plan({border: {0: DAMAGED}}))
    database = await open_database(tmp_path)
    await database.transact(lambda tx: sessions.create(tx, NEW))
    await database.transact(append("before"))
    plan.arm()
    for _ in range(3):
        with pytest.raises(StorageUnavailable, match="damaged"):
            await database.transact(append_and_write("refused"))
    assert sum(plan.counts[each] for each in ("BEGIN IMMEDIATE",)) <= 1
    assert await stored(database) == [(1, "before")]
    await database.close()


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    faults=st.dictionaries(
        st.sampled_from(BORDERS),
        st.dictionaries(st.integers(0, 25), st.sampled_from([FULL, IO, BUSY]), max_size=6),
    ),
    works=st.lists(st.booleans(), min_size=5, max_size=30),
)
def test_wherever_it_fails_what_was_acknowledged_is_there_in_order_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, faults: dict[str, dict[int, Fault]], works: list[bool]
) -> None:
    home = tmp_path_factory.mktemp("home")
    plan = Plan(faults)

    async def main() -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(opening, "connect", connecting(plan))
            database = await open_database(home)
        await database.transact(lambda tx: sessions.create(tx, NEW))
        tail = await database.open_tail(KEY)
        plan.arm()
        acknowledged: list[tuple[int, str]] = []

        async def one(number: int, writes: bool) -> None:
            work = append_and_write if writes else append
            with contextlib.suppress(StorageUnavailable):
                cursor = await database.transact(work(str(number)))
                acknowledged.append((cursor.seq, str(number)))

        for first in range(0, len(works), 3):
            async with trio.open_nursery() as nursery:
                for number in range(first, min(first + 3, len(works))):
                    nursery.start_soon(one, number, works[number])
        plan.armed = False
        assert await stored(database) == sorted(acknowledged)
        assert [seq for seq, _ in sorted(acknowledged)] == list(range(1, len(acknowledged) + 1))
        assert tail.head == len(acknowledged)
        await database.close()

    trio.run(main)


async def test_a_stalled_disk_stalls_those_who_write_to_it_and_nobody_else(
    tmp_path: Path, disk: Callable[[Plan], Plan]
) -> None:
    """Case FLOW-05: the loop goes on, readers go on, another home goes on; and what waited is stored."""
    stall = Stall()
    other = await open_database(tmp_path / "other")
    await other.transact(lambda tx: sessions.create(tx, NEW))
    plan = disk(Plan({"COMMIT": {0: stall}}))
    database = await open_database(tmp_path / "slow")
    await database.transact(lambda tx: sessions.create(tx, NEW))
    plan.arm()
    done: list[Cursor] = []

    async def write() -> None:
        done.append(await database.transact(append("waited")))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        nursery.start_soon(write)
        await trio.to_thread.run_sync(stall.reached.wait, 30)
        for _ in range(100):
            await trio.lowlevel.checkpoint()
        assert await other.transact(append("meanwhile")) == Cursor(1, 1)
        assert await stored(database) == []
        assert done == []
        nursery.cancel_scope.cancel()
        # Cancelled or not, it will happen; so the task learns of it before it ends.
        stall.go.set()
    assert sorted(done) == [Cursor(1, 1), Cursor(1, 2)]
    assert len(await stored(database)) == 2
    await database.close()
    await other.close()


def torn(source: Path, target: Path, cut: Callable[[bytes], bytes]) -> None:
    """A home as a crash of the machine leaves it: its log ends somewhere, or has something else in it."""
    shutil.copytree(source, target)
    log = target / "state" / "sessions.db-wal"
    log.write_bytes(cut(log.read_bytes()))
    (target / "state" / "sessions.db-shm").unlink(missing_ok=True)


async def test_a_torn_log_gives_a_beginning_of_what_was_written_and_never_anything_else(tmp_path: Path) -> None:
    """Case STORE-08, FRAME-02: it opens, and what is there is whole."""
    home = tmp_path / "home"
    database = await open_database(home)
    await database.transact(lambda tx: sessions.create(tx, NEW))
    for number in range(30):
        await database.transact(append_and_write(str(number)))
    written = await stored(database)
    chance = random.Random(7)
    size = (home / "state" / "sessions.db-wal").stat().st_size
    for number in range(12):
        at = chance.randrange(size)
        garbled = number % 2 == 1

        def cut(log: bytes, at: int = at, garbled: bool = garbled) -> bytes:
            return log[:at] + b"\x5a" * (len(log) - at) if garbled else log[:at]

        torn(home, tmp_path / f"torn-{number}", cut)
        again = await open_database(tmp_path / f"torn-{number}")
        found = await again.read(lambda connection: sessions.get(connection, "ses-1"))
        if found is not None:
            kept = await stored(again)
            assert kept == written[: len(kept)]
            assert await again.transact(append("goes on")) == Cursor(1, len(kept) + 1)
        await again.close()
        assert sound(tmp_path / f"torn-{number}" / "state" / "sessions.db")
    await database.close()


async def test_a_page_that_is_damaged_is_found_and_no_other_home_is_touched(tmp_path: Path) -> None:
    """Case STORE-05: a damaged store is no empty one."""
    for name in ("a", "b"):
        database = await open_database(tmp_path / name)
        await database.transact(lambda tx: sessions.create(tx, NEW))
        for number in range(50):
            await database.transact(append("x" * 1000 + str(number)))
        await database.close()
    file = tmp_path / "b" / "state" / "sessions.db"
    connection = sqlite3.connect(file)
    connection.execute("UPDATE meta SET value = 0 WHERE key = 'clean'")
    connection.commit()
    connection.close()
    content = bytearray(file.read_bytes())
    content[8192:28672] = b"\xa5" * 20480
    file.write_bytes(content)
    with pytest.raises(StorageUnavailable, match="damaged") as caught:
        await open_database(tmp_path / "b")
    assert "restore a backup" in caught.value.hint
    assert file.read_bytes() == bytes(content)
    healthy = await open_database(tmp_path / "a")
    assert len(await stored(healthy)) == 50
    await healthy.close()


def many(tx: Transaction) -> None:
    """A work that is cut off in its middle when there is no room: it needs some sixty pages."""
    for number in range(60):
        append(f"{number} " + "x" * 4000)(tx)


def leave_room(pages: int) -> Callable[[Transaction], None]:
    """From here on the file may grow by so many pages only, as on a disk that is nearly full."""

    def work(tx: Transaction) -> None:
        have = int(tx.connection.execute("PRAGMA page_count").fetchone()[0])
        tx.connection.execute(f"PRAGMA max_page_count = {have + pages}")

    return work


async def test_a_disk_that_fills_in_the_middle_of_a_commit_leaves_no_half_of_it(tmp_path: Path) -> None:
    """Case RES-06: said as what it is, to all who were in it; reading goes on, and so does writing."""
    database = await open_database(tmp_path)
    await database.transact(lambda tx: sessions.create(tx, NEW))
    tail = await database.open_tail(KEY)
    await database.transact(append("before"))
    await database.transact(leave_room(8))
    acknowledged = ["before"]
    refused: list[HermesError] = []

    async def one(name: str, work: Callable[[Transaction], object]) -> None:
        try:
            await database.transact(work)
            acknowledged.append(name)
        except HermesError as error:
            refused.append(error)

    for attempt in range(2):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, "many", many)
            for number in range(3):
                nursery.start_soon(one, f"{attempt}-{number}", append(f"{attempt}-{number}"))
        assert sorted(text for _, text in await stored(database)) == sorted(acknowledged)
        assert tail.head == len(acknowledged)
    assert refused
    assert {(type(error), error.code, error.type) for error in refused} == {(StorageFull, 5001, "storage_full")}
    assert "many" not in acknowledged
    await database.transact(leave_room(1000))
    await database.transact(many)
    assert database.trouble is None
    assert len(await stored(database)) == len(acknowledged) + 60
    await database.close()
    assert sound(tmp_path / "state" / "sessions.db")


@contextlib.contextmanager
def no_file_longer_than(size: int) -> Generator[None]:
    """Let this process write files up to this length: a write across it is cut off there, the next one fails."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


async def test_a_page_that_is_half_written_in_a_commit_is_no_part_of_the_journal(tmp_path: Path) -> None:
    """The write is torn by the system, in the middle of a page of the log; for this owner, and for the next one."""
    home = tmp_path / "home"
    database = await open_database(home)
    await database.transact(lambda tx: sessions.create(tx, NEW))
    await database.transact(append("before"))
    log = home / "state" / "sessions.db-wal"
    size = log.stat().st_size
    with no_file_longer_than(size + 9000), pytest.raises(StorageUnavailable):
        await database.transact(many)
    assert log.stat().st_size == size + 9000
    assert await stored(database) == [(1, "before")]
    shutil.copytree(home, tmp_path / "after-a-crash")
    await database.transact(append("after"))
    assert database.trouble is None
    await database.close()
    for path, texts in ((home, ["before", "after"]), (tmp_path / "after-a-crash", ["before"])):
        again = await open_database(path)
        assert [text for _, text in await stored(again)] == texts
        assert await again.transact(append("goes on")) == Cursor(1, len(texts) + 1)
        await again.close()
        assert sound(path / "state" / "sessions.db")


@settings(max_examples=12, deadline=None, derandomize=True)
@given(jumps=st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=20))
def test_whatever_the_clock_does_time_stamps_do_not_go_back(
    tmp_path_factory: pytest.TempPathFactory, jumps: list[float]
) -> None:
    home = tmp_path_factory.mktemp("home")
    times = [1e9]

    async def main() -> None:
        for part in (jumps[: len(jumps) // 2], jumps[len(jumps) // 2 :]):
            database = await open_database(home, lambda: times[-1])
            await database.transact(
                lambda tx: None if sessions.get(tx.connection, "ses-1") is not None else sessions.create(tx, NEW)
            )
            for jump in part:
                times.append(times[-1] + jump)
                await database.transact(append("tick"))
            found, _ = await database.read(lambda c: events.since(c, KEY, Cursor(1, 0), 5000))
            await database.close()
        stamps = [event.ts for event in found]
        assert len(stamps) == len(jumps)
        assert stamps == sorted(stamps)

    trio.run(main)
