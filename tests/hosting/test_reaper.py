"""What ends by itself, and what never does."""

from __future__ import annotations

import gc

import trio
import trio.testing

from hermes_ws.contract.errors import StorageUnavailable
from hermes_ws.hosting.reaper import LOOK_S, Reaper
from hermes_ws.hosting.runtime_life import State
from hermes_ws.scope.current import bound
from hermes_ws.scope.identity import ProfileName
from tests.session.house import House, eventually, new_session, say

WORK = ProfileName("work")


class Lines:
    """The twin of a log."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def write(self, level: str, event: str, **fields: object) -> None:
        self.events.append(f"{event} {fields.get('look')}")


async def test_a_look_that_fails_is_logged_and_the_others_go_on(autojump_clock: trio.testing.MockClock) -> None:
    log, looked = Lines(), 0
    reaper = Reaper(log)

    async def failing() -> None:
        raise StorageUnavailable("the disk is gone")

    async def counting() -> None:
        nonlocal looked
        looked += 1

    reaper.add("failing", failing)
    reaper.add("counting", counting)
    with trio.move_on_after(LOOK_S * 3.5):
        await reaper.run()
    assert looked == 3
    assert log.events == ["reaper.failed failing"] * 3


async def test_looks_are_bound_to_their_profile(house: House) -> None:
    """CTX-01."""
    async with house.served() as host:
        seen: list[str] = []
        for name in ("default", "work"):
            runtime = await host.open(ProfileName(name))

            async def look() -> None:
                seen.append(bound().scope.profile.text)

            runtime.reaper.add("test", look)
            runtime.start_soon(runtime.reaper.look, name="look")
        await eventually(lambda: len(seen) == 2)
        assert sorted(seen) == ["default", "work"]


async def test_of_thirty_sessions_those_without_viewers_and_work_leave_memory(house: House) -> None:
    """REAP-15: one socket may have made them all. What is stored stays."""
    house.home("work", config="sessions:\n  idle_s: 0.001\n")
    async with house.served() as host:
        runtime = await host.open(WORK)
        made = [await new_session(runtime) for _ in range(30)]
        for _, _, viewer in made[1:]:
            viewer.leave()
        kept = made[0][0].session_id
        thread = made[0][1]
        del made, viewer
        await trio.sleep(0.01)
        for _ in range(2):
            await runtime.reaper.look()
            gc.collect()  # A session and its threads know each other.
        assert runtime.sessions.open == 1
        assert runtime.sessions.stored == 30
        assert (await runtime.sessions.get(kept)).session_id == thread.key.session_id


async def test_what_runs_or_waits_for_an_answer_is_not_ended(house: House) -> None:
    """REAP-01, REAP-05: and once it has ended the profile is not in use any more."""
    house.home("work", config="sessions:\n  idle_s: 0.001\n")
    async with house.served() as host:
        runtime = await host.open(WORK)
        session, thread, viewer = await new_session(runtime)
        await say(thread, "/do ask Which one?", "one")
        asked = await house.people.question()
        viewer.leave()
        session_id = session.session_id
        del session, thread, viewer
        await trio.sleep(0.01)
        await runtime.reaper.look()
        assert runtime.sessions.open == 1
        assert runtime.in_use
        (waiting,) = await runtime.sessions.open_questions()
        assert waiting.id == asked.id
        (await (await runtime.sessions.get(session_id)).thread("main")).interrupt(1)
        await runtime.sessions.wait_until_idle()
        await trio.sleep(0.01)
        await runtime.reaper.look()
        assert not runtime.in_use
        assert await runtime.sessions.open_questions() == ()


async def test_looking_at_a_profile_does_not_keep_it_open(house: House) -> None:
    """REAP-20: activity is work."""
    house.home("default", config="profiles:\n  idle_s: 0.2\n")
    async with house.served() as host:
        runtime = await host.open(WORK)
        with trio.fail_after(30):
            while not runtime.ended.is_set():
                if runtime.state is State.OPEN:
                    await host.open(WORK)
                await trio.sleep(0.02)
        assert runtime.failure is None


async def test_a_hundred_sessions_come_and_go_and_nothing_is_left(house: House) -> None:
    """REAP-06, REAP-18."""
    house.home("work", config="sessions:\n  idle_s: 0.001\n")
    async with house.served() as host:
        runtime = await host.open(WORK)
        before = runtime.statistics()
        for _ in range(100):
            _, _, viewer = await new_session(runtime)
            viewer.leave()
        del viewer, _
        await trio.sleep(0.01)
        for _ in range(2):
            await runtime.reaper.look()
            gc.collect()  # A session and its threads know each other.
        # That the list of sessions has changed is told a moment later, all at once.
        await eventually(lambda: runtime.statistics() == before)
