"""Large contents beside the database: there before they are named, and gone when nobody needs them."""

from __future__ import annotations

import contextvars
import errno
import hashlib
import os
from pathlib import Path

import pytest

from hermes_ws.contract.errors import NotFound, StorageFull, StorageUnavailable
from hermes_ws.journal import blobs as blobs_module
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.blobs import Blob, Blobs, total
from hermes_ws.journal.database import Database, Transaction

KEY = ThreadKey("ses-1", "main")


def files(journal_home: Path) -> list[str]:
    return sorted(path.name for path in (journal_home / "state" / "blobs").rglob("*") if path.is_file())


async def test_what_is_put_can_be_read_whole_and_in_pieces(journal: Database, home: Path) -> None:
    blob = await journal.blobs.put(b"0123456789")
    assert blob == Blob(hashlib.sha256(b"0123456789").hexdigest(), 10)
    assert await journal.blobs.read(blob.hash) == b"0123456789"
    assert await journal.blobs.read(blob.hash, 3, 4) == b"3456"
    assert await journal.blobs.read(blob.hash, 10, 4) == b""
    assert await journal.blobs.size(blob.hash) == 10
    (path,) = (home / "state" / "blobs").rglob(blob.hash)
    assert path.stat().st_mode & 0o777 == 0o600


async def test_the_same_content_is_one_file(journal: Database, home: Path) -> None:
    assert await journal.blobs.put(b"twice") == await journal.blobs.put(b"twice")
    assert len(files(home)) == 1


async def test_a_file_that_was_cut_from_outside_is_written_anew(journal: Database, home: Path) -> None:
    blob = await journal.blobs.put(b"whole")
    (path,) = (home / "state" / "blobs").rglob(blob.hash)
    path.write_bytes(b"wh")
    await journal.blobs.put(b"whole")
    assert await journal.blobs.read(blob.hash) == b"whole"


async def test_a_file_of_the_home_can_become_a_blob(journal: Database, home: Path) -> None:
    for _ in range(2):
        uploaded = home / "state" / "upload"
        uploaded.write_bytes(b"in chunks")
        blob = await journal.blobs.adopt(uploaded)
        assert not uploaded.exists()
    assert await journal.blobs.read(blob.hash) == b"in chunks"


@pytest.mark.parametrize("name", ["", "..", "../sessions.db", "A" * 64, "a" * 63, "é" * 64])
async def test_what_is_no_hash_names_nothing(journal: Database, name: str) -> None:
    assert await journal.blobs.size(name) is None
    with pytest.raises(NotFound):
        await journal.blobs.read(name)


async def test_what_was_never_put_is_not_found(journal: Database) -> None:
    assert await journal.blobs.size("0" * 64) is None
    with pytest.raises(NotFound):
        await journal.blobs.read("0" * 64)


@pytest.mark.parametrize(
    ("number", "error"), [(errno.ENOSPC, StorageFull), (errno.EIO, StorageUnavailable), (errno.EDQUOT, StorageFull)]
)
async def test_a_disk_that_takes_nothing_leaves_nothing_half_written(
    journal: Database, home: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[StorageUnavailable]
) -> None:
    def refuse(fd: int) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(blobs_module.os, "fsync", refuse)
        with pytest.raises(error):
            await journal.blobs.put(b"content")
    assert files(home) == []
    await journal.blobs.put(b"content")
    assert len(files(home)) == 1


async def test_collecting_keeps_what_a_thread_refers_to_and_removes_the_rest(journal: Database, home: Path) -> None:
    kept, dropped = await journal.blobs.put(b"kept"), await journal.blobs.put(b"dropped")
    await journal.transact(lambda tx: journal.blobs.use(tx, kept, KEY))
    await journal.transact(lambda tx: journal.blobs.use(tx, kept, KEY))
    assert await journal.blobs.collect(journal.transact, grace=-1) == dropped.size
    assert files(home) == [kept.hash]
    assert await journal.read(total) == 4

    def delete(tx: Transaction) -> None:
        tx.connection.execute("DELETE FROM session")
        tx.forget_head(KEY)

    await journal.transact(delete)
    assert await journal.blobs.collect(journal.transact, grace=-1) == kept.size
    assert files(home) == []
    assert await journal.read(total) == 0


async def test_what_was_just_put_is_not_collected_before_it_can_be_named(journal: Database, home: Path) -> None:
    blob = await journal.blobs.put(b"about to be named")
    assert await journal.blobs.collect(journal.transact) == 0
    await journal.transact(lambda tx: journal.blobs.use(tx, blob, KEY))
    assert await journal.blobs.read(blob.hash) == b"about to be named"


async def test_putting_it_again_makes_it_new(tmp_path: Path, journal: Database) -> None:
    times = [100.0]
    directory = tmp_path / "blobs"
    blobs = Blobs(directory, contextvars.copy_context(), lambda: times[0])
    old, again = await blobs.put(b"old"), await blobs.put(b"again")
    times[0] = 10_000.0
    await blobs.put(b"again")
    assert await blobs.collect(journal.transact, grace=5_000) == old.size
    assert await blobs.size(again.hash) == again.size


async def test_what_a_crash_left_unfinished_is_collected(journal: Database, home: Path) -> None:
    directory = home / "state" / "blobs"
    directory.mkdir()
    (directory / "0123.part").write_bytes(b"half")
    os.utime(directory / "0123.part", (1.0, 1.0))
    (directory / "empty").mkdir()
    assert await journal.blobs.collect(journal.transact, grace=-1) == 4
    assert files(home) == []


@pytest.mark.parametrize("letter", ["x", "ü", "😀"])
def test_an_excerpt_is_the_beginning_and_the_end_within_its_bound(letter: str) -> None:
    bound = blobs_module.INLINE_BYTES
    fits = letter * (bound // len(letter.encode()))
    assert blobs_module.excerpt(fits) == fits
    cut = blobs_module.excerpt(f"begin{fits}end")
    assert cut.startswith(f"begin{letter}")
    assert cut.endswith(f"{letter}end")
    assert "[…]" in cut
    assert len(cut.encode()) <= bound
    assert "\ufffd" not in cut, "no letter is cut in two"


def test_an_excerpt_of_what_is_no_text_can_be_stored() -> None:
    assert blobs_module.excerpt("\ud800" * blobs_module.INLINE_BYTES * 2).encode()
