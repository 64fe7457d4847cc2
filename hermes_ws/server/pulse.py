"""Whether the server still does what it is for: a round trip through the loop and the launch profile's store."""

from __future__ import annotations

import sqlite3
from typing import final

import trio

from hermes_ws.contract.errors import HermesError
from hermes_ws.hosting.host import Host

BEAT = 2.0
"""Seconds between two round trips: often enough for a probe that asks every ten."""

STALE = 10.0
"""Seconds without a round trip after which the server is not ready: five were missed."""


@final
class Pulse:
    """`ready` is the answer of `/readyz`; it never waits for the store itself."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._last: float | None = None

    def ready(self) -> bool:
        """Whether the last round trip is recent."""
        return self._last is not None and trio.current_time() - self._last < STALE and not self._host.draining

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Beat until cancelled; started after the first one, which may have failed."""
        while True:
            await self._beat()
            task_status.started()
            task_status = trio.TASK_STATUS_IGNORED
            await trio.sleep(BEAT)

    async def _beat(self) -> None:
        try:
            runtime = await self._host.open(self._host.launch)
            await runtime.journal.read(_one)
        except HermesError:
            return
        self._last = trio.current_time()


def _one(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT 1").fetchone()
