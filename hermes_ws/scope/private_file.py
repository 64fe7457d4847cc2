"""Files that only their owner may read: written beside and renamed, read with their mode checked.

A reader sees the old content or the new, never half of either, and after `write_private` has returned the new content
survives a crash of the machine.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from hermes_ws.contract.errors import ProfileUnusable

OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""The mode bits that give a file to anybody but its owner."""


def write_private(path: Path, data: bytes) -> None:
    """Replace `path` by `data` with mode 0600, durably. Raises OSError, and leaves the old file then."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def read_regular(path: Path, *, limit: int, private: bool = False) -> bytes | None:
    """Read a regular file of at most `limit` bytes; None when there is none.

    With `private`, a file that others can read, or that belongs to somebody else, is refused. All refusals are
    `ProfileUnusable` and say what to mend.
    """
    try:
        # Not blocking: a FIFO of this name would otherwise hold the server up until somebody writes into it.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ProfileUnusable(f"{path} cannot be read: {error.strerror}.", file=str(path)) from None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise ProfileUnusable(f"{path} is not a regular file.", file=str(path))
        if private:
            _check_private(path, found)
        with open(fd, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    finally:
        os.close(fd)
    if len(data) > limit:
        raise ProfileUnusable(f"{path} is larger than {limit} bytes.", file=str(path))
    return data


def _check_private(path: Path, found: os.stat_result) -> None:
    if found.st_uid not in (os.geteuid(), 0):
        raise ProfileUnusable(
            f"{path} belongs to another user.",
            hint=f"chown $(id -un) {path}",
            file=str(path),
        )
    if found.st_mode & OTHERS:
        raise ProfileUnusable(
            f"{path} can be read or written by others (mode {stat.S_IMODE(found.st_mode):04o}).",
            hint=f"chmod 600 {path}",
            file=str(path),
        )


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
