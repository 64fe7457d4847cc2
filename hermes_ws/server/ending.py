"""Why a server ends: it was told to, nobody needs it any more, or whoever started it is gone.

The first word begins an orderly end: what runs gets its time. A second one leaves no more time. Whatever asks, asks
here, so that there is one end and not several.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, final

import trio

LOOKS_PER_IDLE: Final = 4
"""Looks at whether the server is needed, within the time it may be idle: it ends at most a quarter late."""


@final
class Ending:
    """The end of one server. `deadline_s` is how long what runs may go on once the end was asked for."""

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self.reason = ""
        self._asked = trio.Event()
        self._hurried = trio.Event()

    def ask(self, reason: str, deadline_s: float | None = None) -> None:
        """Begin the end, or hasten one that has begun."""
        if self._asked.is_set():
            self._hurried.set()
            return
        self.reason = reason
        if deadline_s is not None:
            self.deadline_s = deadline_s
        self._asked.set()

    async def asked(self) -> None:
        """Return when the end was asked for."""
        await self._asked.wait()

    async def hurried(self) -> None:
        """Return when it was asked for again."""
        await self._hurried.wait()

    # --- who asks ----------------------------------------------------------------------------------------------------

    async def hear(self, told: AsyncIterator[int], reload: Callable[[], Awaitable[None]]) -> None:
        """Take signals: SIGHUP loads settings again, all others ask for the end."""
        async for number in told:
            if number == signal.SIGHUP:
                await reload()
            else:
                self.ask(signal.Signals(number).name)

    async def when_idle(self, needed: Callable[[], bool], idle_s: float) -> None:
        """Ask when the server was not needed for `idle_s` seconds. Activity is what `needed` says, looked at often."""
        last = trio.current_time()
        while True:
            await trio.sleep(idle_s / LOOKS_PER_IDLE)
            if needed():
                last = trio.current_time()
            elif trio.current_time() - last >= idle_s:
                self.ask("idle")
                return

    async def with_parent(self, pid: int) -> None:
        """Ask when this process ends, or at once when there is none of this number."""
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            self.ask("the parent process is gone")
            return
        try:
            await trio.lowlevel.wait_readable(descriptor)
        finally:
            os.close(descriptor)
        self.ask("the parent process is gone")
