"""A clock that is set while timers wait for it: each fires when its time has come, and once for that time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from hermes_ws.hosting import timers
from hermes_ws.hosting.timers import Fired, Timer, Timers
from tests.session.house import House, eventually

EVERY = 100.0


class Clock:
    """A wall clock that somebody sets. It counts how often it was looked at."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return self.now

    async def set(self, now: float) -> None:
        """Set it, and come back when whoever waits for it has seen the new time more than once."""
        self.now = now
        looks = self.looks
        await eventually(lambda: self.looks > looks + 12)


async def no_wake(due: float | None) -> None:
    """Nobody else is to be told."""


async def test_a_timer_fires_once_for_its_time_however_the_clock_is_set(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SCHED-06. Back before it was due, over it, and back again after it fired."""
    monkeypatch.setattr(timers, "LOOK_S", 0.002)
    clock = Clock(990.0)
    fired: list[tuple[str, float]] = []

    async def fire(what: Fired) -> None:
        fired.append((what.timer.timer_id, what.timer.due))

    async with house.served(), trio.open_nursery() as nursery:
        runtime = await house.runtime()

        def start_soon(fn: Callable[[], Awaitable[object]], name: str) -> None:
            nursery.start_soon(fn, name=name)

        waiting = Timers(runtime.journal, start_soon, no_wake, clock=clock)
        waiting.handle("once", fire)
        waiting.handle("again", fire, lambda timer, now: timer.due + EVERY)
        await waiting.set(Timer("o", "once", 1000.0, {}))
        await waiting.set(Timer("r", "again", 1000.0, {}))
        nursery.start_soon(waiting.run)
        for now in (999.0, 5.0, 999.0):
            await clock.set(now)
        assert fired == []
        await clock.set(1001.0)
        assert sorted(fired) == [("o", 1000.0), ("r", 1000.0)]
        for now in (5.0, 1001.0, 1099.0):
            await clock.set(now)
        assert len(fired) == 2
        await clock.set(1100.0)
        assert fired[2:] == [("r", 1100.0)]
        assert [timer.due for timer in await waiting.all()] == [1200.0]
        nursery.cancel_scope.cancel()
