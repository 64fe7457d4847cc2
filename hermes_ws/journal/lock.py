"""Who owns a home. One process at a time does, and it holds `run/owner.lock` as long as it lives.

The lock is the kernel's (flock), so that it ends with its holder however that ends; the file's content only tells
others who it is. The epoch in it rises with each owner and is kept here and in the database, so that neither of the
two can be put back alone.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self, final

import orjson

from hermes_ws.contract.errors import ProfileUnusable

_READ_BYTES = 4096
"""More than the content of a lock file ever is."""


@final
@dataclass(frozen=True, slots=True)
class Owner:
    """What a lock file says of its holder. `start_time` is the kernel's, in clock ticks since boot: pids come again."""

    pid: int
    start_time: int
    instance_id: str
    epoch: int


@final
class OwnerLock:
    """The lock on a home, held. `previous` is what the last owner left, if it can be read."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd = fd
        self.previous = _read(fd)

    @classmethod
    def take(cls, path: Path) -> Self:
        """Take the lock or raise `ProfileUnusable`, which names the process that has it (case STORE-06)."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise ProfileUnusable(f"The lock {path} cannot be opened: {error.strerror}.") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return cls(path, fd)
        except BlockingIOError:
            owner = _read(fd)
            os.close(fd)
            who = f"pid {owner.pid}" if owner is not None else "another process"
            raise ProfileUnusable(
                f"The home of {path} is owned by {who}.",
                hint="One server at a time serves a home. Use that one, or stop it first.",
            ) from None
        except OSError as error:
            os.close(fd)
            raise ProfileUnusable(f"The lock {path} cannot be taken: {error.strerror}.") from error

    def write(self, instance_id: str, epoch: int) -> None:
        """Say who holds the lock, durably. Raises OSError."""
        owner = Owner(os.getpid(), _start_time(), instance_id, epoch)
        content = orjson.dumps(asdict(owner)) + b"\n"
        os.pwrite(self._fd, content, 0)
        os.ftruncate(self._fd, len(content))
        os.fsync(self._fd)

    def release(self) -> None:
        """Give the home free. The file stays: removing it would let two owners hold two files of one name."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _read(fd: int) -> Owner | None:
    try:
        content = orjson.loads(os.pread(fd, _READ_BYTES, 0))
        return Owner(
            int(content["pid"]), int(content["start_time"]), str(content["instance_id"]), int(content["epoch"])
        )
    except (ValueError, TypeError, KeyError):
        return None


def _start_time() -> int:
    stat = Path("/proc/self/stat").read_text("utf-8", "replace")
    return int(stat.rpartition(")")[2].split()[19])
