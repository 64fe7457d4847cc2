"""Opening a home's database: what is checked, and that nothing is harmed when it fails."""

# ruff: noqa: ASYNC240 - a test that waits for its own small files holds up nobody.

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from functools import partial
from pathlib import Path

import orjson
import pytest

from hermes_ws.contract.errors import ProfileUnusable, StorageUnavailable
from hermes_ws.journal import filesystem, opening
from hermes_ws.journal.database import Database
from hermes_ws.journal.opening import Place, close_place, open_place
from hermes_ws.journal.schema import STEPS
from tests.journal.conftest import Opener, look


@pytest.fixture
def place(file: Path, lock: Path) -> Place:
    return Place(file, lock, "instance", "full")


def crash(place: Place) -> None:
    """End an owner as a kill does: nothing is marked, the kernel gives the lock free."""
    opened = open_place(place)
    opened.connection.execute("CREATE TABLE filler AS SELECT randomblob(4096 * 50) AS x")
    opened.connection.close()
    opened.lock.release()


async def test_a_database_is_private_durable_and_checked(open_home: Opener, file: Path) -> None:
    database = await open_home()

    def settings(connection: sqlite3.Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    assert await database.transact(lambda tx: settings(tx.connection)) == ["wal", 2, 1]
    for name in ("sessions.db", "sessions.db-wal", "sessions.db-shm"):
        assert file.with_name(name).stat().st_mode & 0o777 == 0o600
    assert not database.recovered


async def test_normal_durability_is_what_it_says(open_home: Opener) -> None:
    database = await open_home(durability="normal")
    assert await database.transact(lambda tx: tx.connection.execute("PRAGMA synchronous").fetchone()[0]) == 1
    assert database.durability == "normal"


async def test_each_owner_has_a_higher_epoch_and_the_lock_says_which(open_home: Opener, lock: Path) -> None:
    for expected in (1, 2, 3):
        database = await open_home(instance_id=f"i{expected}")
        assert database.epoch == expected
        content = orjson.loads(lock.read_bytes())
        assert (content["epoch"], content["instance_id"]) == (expected, f"i{expected}")
        await database.close()


async def test_an_epoch_comes_from_whichever_place_remembers_the_higher_one(
    open_home: Opener, file: Path, lock: Path
) -> None:
    await (await open_home()).close()
    shutil.copy(file, file.with_name("backup"))
    await (await open_home()).close()
    shutil.move(file.with_name("backup"), file)
    third = await open_home()
    assert third.epoch == 3
    await third.close()
    lock.unlink()
    assert (await open_home()).epoch == 4


async def test_a_second_owner_is_refused_and_the_first_goes_on(open_home: Opener) -> None:
    """PROC-04: Case STORE-06."""
    first = await open_home()
    with pytest.raises(ProfileUnusable, match="owned by pid"):
        await open_home()
    assert await first.transact(lambda tx: tx.epoch) == 1


async def test_a_home_on_a_network_is_refused_and_given_free(
    open_home: Opener, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(directory: Path, allowed: tuple[str, ...]) -> None:
        raise ProfileUnusable(f"{directory} lies on a network file system.")

    with monkeypatch.context() as patched:
        patched.setattr(opening, "refuse_network", refuse)
        with pytest.raises(ProfileUnusable, match="network"):
            await open_home()
    assert not file.exists()
    await open_home()


def test_a_network_that_is_allowed_by_name_is_taken_and_no_other(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    nfs = next(number for number, name in filesystem.NETWORK.items() if name == "NFS")
    monkeypatch.setattr(opening, "refuse_network", partial(filesystem.refuse_network, magic_of=lambda _: nfs))
    with pytest.raises(ProfileUnusable, match="NFS") as refused:
        open_place(replace(place, network_file_systems=("SMB",)))
    assert "network_file_systems: [NFS]" in refused.value.hint
    opened = open_place(replace(place, network_file_systems=("NFS",)))
    assert close_place(opened, 0.0) is None


async def test_after_an_unclean_end_the_file_is_checked(open_home: Opener, place: Place) -> None:
    crash(place)
    database = await open_home()
    assert database.recovered
    await database.close()
    assert not (await open_home()).recovered


def damage(file: Path) -> None:
    with file.open("r+b") as target:
        target.seek(4096)
        target.write(b"\xa5" * 4096 * 20)


async def test_damage_is_found_after_an_unclean_end_and_nothing_is_overwritten(
    open_home: Opener, place: Place, file: Path
) -> None:
    """Case STORE-05."""
    crash(place)
    damage(file)
    before = file.read_bytes()
    for _ in range(2):
        with pytest.raises(StorageUnavailable, match=r"sessions\.db") as caught:
            await open_home()
        assert "Nothing was overwritten" in caught.value.hint
    assert file.read_bytes() == before


async def test_damage_that_only_the_check_sees_is_found(open_home: Opener, place: Place, file: Path) -> None:
    crash(place)
    connection = sqlite3.connect(file)
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.close()
    with file.open("r+b") as target:
        target.seek((pages - 2) * 4096)
        target.write(b"\xff" * 4096)
    with pytest.raises(StorageUnavailable, match="is damaged"):
        await open_home()


async def test_a_file_that_is_no_database_is_refused_as_it_is(open_home: Opener, file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(b"something else" * 1000)
    with pytest.raises(StorageUnavailable, match="not a database"):
        await open_home()
    assert file.read_bytes() == b"something else" * 1000


async def test_a_directory_in_the_place_of_the_file_is_said_aloud(open_home: Opener, file: Path) -> None:
    file.mkdir(parents=True)
    with pytest.raises(StorageUnavailable, match="unable to open"):
        await open_home()


async def test_a_file_in_the_place_of_the_directory_is_said_aloud(open_home: Opener, home: Path) -> None:
    home.mkdir()
    (home / "state").write_text("")
    with pytest.raises(StorageUnavailable, match="cannot be opened"):
        await open_home()


async def test_a_database_that_cannot_log_ahead_is_refused(open_home: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_memory(database: Path, *, read_only: bool = False) -> sqlite3.Connection:
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)

    monkeypatch.setattr(opening, "connect", in_memory)
    with pytest.raises(StorageUnavailable, match="its mode is memory"):
        await open_home()


async def test_an_older_database_is_migrated_with_a_copy(open_home: Opener, file: Path) -> None:
    await (await open_home()).close()
    newer = (*STEPS, ("CREATE TABLE later (x)",))
    database = await open_home(steps=newer)
    assert await database.read(lambda connection: connection.execute("SELECT * FROM later").fetchall()) == []
    await database.close()
    assert look(file.with_name(f"sessions.db.v{len(STEPS)}"), "PRAGMA user_version") == [(len(STEPS),)]
    with pytest.raises(StorageUnavailable, match=f"has version {len(STEPS) + 1}"):
        await open_home()


@pytest.mark.parametrize("number", [0, 1, 3])
async def test_a_database_that_is_not_known_is_refused_by_name_and_left_as_it_is(
    open_home: Opener, file: Path, number: int
) -> None:
    """Case STORE-05: whatever number it has, and whether or not its last owner closed it."""
    file.parent.mkdir(parents=True)
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE session (session_id TEXT PRIMARY KEY)")
    other.execute(f"PRAGMA user_version = {number}")
    other.close()
    before = file.read_bytes()
    with pytest.raises(StorageUnavailable, match="older than the first version") as caught:
        await open_home()
    assert str(file) in caught.value.message
    assert file.read_bytes() == before
    assert [each.name for each in file.parent.iterdir() if each.name.startswith("sessions.db.v")] == []


async def test_paths_outside_of_the_home_are_a_mistake(home: Path, file: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not lie in the home"):
        await Database.open(home, file, tmp_path / "lock", instance_id="i", profile="work")


def test_an_owner_that_lost_the_home_does_not_mark_it_as_closed(place: Place, file: Path) -> None:
    opened = open_place(place)
    opened.connection.execute("UPDATE meta SET value = 9 WHERE key = 'epoch'")
    assert close_place(opened, 5.0) is None
    assert look(file, "SELECT value FROM meta WHERE key = 'clean'") == [(0,)]


def test_a_file_that_cannot_be_marked_is_closed_all_the_same(place: Place) -> None:
    opened = open_place(place)
    opened.connection.execute("PRAGMA query_only = ON")
    failed = close_place(opened, 5.0)
    assert failed is not None
    assert "could not be marked" in failed.message
    close_place(open_place(place), 5.0)


def test_after_an_unclean_end_time_goes_on_from_the_last_event(place: Place) -> None:
    opened = open_place(place)
    for statement in (
        "INSERT INTO session VALUES ('s', NULL, 0, 'a', '/', 'api', '{}', 'owner', NULL, 'd', 1, 0.0, 0.0, 0)",
        "INSERT INTO thread VALUES (1, 's', 'main', 'main', 1, 0, 0.0, NULL)",
        "INSERT INTO thread VALUES (2, 's', 'empty', 'fork', 1, 0, 0.0, NULL)",
        "INSERT INTO event VALUES (1, 1, 1, 'notice', 500.0, NULL, NULL, x'')",
        "INSERT INTO event VALUES (1, 1, 2, 'notice', 600.5, NULL, NULL, x'')",
    ):
        opened.connection.execute(statement)
    opened.connection.close()
    opened.lock.release()
    again = open_place(place)
    assert (again.recovered, again.last_ts) == (True, 600.5)
    assert close_place(again, 700.123456789) is None
    third = open_place(place)
    assert third.last_ts == pytest.approx(700.123457)
    assert third.last_ts >= 700.123456789
    close_place(third, 0.0)
