"""How much a directory holds, measured in a child of its own so that a large tree holds up nobody.

This is no quota of the kernel: between two measurements a command may go over the limit by what it writes in that time,
and whatever is deleted but still open is not counted.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from typing import Final, final

_PAUSE_S: Final = 1.0
"""Seconds between two measurements at the least."""

_SHARE: Final = 10
"""A measurement may take this fraction of the time: a large tree is measured less often."""

_ANSWER_BYTES: Final = 64
"""More than a number has digits."""


def used(root: str) -> int:
    """The bytes that the files below `root` occupy; a file with several names counts once. Links are not followed."""
    total = 0
    counted: set[tuple[int, int]] = set()
    waiting = [root]
    while waiting:
        try:
            entries = os.scandir(waiting.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                try:
                    state = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if stat.S_ISDIR(state.st_mode):
                    waiting.append(entry.path)
                if state.st_nlink > 1 and not stat.S_ISDIR(state.st_mode):
                    if (state.st_dev, state.st_ino) in counted:
                        continue
                    counted.add((state.st_dev, state.st_ino))
                total += state.st_blocks * 512
    return total


@final
class Measuring:
    """Measures one directory again and again while something runs. `fork` starts a child and returns its number."""

    def __init__(self, root: str, limit: int, fork: Callable[[Callable[[], None], int], int]) -> None:
        self._root = root
        self._limit = limit
        self._fork = fork
        self._answer: int | None = None
        self._begun = 0.0
        self._next = 0.0

    @property
    def descriptor(self) -> int | None:
        """Where the answer of the measurement that runs is to be read."""
        return self._answer

    def due(self, now: float) -> float | None:
        """When the next measurement begins; nothing while one runs."""
        return None if self._answer is not None else max(now, self._next)

    def begin(self, now: float) -> None:
        """Start measuring if it is time to."""
        if self._answer is not None or now < self._next:
            return
        ours, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            self._fork(lambda: _say(theirs, used(self._root)), theirs)
        except OSError:
            os.close(ours)
            self._next = now + _PAUSE_S
            return
        finally:
            os.close(theirs)
        self._answer, self._begun = ours, now

    def take(self, now: float) -> bool:
        """Read the answer; true when the directory holds more than it may."""
        if self._answer is None:
            return False
        try:
            said = os.read(self._answer, _ANSWER_BYTES)
        except BlockingIOError:
            return False
        os.close(self._answer)
        self._answer = None
        took = time.monotonic() - self._begun
        self._next = now + max(_PAUSE_S, took * _SHARE)
        return said.isdigit() and int(said) > self._limit


def _say(place: int, number: int) -> None:
    os.write(place, str(number).encode())
