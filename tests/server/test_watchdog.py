"""A stalled loop is told of while it stalls."""

from __future__ import annotations

import threading
from typing import Any

import trio

from hermes_ws.server.watchdog import Watchdog


class Told:
    """A log that lets a test wait for a line from another thread."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []
        self.news = threading.Event()

    def warning(self, event: str, **fields: Any) -> None:
        self.lines.append((event, fields))
        self.news.set()


async def test_a_stall_is_told_while_it_lasts_with_the_line_that_stalls_and_once_more_when_it_is_over() -> None:
    """Case FLOW-07."""
    told = Told()
    async with trio.open_nursery() as nursery:
        await nursery.start(Watchdog(told, stall=0.05, beat=0.01).run)
        secret = "a value that no log may show"  # noqa: F841
        # The loop is stopped here, so only another thread can tell; and it has, when this returns.
        assert told.news.wait(20)
        (stalled,) = told.lines
        told.news.clear()
        await trio.to_thread.run_sync(told.news.wait, 20)
        nursery.cancel_scope.cancel()
    assert stalled[0] == "the event loop stalls"
    assert any("test_watchdog.py" in line for line in stalled[1]["stack"])
    assert "no log may show" not in repr(told.lines)
    assert [event for event, _ in told.lines] == ["the event loop stalls", "the event loop goes on"]


async def test_a_loop_that_goes_on_is_not_told_of_and_the_thread_ends_with_its_owner() -> None:
    told = Told()
    before = threading.active_count()
    async with trio.open_nursery() as nursery:
        await nursery.start(Watchdog(told, stall=20, beat=0.001).run)
        assert threading.active_count() == before + 1
        for _ in range(50):
            await trio.sleep(0.001)
        nursery.cancel_scope.cancel()
    assert told.lines == []
    assert threading.active_count() == before
