"""Why a server ends, and that a second word hastens it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator

import trio
import trio.testing

from hermes_ws.server.ending import Ending

PATIENCE = 20.0


async def signals(*numbers: int) -> AsyncIterator[int]:
    for number in numbers:
        yield number


async def test_a_signal_asks_and_a_second_one_hurries() -> None:
    ending = Ending(30)
    reloads: list[int] = []

    async def reload() -> None:
        reloads.append(1)

    await ending.hear(signals(signal.SIGHUP, signal.SIGTERM, signal.SIGINT), reload)
    assert reloads == [1]
    assert ending.reason == "SIGTERM"
    with trio.fail_after(PATIENCE):
        await ending.asked()
        await ending.hurried()


async def test_a_deadline_given_with_the_word_counts() -> None:
    ending = Ending(30)
    ending.ask("runtime.drain", 5)
    ending.ask("again", 90)
    assert (ending.reason, ending.deadline_s) == ("runtime.drain", 5)


async def test_an_idle_server_ends_and_one_in_use_does_not(autojump_clock: trio.testing.MockClock) -> None:
    ending = Ending(30)
    busy_until = trio.current_time() + 100
    start = trio.current_time()
    with trio.fail_after(1000):
        await ending.when_idle(lambda: trio.current_time() < busy_until, 40)
        await ending.asked()
    idle = trio.current_time() - start - 100
    assert 30 <= idle <= 60
    assert ending.reason == "idle"


async def test_it_ends_with_whoever_started_it() -> None:
    ending = Ending(30)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as parent:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ending.with_parent, parent.pid)
            await trio.testing.wait_all_tasks_blocked()
            assert ending.reason == ""
            parent.kill()
            with trio.fail_after(PATIENCE):
                await ending.asked()
    assert "parent" in ending.reason


async def test_a_parent_that_is_gone_already_ends_it_at_once() -> None:
    ending = Ending(30)
    with subprocess.Popen([sys.executable, "-c", ""]) as parent:
        parent.wait()
    assert parent.pid != os.getpid()
    with trio.fail_after(PATIENCE):
        await ending.with_parent(parent.pid)
        await ending.asked()
