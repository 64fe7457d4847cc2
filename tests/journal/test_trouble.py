"""A home whose disk or file fails: what is refused, what goes on, and how it ends."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from hermes_ws.contract.errors import StorageFull, StorageUnavailable
from hermes_ws.contract.events import Notice
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.database import Database, Transaction
from tests.journal.conftest import Opener, look

KEY = ThreadKey("ses-1", "main")


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.is_file())


def say(tx: Transaction, text: str = "hello") -> None:
    tx.append(KEY, "notice", Notice(level="info", type="t", message=text))


async def test_a_full_disk_makes_a_home_read_only_until_a_write_works(journal: Database) -> None:
    """Case RES-06."""
    await journal.transact(lambda tx: tx.connection.execute("PRAGMA max_page_count = 1").fetchall())
    with pytest.raises(StorageFull):
        for _ in range(50):
            await journal.transact(lambda tx: say(tx, "x" * 50_000))
    assert isinstance(journal.trouble, StorageFull)
    assert journal.statistics().read_only
    assert await journal.read(lambda connection: connection.execute("SELECT count(*) FROM session").fetchone()) == (1,)
    await journal.transact(lambda tx: tx.connection.execute("PRAGMA max_page_count = 1073741823").fetchall())
    assert journal.trouble is None
    await journal.transact(say)


async def test_a_home_that_works_again_is_found_out_by_a_write_that_changes_nothing(
    journal: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(tx: Transaction) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error

    with pytest.raises(StorageUnavailable):
        await journal.transact(locked)
    assert journal.trouble is not None
    assert await journal.probe()
    assert journal.trouble is None


def damaged(tx: Transaction) -> None:
    error = sqlite3.DatabaseError("database disk image is malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    raise error


async def test_nothing_more_is_written_to_a_damaged_file_and_reading_goes_on(
    open_home: Opener, journal: Database, file: Path
) -> None:
    """Case STORE-05."""
    with pytest.raises(StorageUnavailable, match="damaged"):
        await journal.transact(damaged)
    ran: list[None] = []
    with pytest.raises(StorageUnavailable, match="damaged") as caught:
        await journal.transact(lambda tx: ran.append(None))
    assert ran == []
    assert "restore a backup" in caught.value.hint
    assert not await journal.probe()
    assert journal.trouble is not None
    assert await journal.read(lambda connection: connection.execute("SELECT count(*) FROM session").fetchone()) == (1,)
    await journal.close()
    assert look(file, "SELECT value FROM meta WHERE key = 'clean'") == [(0,)]
    assert (await open_home()).recovered


async def test_each_of_those_who_wait_gets_an_error_of_its_own(journal: Database) -> None:
    with pytest.raises(StorageUnavailable) as first:
        await journal.transact(damaged)
    with pytest.raises(StorageUnavailable) as second:
        await journal.transact(say)
    with pytest.raises(StorageUnavailable) as third:
        await journal.transact(say)
    assert len({id(each.value) for each in (first, second, third)}) == 3


async def test_a_copy_is_made_while_writing_goes_on(journal: Database, tmp_path: Path) -> None:
    await journal.transact(say)
    await journal.backup(tmp_path / "copy.db")
    await journal.transact(say)
    assert look(tmp_path / "copy.db", "SELECT count(*) FROM event") == [(1,)]
    assert look(tmp_path / "copy.db", "PRAGMA integrity_check") == [("ok",)]
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600


async def test_a_copy_takes_nobodys_place_and_leaves_nothing_behind(
    journal: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    kept.write_text("theirs")
    with pytest.raises(StorageUnavailable, match="File exists"):
        await journal.backup(kept)
    assert kept.read_text() == "theirs"

    def refuse(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        with pytest.raises(StorageFull):
            await journal.backup(tmp_path / "copy.db")
    assert files(tmp_path) == ["kept"]
