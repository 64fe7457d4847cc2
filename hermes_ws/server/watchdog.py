"""A thread that tells of a stalled event loop while it stalls, with the line at which it does (case FLOW-07).

The loop leaves a beat; the thread looks whether it is recent. It sees the stack of the loop's thread, of which it logs
files and lines and never a value. Each stall is told once, and once more when it is over, with how long it was.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Final, Protocol, final

import trio
from pydantic import JsonValue

STALL_S: Final = 2.0
"""Seconds without a beat that are told: well above a busy second, well below what a client takes for a dead server."""

BEAT_S: Final = 0.5
"""Seconds between two beats, and between two looks."""

FRAMES: Final = 12
"""Innermost frames of the stack that are told: what blocks is at the end of it."""


class Log(Protocol):
    """The log of the process. It is called from the thread as well."""

    def warning(self, event: str, **fields: JsonValue) -> None:
        """Something that somebody should look at."""
        ...


@final
class Watchdog:
    """Beat and look. `run` is its whole life; the thread ends with it."""

    def __init__(
        self, log: Log, *, stall: float = STALL_S, beat: float = BEAT_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log
        self._stall = stall
        self._every = beat
        self._clock = clock
        self._beat = clock()
        self._watched = threading.get_ident()
        self._over = threading.Event()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Watch the loop that this is awaited in, until cancelled."""
        self._watched = threading.get_ident()
        self._beat = self._clock()
        thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        thread.start()
        task_status.started()
        try:
            while True:
                self._beat = self._clock()
                await trio.sleep(self._every)
        finally:
            self._over.set()
            thread.join()

    # --- in the thread -----------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        began: float | None = None
        while not self._over.wait(self._every):
            beat = self._beat
            if began is not None and beat != began:
                self._log.warning("the event loop goes on", after_s=round(beat - began, 1))
                began = None
            if began is None and self._clock() - beat > self._stall:
                began = beat
                self._log.warning("the event loop stalls", for_s=round(self._clock() - beat, 1), stack=self._stack())

    def _stack(self) -> list[JsonValue]:
        frame = sys._current_frames().get(self._watched)  # pyright: ignore[reportPrivateUsage]
        found = traceback.extract_stack(frame)[-FRAMES:] if frame is not None else []
        return [f"{each.filename}:{each.lineno} {each.name}" for each in found]
