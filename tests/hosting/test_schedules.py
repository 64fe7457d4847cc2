"""Schedules: submitted at their time, once, by the profile that they belong to."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import trio

from hermes_ws.contract.errors import InvalidParams, NotFound, SessionUnknown
from hermes_ws.contract.methods.schedules import CreateScheduleParams
from hermes_ws.contract.methods.sessions import CreateParams, ListParams
from hermes_ws.hosting import schedules
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.hosting.schedules import following
from hermes_ws.hosting.timers import Timer
from hermes_ws.session.thread import Thread
from hermes_ws.wire.cursor import Cursor
from tests.session.house import OWNER, PATIENCE_S, House, Viewer


@pytest.fixture
async def runtime(house: House) -> AsyncIterator[ProfileRuntime]:
    async with house.served():
        yield await house.runtime()


NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC).timestamp()
HOUR = 3600.0
FAR = 4_000_000_000.0


def test_times_follow_from_the_plan() -> None:
    assert following({"at": NOON}, NOON - 1) == NOON
    assert following({"at": NOON}, NOON) is None
    assert following({"at": NOON}, NOON + 5, before=NOON) is None
    assert following({"every_s": 60}, NOON) == NOON + 60
    assert following({"every_s": 60}, NOON + 200, before=NOON) == NOON + 240, "what was missed is not made up for"
    assert following({"cron": "0 13 * * *", "timezone": "UTC"}, NOON) == NOON + HOUR
    assert following({"cron": "0 13 * * *", "timezone": "Europe/Berlin"}, NOON) == NOON + 24 * HOUR


def test_a_cron_expression_follows_the_clock_of_its_zone_over_a_change() -> None:
    """The last Sunday of March has 23 hours in Berlin."""
    before = datetime(2026, 3, 28, 7, 0, tzinfo=UTC).timestamp()
    assert following({"cron": "0 8 * * *", "timezone": "Europe/Berlin"}, before) == before + 23 * HOUR


@pytest.mark.parametrize("plan", [{"cron": "61 * * * *"}, {"cron": "often"}, {"cron": "0 * * * *", "timezone": "Mars"}])
def test_what_is_no_time_is_refused(plan: dict[str, str]) -> None:
    with pytest.raises(InvalidParams):
        following({"timezone": "UTC", **plan}, NOON)


@pytest.mark.parametrize("times", [{}, {"every_s": 60, "at": 1.0}, {"every_s": 5}])
def test_a_schedule_has_one_time(times: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"exactly one|greater than or equal"):
        CreateScheduleParams.model_validate({"prompt": "x", **times})


async def finished(thread: Thread) -> Viewer:
    viewer = await Viewer.of(thread, Cursor(1, 0))
    await viewer.until("execution.finished")
    return viewer


async def fire(runtime: ProfileRuntime, schedule_id: str, *, late_s: float = 0.0) -> None:
    """Let its timer be due now, as if its time had come."""
    (timer,) = [each for each in await runtime.timers.all() if each.payload["schedule_id"] == schedule_id]
    await runtime.timers.set(Timer(timer.timer_id, timer.kind, time.time() - late_s, timer.payload))


async def ran(runtime: ProfileRuntime, schedule_id: str, runs: int) -> None:
    with trio.fail_after(PATIENCE_S):
        while (await runtime.schedules.get(schedule_id)).runs < runs:  # noqa: ASYNC110
            await trio.sleep(0.01)


async def test_a_run_is_an_unattended_input_of_a_new_session(runtime: ProfileRuntime) -> None:
    made = await runtime.schedules.create(CreateScheduleParams(prompt="/do say good morning", title="Morning", at=FAR))
    assert (made.state, made.next_at, made.runs) == ("active", FAR, 0)
    await fire(runtime, made.schedule_id)
    await ran(runtime, made.schedule_id, 1)
    done = await runtime.schedules.get(made.schedule_id)
    assert (done.state, done.next_at, done.last_problem) == ("done", None, "")
    assert done.last_session_id is not None
    session = await runtime.sessions.get(done.last_session_id)
    assert (session.record.title, session.record.source) == ("Morning", "schedule")
    viewer = await finished(await session.thread("main"))
    assert "good morning" in viewer.events[-2]["payload"].get("text", "") or any(
        "good morning" in event["payload"].get("text", "") for event in viewer.events
    )


async def test_a_run_of_a_session_goes_on_with_it(runtime: ProfileRuntime) -> None:
    session, _ = await runtime.sessions.create(CreateParams(), OWNER)
    params = CreateScheduleParams(prompt="/do say again", every_s=3600, session_id=session.session_id)
    made = await runtime.schedules.create(params)
    await fire(runtime, made.schedule_id)
    await ran(runtime, made.schedule_id, 1)
    after = await runtime.schedules.get(made.schedule_id)
    assert (after.state, after.last_session_id) == ("active", session.session_id)
    assert after.next_at is not None
    assert after.next_at > time.time()
    await finished(await session.thread("main"))


async def test_a_paused_one_waits_and_goes_on(runtime: ProfileRuntime) -> None:
    made = await runtime.schedules.create(CreateScheduleParams(prompt="/do say hm", every_s=3600))
    paused = await runtime.schedules.pause(made.schedule_id)
    assert (paused.state, paused.next_at) == ("paused", None)
    assert await runtime.timers.all() == ()
    resumed = await runtime.schedules.resume(made.schedule_id)
    assert resumed.state == "active"
    assert resumed.next_at is not None
    await runtime.schedules.run(made.schedule_id)
    assert (await runtime.schedules.get(made.schedule_id)).runs == 1
    assert await runtime.schedules.delete(made.schedule_id)
    assert not await runtime.schedules.delete(made.schedule_id)
    assert await runtime.timers.all() == ()
    with pytest.raises(NotFound):
        await runtime.schedules.run(made.schedule_id)


async def test_what_cannot_run_says_why_and_tries_again_at_its_next_time(runtime: ProfileRuntime) -> None:
    with pytest.raises(SessionUnknown):
        await runtime.schedules.create(CreateScheduleParams(prompt="x", every_s=60, session_id="none-x"))
    made = await runtime.schedules.create(CreateScheduleParams(prompt="x", every_s=3600, agent="nobody"))
    await fire(runtime, made.schedule_id)
    with trio.fail_after(PATIENCE_S):
        while not (await runtime.schedules.get(made.schedule_id)).last_problem:  # noqa: ASYNC110
            await trio.sleep(0.01)
    after = await runtime.schedules.get(made.schedule_id)
    assert "no agent 'nobody'" in after.last_problem
    assert (after.runs, after.state) == (0, "active")


async def test_a_missed_run_is_made_up_for_once_or_not_at_all(runtime: ProfileRuntime) -> None:
    once = await runtime.schedules.create(CreateScheduleParams(prompt="/do say late", every_s=60))
    never = await runtime.schedules.create(CreateScheduleParams(prompt="/do say late", every_s=60, missed="skip"))
    for made in (once, never):
        await fire(runtime, made.schedule_id, late_s=10 * schedules.MISSED_AFTER_S)
    await ran(runtime, once.schedule_id, 1)
    with trio.fail_after(PATIENCE_S):
        while not (await runtime.schedules.get(never.schedule_id)).last_problem:  # noqa: ASYNC110
            await trio.sleep(0.01)
    assert (await runtime.schedules.get(once.schedule_id)).runs == 1
    assert (await runtime.schedules.get(never.schedule_id)).runs == 0


async def test_a_schedule_survives_a_restart_and_belongs_to_its_profile(house: House) -> None:
    async with house.served():
        runtime = await house.runtime()
        other = await house.runtime("work")
        made = await runtime.schedules.create(CreateScheduleParams(prompt="/do say I am back", every_s=3600))
        assert await other.schedules.list() == []
        with pytest.raises(NotFound):
            await other.schedules.run(made.schedule_id)
        await runtime.timers.set(
            Timer(f"schedule:{made.schedule_id}", "schedule", time.time() + 1, (await runtime.timers.all())[0].payload)
        )
    async with house.served():
        runtime = await house.runtime()
        await ran(runtime, made.schedule_id, 1)
        other = await house.runtime("work")
        assert (await other.sessions.list(ListParams())).sessions == []
        assert len((await runtime.sessions.list(ListParams())).sessions) == 1
