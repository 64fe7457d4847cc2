"""Which requests of a connection may run now.

Requests with the same lane run one after the other, in the order of arrival; those without a lane, and those of
different lanes, side by side. What is more than may run at once waits, within bounds; what is more than may wait is
refused. Requests that must not wait for anything (`Order.NOW`) have room of their own, so that a connection that is
full of work can still be told to stop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import final

from hermes_ws.contract.errors import Overloaded

WAITING_REQUESTS = 256
"""Requests that may wait on one connection: four times what runs by default, so that bursts are taken, floods not."""

WAITING_BYTES = 4 * 1024 * 1024
"""Bytes that may wait on one connection: four frames of the largest size."""

RETRY_AFTER = 0.5
"""Seconds after which a refused request is worth sending again; most requests take milliseconds."""


@final
@dataclass(eq=False, slots=True)
class Entry:
    """A request on its way: its lane, its size in bytes, and what starts it."""

    lane: Hashable | None
    size: int
    start: Callable[[Entry], None]
    overtakes: bool = False


@final
class Lanes:
    """The requests of one connection. Every entry that was taken must be given back with `done`, once."""

    __slots__ = ("_busy", "_bytes", "_overtaking", "_ready", "_running", "_waiting", "_width")

    def __init__(self, width: int) -> None:
        self._width = width
        self._running = 0
        self._overtaking = 0
        self._waiting = 0
        self._bytes = 0
        self._busy: dict[Hashable, deque[Entry]] = {}
        self._ready: deque[Entry] = deque()

    @property
    def running(self) -> int:
        """How many run now."""
        return self._running + self._overtaking

    @property
    def waiting(self) -> int:
        """How many wait for their lane or for room."""
        return self._waiting

    def free(self, lane: Hashable | None) -> bool:
        """Whether a request of this lane would run at once."""
        return self._running < self._width and (lane is None or lane not in self._busy)

    def take(self, entry: Entry) -> None:
        """Start the entry, now or in its turn. Raises `Overloaded` when there is no room to wait."""
        if entry.overtakes:
            if self._overtaking >= self._width:
                raise self._overloaded()
            self._overtaking += 1
            entry.start(entry)
            return
        queue = None if entry.lane is None else self._busy.get(entry.lane)
        if queue is None and self._running < self._width:
            if entry.lane is not None:
                self._busy[entry.lane] = deque()
            self._running += 1
            entry.start(entry)
            return
        if self._waiting >= WAITING_REQUESTS or self._bytes + entry.size > WAITING_BYTES:
            raise self._overloaded()
        self._waiting += 1
        self._bytes += entry.size
        if queue is not None:
            queue.append(entry)
            return
        if entry.lane is not None:
            self._busy[entry.lane] = deque()
        self._ready.append(entry)

    def done(self, entry: Entry) -> None:
        """Give an entry back that has run; the next of its lane and whoever there is room for starts."""
        if entry.overtakes:
            self._overtaking -= 1
            return
        self._running -= 1
        if entry.lane is not None:
            queue = self._busy[entry.lane]
            if queue:
                self._ready.append(queue.popleft())
            else:
                del self._busy[entry.lane]
        while self._ready and self._running < self._width:
            following = self._ready.popleft()
            self._waiting -= 1
            self._bytes -= following.size
            self._running += 1
            following.start(following)

    def _overloaded(self) -> Overloaded:
        return Overloaded(
            "This connection has more requests under way than it may.",
            hint="Wait for some replies; limits.in_flight says how many run at once.",
            retry_after_s=RETRY_AFTER,
        )
