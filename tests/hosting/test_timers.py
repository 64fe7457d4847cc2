"""Timers belong to their profile, fire once, and are still there after a restart."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from hermes_ws.contract.errors import LimitReached
from hermes_ws.hosting import timers
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.hosting.timers import Fired, Timer
from hermes_ws.scope.current import bound
from hermes_ws.scope.identity import ProfileName
from tests.session.house import House, eventually

WORK = ProfileName("work")
PAST, FUTURE = 1.0, 9e9


class Recorder:
    """Remembers what fired, and for whom the code ran."""

    def __init__(self) -> None:
        self.fired: list[tuple[str, str]] = []

    async def __call__(self, fired: Fired) -> None:
        self.fired.append((bound().scope.profile.text, fired.timer.timer_id))


async def test_what_is_armed_in_one_profile_fires_in_that_profile(house: House) -> None:
    """CTX-08, SCHED-02: whoever armed it, and whatever is bound there."""
    async with house.served() as host:
        default, work = await host.open(host.launch), await host.open(WORK)
        seen: list[str] = []
        fired = trio.Event()

        async def note() -> None:
            seen.append(bound().scope.profile.text)
            fired.set()

        default.start_soon(lambda: _arm(work, note), name="arms a timer of another")
        await fired.wait()
        assert seen == ["work"]
        taken_back = work.after(3600, note, name="never")
        taken_back.cancel()
        with pytest.raises(Exception, match=r"not open|closing"):
            await _closed_after(work, note)


async def _arm(runtime: ProfileRuntime, fn: timers.Callable[[], timers.Awaitable[None]]) -> None:
    runtime.after(0.01, fn, name="later")


async def _closed_after(runtime: ProfileRuntime, fn: timers.Callable[[], timers.Awaitable[None]]) -> None:
    await runtime.finish(0)
    runtime.after(0, fn, name="too late")


async def test_a_timer_fires_once_in_its_own_profile(house: House) -> None:
    """SCHED-04: SCHED-01, SCHED-03, SCHED-06."""
    async with house.served() as host:
        recorder = Recorder()
        default, work = await host.open(host.launch), await host.open(WORK)
        for runtime in (default, work):
            runtime.timers.handle("test", recorder)
        for number in range(20):
            for runtime in (default, work):
                await runtime.timers.set(Timer(f"t{number}", "test", PAST, {}))
        await eventually(lambda: len(recorder.fired) == 40)
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(recorder.fired) == sorted((name, f"t{n}") for name in ("default", "work") for n in range(20))
        assert await work.timers.all() == ()


async def test_a_timer_outlives_its_runtime_and_says_how_late_it_is(house: House) -> None:
    late: list[float] = []

    async def fire(fired: Fired) -> None:
        late.append(fired.late_s)

    async with house.served() as host:
        runtime = await host.open(WORK)
        await runtime.timers.set(Timer("kept", "test", PAST, {"about": "this"}))
        await runtime.timers.set(Timer("gone", "test", PAST, {}))
        assert await runtime.timers.cancel("gone")
        assert not await runtime.timers.cancel("gone")
    async with house.served() as host:
        runtime = await host.open(WORK)
        assert await runtime.timers.all() == (Timer("kept", "test", PAST, {"about": "this"}),)
        runtime.timers.handle("test", fire)
        await eventually(lambda: bool(late))
    assert late[0] > 1_000_000


async def test_a_repeating_timer_is_moved_on_in_the_commit_that_claims_it(house: House) -> None:
    async with house.served() as host:
        runtime = await host.open(WORK)
        recorder = Recorder()
        runtime.timers.handle("test", recorder, lambda timer, now: FUTURE)
        await runtime.timers.set(Timer("again", "test", PAST, {}))
        await eventually(lambda: bool(recorder.fired))
        assert [timer.due for timer in await runtime.timers.all()] == [FUTURE]
        assert recorder.fired == [("work", "again")]


async def test_a_timer_nobody_handles_waits_for_somebody_who_does(house: House) -> None:
    async with house.served() as host:
        runtime = await host.open(WORK)
        recorder = Recorder()
        await runtime.timers.set(Timer("early", "later", PAST, {}))
        await trio.testing.wait_all_tasks_blocked()
        runtime.timers.handle("later", recorder)
        await eventually(lambda: bool(recorder.fired))
        with pytest.raises(RuntimeError, match="have a handler"):
            runtime.timers.handle("later", recorder)


async def test_a_profile_has_a_bound_on_its_timers(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timers, "MOST", 2)
    async with house.served() as host:
        runtime = await host.open(WORK)
        for number in range(2):
            await runtime.timers.set(Timer(f"t{number}", "test", FUTURE, {}))
        with pytest.raises(LimitReached):
            await runtime.timers.set(Timer("t2", "test", FUTURE, {}))


async def test_a_closed_profile_is_opened_when_something_of_it_is_due(house: House) -> None:
    async with house.served() as host:
        runtime = await host.open(WORK)
        runtime.timers.handle("test", Recorder())
        await runtime.timers.set(Timer("t", "test", FUTURE, {}))
        await eventually(lambda: host.statistics().next_timer == FUTURE)
        origin = runtime.scope.identity.origin
    async with house.served() as host:
        await eventually(lambda: host.statistics().next_timer == FUTURE)
        assert host.open_runtimes() == ()
        await host._wakes.set(origin, PAST)  # pyright: ignore[reportPrivateUsage]
        await eventually(lambda: [each.name for each in host.open_runtimes()] == [WORK])


async def test_a_deleted_profile_is_not_opened_for_what_was_due(house: House) -> None:
    async with house.served() as host:
        runtime = await host.open(WORK)
        runtime.timers.handle("test", Recorder())
        await runtime.timers.set(Timer("t", "test", FUTURE, {}))
        await eventually(lambda: host.statistics().next_timer == FUTURE)
        await host.life.delete(WORK, 0)
    async with house.served() as host:
        await trio.testing.wait_all_tasks_blocked()
        assert host.statistics().next_timer is None
