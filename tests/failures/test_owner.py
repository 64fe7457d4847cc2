"""OWNER: who may control a subagent, and whom the end of something in the background is told."""

from __future__ import annotations

import json

import pytest

from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.session.thread import Thread
from hermes_ws.wire.cursor import Cursor
from tests.e2e.gateway_client import Client, Refused
from tests.e2e.process import Server
from tests.session.house import Viewer, new_session, say

LONG = json.dumps({"goal": "/do say here\n/do wait 3000"})


def delegated(client: Client) -> tuple[str, str, str]:
    """A session with a subagent that goes on and on; the session, the subagent, and the parent's admission."""
    session: str = client.call("session.create")["session_id"]
    admitted = client.submit(session, f"/do tool delegate_task {LONG}")
    started = client.until(lambda e: e["type"] == "subagent.start" and e["session_id"] == session)
    subagent: str = started["payload"]["subagent_id"]
    while client.call("subagent.list", session_id=session)["subagents"][0]["status"] != "running":
        pass
    return session, subagent, admitted["admission_id"]


def test_owner_01_a_session_neither_sees_nor_ends_the_subagents_of_another(shared_server: Server) -> None:
    """By id, in another session and in another profile: refused, and not listed."""
    owner, other = shared_server.connect(), shared_server.connect()
    session, subagent, admission = delegated(owner)
    foreign = other.call("session.create")["session_id"]
    elsewhere = other.call("session.create", profile="second")["session_id"]
    for mine in (foreign, elsewhere):
        assert other.call("subagent.list", session_id=mine)["subagents"] == []
        stopped = other.call("subagent.interrupt", session_id=mine, subagent_id=subagent)
        assert (stopped["found"], stopped["outcome"]) == (False, "no_active_execution")
        said = other.call("subagent.steer", session_id=mine, subagent_id=subagent, text="stop")
        assert said["status"] == "rejected"
        tail = other.call("subagent.tail", session_id=mine, subagent_id=subagent)
        assert (tail["available"], tail["text"]) == (False, "")
    assert owner.call("subagent.list", session_id=session)["subagents"][0]["status"] == "running"
    assert owner.call("subagent.interrupt", session_id=session, subagent_id=subagent)["found"]
    assert owner.finished(admission)["outcome"] == "completed"
    owner.close()
    other.close()


def test_owner_02_after_a_reconnect_the_new_connection_controls_and_the_old_one_does_not(shared_server: Server) -> None:
    """Authority is looked up when it is used: it is whoever listens to the session then."""
    first = shared_server.connect()
    session, subagent, admission = delegated(first)
    first.cut()
    second = shared_server.connect()
    with pytest.raises(Refused) as refused:
        second.call("subagent.interrupt", session_id=session, subagent_id=subagent)
    assert refused.value.type == "not_attached"
    second.call("session.resume", session_id=session)
    (row,) = second.call("subagent.list", session_id=session)["subagents"]
    assert (row["subagent_id"], row["status"], row["accepting_steer"]) == (subagent, "running", True)
    second.call("thread.unsubscribe", session_id=session)
    with pytest.raises(Refused):
        second.call("subagent.steer", session_id=session, subagent_id=subagent, text="hm")
    second.call("thread.subscribe", session_id=session)
    stale = second.call(
        "subagent.interrupt",
        session_id=session,
        subagent_id=subagent,
        execution_generation=row["execution_generation"] + 1,
    )
    assert (stale["found"], stale["outcome"]) == (False, "generation_mismatch")
    said = second.call("subagent.steer", session_id=session, subagent_id=subagent, text="be quick")
    assert said["status"] == "queued"
    assert second.call("subagent.interrupt", session_id=session, subagent_id=subagent)["found"]
    assert second.finished(admission)["outcome"] == "completed"
    second.close()


def in_background(command: str) -> str:
    return "/do tool terminal " + json.dumps({"command": command, "background": True})


async def ends(thread: Thread) -> list[str]:
    """The commands whose end the thread's journal tells."""
    page = await thread.events(Cursor(1, 0), 2000)
    return [str(event.payload["command"]) for event in page.events if event.type == "process.exited"]


async def told(viewer: Viewer, count: int) -> None:
    """Wait for so many ends; they may have come before what was waited for last."""
    while viewer.types().count("process.exited") < count:
        await viewer.until("process.exited")


async def test_owner_04_the_end_of_a_process_is_told_where_it_was_started(runtime: ProfileRuntime) -> None:
    """Another session that is active meanwhile hears nothing of it, however it asks."""
    _, one, viewer = await new_session(runtime, yolo=True)
    _, two, other = await new_session(runtime)
    await say(one, in_background("sleep 0.2"), "one")
    await say(two, "/do say meanwhile", "two")
    await other.until("execution.finished")
    await told(viewer, 1)
    assert await ends(one) == ["sleep 0.2"]
    assert await ends(two) == []


async def test_owner_05_nothing_else_that_is_done_takes_it_away(runtime: ProfileRuntime) -> None:
    """Another model, a resumption, a list: there is no shared queue that any of them could drain."""
    session, one, viewer = await new_session(runtime, yolo=True)
    _, two, other = await new_session(runtime)
    await say(one, in_background("sleep 0.2"), "one")
    for number in range(3):
        await say(two, f"/do say {number}", f"two-{number}")
        await other.until("execution.finished")
        await two.snapshot(None, messages=True)
        await session.thread("main")
    await told(viewer, 1)
    assert (await ends(one), await ends(two)) == (["sleep 0.2"], [])


async def test_owner_06_an_end_that_nobody_listened_to_is_there_once_for_who_comes(runtime: ProfileRuntime) -> None:
    """It is an event of the journal: whoever attaches later reads it, once, at its place."""
    session, one, viewer = await new_session(runtime, yolo=True)
    await say(one, in_background("true"), "one")
    await viewer.until("execution.finished")
    viewer.leave()
    late = await Viewer.of(await session.thread("main"), Cursor(1, 0))
    await told(late, 1)
    assert late.types().count("process.exited") == 1


async def test_owner_07_commands_that_end_at_once_are_told_exactly_once_each(runtime: ProfileRuntime) -> None:
    """However short they are: each belongs to the thread that started it from before it runs."""
    _, one, viewer = await new_session(runtime, yolo=True)
    commands = [f"true {number}" for number in range(12)]
    await say(one, "\n".join(in_background(command) for command in commands), "one")
    await told(viewer, len(commands))
    if "execution.finished" not in viewer.types():
        await viewer.until("execution.finished")
    assert sorted(await ends(one)) == sorted(commands)


async def test_owner_08_a_subagent_is_not_told_what_its_parent_started(runtime: ProfileRuntime) -> None:
    """The parent's job ends while the child runs: the parent's journal has it, the child's does not."""
    session, one, viewer = await new_session(runtime, yolo=True)
    child = json.dumps({"goal": "/do stream 30 20\n/do say done"})
    await say(one, f"{in_background('sleep 0.2')}\n\n/do tool delegate_task {child}", "one")
    started = await viewer.until("subagent.start")
    await told(viewer, 1)
    await viewer.until("subagent.complete")
    thread = await session.thread(started["payload"]["thread_id"])
    assert (await ends(one), await ends(thread)) == (["sleep 0.2"], [])
