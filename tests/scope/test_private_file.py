from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.scope.private_file import read_regular, write_private


def test_what_was_written_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write_private(path, b"one")
    write_private(path, b"two")
    assert read_regular(path, limit=3, private=True) == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["token"]


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "busy").mkdir()
    with pytest.raises(OSError, match="busy"):
        write_private(tmp_path / "busy", b"x")
    assert [entry.name for entry in tmp_path.iterdir()] == ["busy"]


def test_a_missing_file_is_none(tmp_path: Path) -> None:
    assert read_regular(tmp_path / "absent", limit=1) is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_can_open_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    path = tmp_path / ".env"
    path.write_text("A=1")
    path.chmod(mode)
    with pytest.raises(ProfileUnusable) as refused:
        read_regular(path, limit=100, private=True)
    assert refused.value.hint == f"chmod 600 {path}"
    assert read_regular(path, limit=100) == b"A=1"


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / ".env"
    path.write_text("A=1")
    path.chmod(0o600)
    if os.getuid() == 0:
        os.chown(path, 4321, 4321)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4321)
    with pytest.raises(ProfileUnusable, match="another user"):
        read_regular(path, limit=100, private=True)


def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".env", 0o600)
    with pytest.raises(ProfileUnusable, match="not a regular file"):
        read_regular(tmp_path / ".env", limit=100)


def test_a_directory_and_an_endless_link_are_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path, tmp_path / "loop"):
        with pytest.raises(ProfileUnusable):
            read_regular(path, limit=100)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert read_regular(tmp_path / "x", limit=5) == b"12345"
    with pytest.raises(ProfileUnusable, match="larger"):
        read_regular(tmp_path / "x", limit=4)
