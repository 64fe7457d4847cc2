"""RES: handles, memory, disk."""

from __future__ import annotations

import gc
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from hermes_ws.contract.errors import StorageFull
from hermes_ws.contract.methods.sessions import CreateParams
from hermes_ws.hosting.housekeeping import Housekeeping
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal import retention
from hermes_ws.journal.database import Transaction
from hermes_ws.journal.readers import READERS
from hermes_ws.scope.sections import RetentionConfig
from tests.session.house import OWNER, House, eventually, new_session, say


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_res_01_turns_leave_no_descriptor_behind(runtime: ProfileRuntime) -> None:
    """Forty turns in ten sessions; as many descriptors as after the first few."""
    _, thread, viewer = await new_session(runtime)
    for number in range(5):
        await say(thread, "/do say warm up", f"w-{number}")
        await viewer.until("execution.finished")
    before = descriptors()
    for round in range(10):
        _, thread, viewer = await new_session(runtime)
        for number in range(4):
            await say(thread, "/do say hello", f"{round}-{number}")
            await viewer.until("execution.finished")
    assert descriptors() <= before + READERS


async def test_res_02_read_connections_are_few_however_many_read(runtime: ProfileRuntime) -> None:
    """Five hundred reads at once."""

    def count(connection: sqlite3.Connection) -> object:
        return connection.execute("SELECT count(*) FROM session").fetchone()

    async with trio.open_nursery() as nursery:
        for _ in range(500):
            nursery.start_soon(runtime.journal.read, count)
    assert runtime.journal.statistics().read_connections <= READERS


async def test_res_03_sessions_that_are_put_away_leave_memory(runtime: ProfileRuntime) -> None:
    """Tails, threads and sessions in memory are those in use."""
    for number in range(20):
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do say hello", f"i-{number}")
        await viewer.until("execution.finished")
        await runtime.sessions.wait_until_idle()
        viewer.leave()
        del thread, viewer, _
    runtime.sessions.forget_idle(0)
    gc.collect()
    runtime.sessions.forget_idle(0)
    gc.collect()
    assert runtime.sessions.open <= 1
    assert runtime.journal.statistics().tails <= 1


async def test_res_05_what_a_profile_keeps_is_bounded_by_its_settings(house: House) -> None:
    """Old sessions, and their outputs, go when the profile says so; the one in use stays."""
    async with house.served():
        runtime = await house.runtime()
        kept, thread, viewer = await new_session(runtime)
        for _ in range(30):
            await runtime.sessions.create(CreateParams(), OWNER)
        assert runtime.sessions.stored == 31
        runtime.sessions.forget_idle(0)
        gc.collect()
        old = Housekeeping(
            runtime.journal,
            runtime.sessions,
            runtime.log,
            lambda: RetentionConfig(days=1),
            clock=lambda: 4_000_000_000.0,
        )
        await old.tidy()
        assert runtime.sessions.stored == 1
        await say(thread, "/do say still here", "one")
        assert (await viewer.until("execution.finished"))["payload"]["outcome"] == "completed"
        assert (await runtime.sessions.get(kept.session_id)).session_id == kept.session_id


async def test_res_05_a_home_that_grew_too_large_loses_its_oldest_sessions(house: House) -> None:
    """The one used longest ago goes first, and no more of them than must."""
    async with house.served():
        runtime = await house.runtime()
        names: list[str] = []
        for number in range(6):
            session, thread, viewer = await new_session(runtime)
            await say(thread, "/do say " + "x" * 100_000, f"i-{number}")
            await viewer.until("execution.finished")
            viewer.leave()
            names.append(session.session_id)
            await runtime.sessions.wait_until_idle()
            del session, thread, viewer
        runtime.sessions.forget_idle(0)
        gc.collect()
        used = await runtime.journal.read(retention.used_bytes)
        tidy = Housekeeping(
            runtime.journal, runtime.sessions, runtime.log, lambda: RetentionConfig(bytes=int(used * 0.6))
        )
        await tidy.tidy()
        left = await runtime.journal.read(
            lambda c: [row[0] for row in c.execute("SELECT session_id FROM session ORDER BY updated_at")]
        )
        assert 0 < len(left) < 6
        assert left == names[-len(left) :]
        assert await runtime.journal.read(retention.used_bytes) <= used * 0.6


async def test_res_06_a_disk_that_fills_during_a_turn_is_recovered_from_without_a_restart(house: House) -> None:
    """The turn waits for its outcome to be stored; then everything goes on, and nothing is cut in half."""
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do wait 0.3\n/do say done", "one")
        await viewer.until("execution.started")

        def room(most: int) -> Callable[[Transaction], None]:
            return lambda tx: tx.connection.execute(f"PRAGMA max_page_count = {most}").close()

        await runtime.journal.transact(room(1))
        with pytest.raises(StorageFull):
            for number in range(200):
                await say(thread, "y" * 50_000, f"fill-{number}")
        await runtime.journal.transact(room(1073741823))
        assert (await viewer.until("execution.finished"))["payload"]["outcome"] in ("completed", "failed")
        await eventually(lambda: runtime.journal.trouble is None)
    file = Path(house.root / "default" / "state" / "sessions.db")
    connection = sqlite3.connect(file)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
