"""What a server that was killed in the middle of starting a warden left behind, ended by the next one.

Bubblewrap's child waits for bubblewrap before it asks the kernel to end with it. When the server is killed within that
millisecond, and bubblewrap with it, the child waits for ever: it has run nothing, and holds what it was to be given.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

from hermes_ws.warden import descendants

_ROOM: Final = os.fsencode(Path(__file__).parent)

_READ_BYTES: Final = 4096
"""Enough of a command line and of a status."""


def end() -> int:
    """End them, and return how many there were. Blocks for some milliseconds: a look at each process."""
    count = 0
    for name in os.listdir("/proc"):
        if not name.isdecimal() or not _waits(name):
            continue
        seen = descendants.look(int(name))
        if seen is not None and _read(str(seen.parent), "comm") != b"bwrap\n":
            descendants.send(seen, signal.SIGKILL)
            count += 1
    return count


def _waits(pid: str) -> bool:
    """Whether it is still bubblewrap, the first process of its own namespace, and was to become a warden of ours."""
    if _read(pid, "comm") != b"bwrap\n" or _ROOM not in _read(pid, "cmdline").split(b"\0"):
        return False
    numbers = next((line for line in _read(pid, "status").splitlines() if line.startswith(b"NSpid:")), b"").split()
    return len(numbers) > 2 and numbers[-1] == b"1"


def _read(pid: str, name: str) -> bytes:
    try:
        place = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(place, _READ_BYTES)
    except OSError:
        return b""
    finally:
        os.close(place)
