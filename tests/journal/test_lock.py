"""Who owns a home."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import orjson
import pytest

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.journal.lock import OwnerLock


def test_the_second_owner_is_told_who_the_first_is(lock: Path) -> None:
    """Case STORE-06."""
    first = OwnerLock.take(lock)
    first.write("one", 7)
    with pytest.raises(ProfileUnusable, match=f"owned by pid {os.getpid()}"):
        OwnerLock.take(lock)
    first.release()


def test_a_holder_that_has_said_nothing_yet_still_holds(lock: Path) -> None:
    first = OwnerLock.take(lock)
    with pytest.raises(ProfileUnusable, match="owned by another process"):
        OwnerLock.take(lock)
    first.release()


def test_a_released_home_can_be_taken_and_remembers_its_last_owner(lock: Path) -> None:
    first = OwnerLock.take(lock)
    assert first.previous is None
    first.write("a rather long instance id", 7)
    first.release()
    first.release()
    second = OwnerLock.take(lock)
    assert second.previous is not None
    assert (second.previous.instance_id, second.previous.epoch) == ("a rather long instance id", 7)
    second.write("b", 8)
    content = orjson.loads(lock.read_bytes())
    assert content["instance_id"] == "b"
    assert content["pid"] == os.getpid()
    assert content["start_time"] > 0
    second.release()


@pytest.mark.parametrize("content", [b"", b"garbage", b"[]", b'{"pid": 1}', b'{"pid": null}', b"\xff\xfe"])
def test_a_lock_file_that_cannot_be_read_is_taken_all_the_same(lock: Path, content: bytes) -> None:
    lock.parent.mkdir(parents=True)
    lock.write_bytes(content)
    taken = OwnerLock.take(lock)
    assert taken.previous is None
    taken.release()


def test_the_lock_file_is_private_and_no_link_is_followed(lock: Path, tmp_path: Path) -> None:
    OwnerLock.take(lock).release()
    assert lock.stat().st_mode & 0o777 == 0o600
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ProfileUnusable, match="cannot be opened"):
        OwnerLock.take(lock)
    assert not (tmp_path / "elsewhere").exists()


def test_a_kernel_that_locks_nothing_is_said_aloud(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(ProfileUnusable, match="No locks available"):
        OwnerLock.take(lock)


def test_a_file_in_the_place_of_the_directory_is_said_aloud(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(ProfileUnusable, match="cannot be opened"):
        OwnerLock.take(tmp_path / "run" / "owner.lock")
