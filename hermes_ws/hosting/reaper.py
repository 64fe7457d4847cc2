"""What ends by itself in an open profile: a task of its runtime that looks around now and then.

Each look belongs to the profile: it is bound to it, and it ends with it, so it can neither act on another profile nor
outlive its own (case CTX-01). A look is repeated as long as the profile is open, so that what could not be ended the
first time is ended one look after it can (case REAP-01). The clock of idle times stands while the machine sleeps (case
REAP-02). Nothing that runs, waits for an answer or is watched is ever ended here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import final

import trio

from hermes_ws.contract.errors import HermesError
from hermes_ws.session.ports import Log

LOOK_S = 15.0
"""Seconds between two looks: a fraction of any sensible `sessions.idle_s`."""

Look = Callable[[], Awaitable[None]]


@final
class Reaper:
    """The looks of one profile, in the order in which they were added."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._looks: dict[str, Look] = {}

    def add(self, name: str, look: Look) -> None:
        """Have this done at each look. What it foresees going wrong is logged, and the other looks go on."""
        self._looks[name] = look

    async def look(self) -> None:
        """Look once, at everything."""
        for name, look in self._looks.items():
            try:
                await look()
            except HermesError as error:
                self._log.write("warning", "reaper.failed", look=name, message=error.message)

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await trio.sleep(LOOK_S)
            await self.look()
