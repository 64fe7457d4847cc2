"""Counting the processes below this one where the kernel does not: often enough for a storm, and seldom otherwise.

A look at every process of a machine takes milliseconds. How many threads the machine has is one short read: as long as
that has not risen by as many as are left to the limit, there cannot be too many of ours, but for what ended elsewhere
meanwhile; hence a look from time to time all the same.
"""

from __future__ import annotations

import os
import time
from typing import Final, final

from hermes_ws.warden import descendants
from hermes_ws.warden.descendants import Seen

GLANCE_S: Final = 0.1
"""Seconds between two reads of the number of threads, while there are children: some microseconds each."""

LOOK_S: Final = 2.0
"""Seconds until all processes are looked at whatever that number says."""


@final
class Counting:
    """The processes below this one against a limit."""

    def __init__(self, limit: int) -> None:
        self.due = 0.0
        """The monotonic time of the next glance, in seconds."""
        self._limit = limit
        self._look_at = 0.0
        self._room = 0
        self._threads = 0

    def over(self) -> list[Seen]:
        """Every process below, when they are more than the limit; none when they are not, or when it is not time."""
        now = time.monotonic()
        if now < self.due:
            return []
        self.due = now + GLANCE_S
        threads = _threads()
        if now < self._look_at and threads is not None and threads - self._threads < self._room:
            return []
        found = descendants.below(os.getpid())
        self._look_at = time.monotonic() + LOOK_S
        self._threads = _threads() or 0
        self._room = self._limit - len(found)
        return found if self._room < 0 else []


def _threads() -> int | None:
    """How many threads the machine has; nothing where that is not told."""
    try:
        place = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return int(os.read(place, 128).split()[3].partition(b"/")[2])
    except (OSError, ValueError, IndexError):
        return None
    finally:
        os.close(place)
