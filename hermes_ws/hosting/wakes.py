"""When a closed profile is to be opened, because something of it is due then.

What is due lies in the profile's own store. Here is only the moment of the next one, kept in the launch home, so that
no home is opened, or even looked at, to find out.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final, final

import trio

from hermes_ws.contract.errors import HermesError
from hermes_ws.hosting.server_store import ServerStore

LOOK_S = 30.0
"""Seconds after which the clock is looked at again: it may have been set, or the machine may have slept."""

RETRY_S = 60.0
"""Seconds until a profile is tried again that could not be opened when something of it was due."""


@final
class Wakes:
    """The next moment of each profile that has one, by the origin of its home."""

    def __init__(
        self, store: ServerStore, open: Callable[[str], Awaitable[object]], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._store: Final = store
        self._open = open
        self._clock = clock
        self._due: dict[str, float] = {}
        self._changed = trio.Event()

    async def set(self, origin: str, due: float | None) -> None:
        """Remember when; None for not at all. Durable when this returns."""
        await self._store.wake(origin, due)
        self._due.pop(origin, None)
        if due is not None:
            self._due[origin] = due
        self._changed.set()

    @property
    def next(self) -> float | None:
        """The earliest moment at which any profile has something to do; None when none has."""
        return min(self._due.values(), default=None)

    async def run(self) -> None:
        """Open what is due, until cancelled. An open profile sees to its timers itself."""
        for origin, due in await self._store.wakes():
            self._due.setdefault(origin, due)
        while True:
            self._changed = trio.Event()
            now = self._clock()
            for origin, due in tuple(self._due.items()):
                if due <= now:
                    try:
                        await self._open(origin)
                        del self._due[origin]  # Its timers say when the next one is.
                    except HermesError:
                        self._due[origin] = now + RETRY_S
            following = self.next
            wait = LOOK_S if following is None else min(LOOK_S, max(0.0, following - self._clock()))
            with trio.move_on_after(wait):
                await self._changed.wait()
