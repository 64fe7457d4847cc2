"""Threads of one session: each in its own order, none in the way of another."""

from __future__ import annotations

import pytest

from hermes_ws.contract.errors import SessionBusy
from hermes_ws.contract.methods.thread_life import CreateThreadParams
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.session import thread_life
from hermes_ws.session.session import Session
from hermes_ws.session.thread import Thread
from tests.session.house import OWNER, Viewer, new_session, say


async def beside(runtime: ProfileRuntime, session: Session, title: str) -> tuple[Thread, Viewer]:
    params = CreateThreadParams(session_id=session.session_id, title=title)
    made = await thread_life.create(runtime, session, params, OWNER)
    thread = await session.thread(made.key.thread_id)
    return thread, await Viewer.of(thread)


def said(viewer: Viewer) -> list[str]:
    """What the model answered, in its order."""
    whole = [event["payload"] for event in viewer.events if event["type"] == "message.complete"]
    return [each["text"].strip() for each in whole if each["role"] == "assistant"]


def bounds(viewer: Viewer) -> list[str]:
    return [type for type in viewer.types() if type in ("execution.started", "execution.finished")]


async def submit(thread: Thread, text: str, input_id: str) -> None:
    await say(thread, text, input_id, thread_id=thread.key.thread_id)


async def test_threads_run_side_by_side_and_each_in_its_order(runtime: ProfileRuntime) -> None:
    """TURN-01: one thread is in the middle of a turn for as long as the other one needs for its whole queue."""
    session, main, viewer = await new_session(runtime)
    other, others = await beside(runtime, session, "beside")
    await submit(main, "/do say m1\n/do wait 1000", "m1")
    await viewer.until("message.delta")
    for number in (2, 3):
        await submit(main, f"/do say m{number}", f"m{number}")
    for number in (1, 2, 3):
        await submit(other, f"/do say o{number}", f"o{number}")
    for _ in range(3):
        await others.until("execution.finished", outcome="completed")
    assert said(others) == ["o1", "o2", "o3"]
    assert bounds(others) == ["execution.started", "execution.finished"] * 3
    await viewer.pull()
    assert bounds(viewer) == ["execution.started"]
    assert (main.running, other.running) == (1, None)
    assert main.interrupt(1).outcome == "accepted"
    for _ in range(2):
        await viewer.until("execution.finished", outcome="completed")
    assert said(viewer) == ["m1", "m2", "m3"]
    assert bounds(viewer) == ["execution.started", "execution.finished"] * 3
    assert {event["thread_id"] for event in viewer.events} == {"main"}
    assert {event["thread_id"] for event in others.events} == {other.key.thread_id}


async def test_two_turns_of_one_session_are_under_way_at_once_and_are_stopped_one_by_one(
    runtime: ProfileRuntime,
) -> None:
    session, main, viewer = await new_session(runtime)
    other, others = await beside(runtime, session, "beside")
    for thread, who in ((main, viewer), (other, others)):
        await submit(thread, "/do say here\n/do wait 1000", thread.key.thread_id)
        await who.until("message.delta")
    assert (main.running, other.running) == (1, 1)
    assert other.interrupt(1).outcome == "accepted"
    await others.until("execution.finished", outcome="interrupted")
    assert (main.running, other.running) == (1, None)
    with pytest.raises(SessionBusy):
        await say(main, "/do say no", "n", mode="reject")
    await say(other, "/do say yes", "y", mode="reject", thread_id=other.key.thread_id)
    await others.until("execution.finished", outcome="completed")
    assert main.interrupt(1).outcome == "accepted"
    await viewer.until("execution.finished", outcome="interrupted")
