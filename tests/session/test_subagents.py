"""Subagents: threads that an agent starts and waits for, and what other people may do with them."""

from __future__ import annotations

import json
from typing import Any

import trio

from hermes_ws.contract.methods.prompts import SubmitParams
from hermes_ws.contract.methods.questions import AnswerParams
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.session.roster import Roster
from hermes_ws.session.session import Session
from hermes_ws.session.subagent_progress import LINE_CHARACTERS, line
from hermes_ws.wire.cursor import Cursor
from tests.session.house import OWNER, House, People, Viewer, eventually, new_session, say


def roster(runtime: ProfileRuntime, session: Session) -> Roster:
    return Roster(runtime, session, runtime.scope)


def told(viewer: Viewer, type: str) -> list[Any]:
    return [event["payload"] for event in viewer.events if event["type"] == type]


async def test_a_task_becomes_a_thread_and_its_last_words_the_result(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await say(thread, "/do delegate /do say The answer is 42.", "one")
    ended = await viewer.until("execution.finished")
    assert ended["payload"]["outcome"] == "completed"
    (started,), (complete,) = told(viewer, "subagent.start"), told(viewer, "subagent.complete")
    assert started["subagent_id"] == complete["subagent_id"]
    assert (started["depth"], started["parent_id"], started["goal"]) == (1, "main", "/do say The answer is 42.")
    assert complete["status"] == "completed"
    assert "The answer is 42." in complete["summary"]
    (done,) = told(viewer, "tool.complete")
    assert "The answer is 42." in done["output"]
    assert not done["is_error"]
    (row,) = await roster(runtime, session).rows()
    assert (row.status, row.parent_id, row.accepting_steer) == ("completed", "main", False)


async def test_a_subagent_can_be_read_and_talked_to_when_it_has_finished(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await say(thread, "/do delegate /do say first", "one")
    await viewer.until("execution.finished")
    child = await session.thread(told(viewer, "subagent.start")[0]["thread_id"])
    page = await child.snapshot(None, messages=True)
    assert [message.role for message in page.messages or ()] == ["user", "assistant"]
    reader = await Viewer.of(child)
    await child.submit(
        SubmitParams(
            session_id=session.session_id, thread_id=child.key.thread_id, input_id="more", text="/do say second"
        ),
        OWNER,
    )
    await reader.until("execution.finished")
    assert "second" in told(reader, "message.complete")[-1]["text"]
    assert len(told(viewer, "subagent.complete")) == 1


async def test_several_tasks_run_at_the_same_time(runtime: ProfileRuntime, people: People) -> None:
    """Each waits for the other's question to be asked: one after the other they would never end."""
    _, thread, viewer = await new_session(runtime)
    tasks = '{"tasks": [{"goal": "/do ask one?"}, {"goal": "/do ask two?"}]}'
    await say(thread, f"/do tool delegate_task {tasks}", "one")
    await viewer.until("subagent.start")
    await viewer.until("subagent.start")
    first = await people.question(0)
    second = await people.question(1)
    assert first.thread_id != second.thread_id
    assert {first.thread_id, second.thread_id} == {each["thread_id"] for each in told(viewer, "subagent.start")}
    thread.interrupt(1)
    ended = await viewer.until("execution.finished")
    assert ended["payload"]["outcome"] == "interrupted"


async def test_a_subagents_question_is_part_of_the_whole_sessions_state(
    runtime: ProfileRuntime, people: People
) -> None:
    _, thread, viewer = await new_session(runtime)
    await say(thread, "/do delegate /do ask which colour?", "one")
    question = await people.question(0)
    child = told(viewer, "subagent.start")
    snapshot = await thread.snapshot(None, messages=False)
    assert [(each.id, each.thread_id) for each in snapshot.questions] == [(question.id, question.thread_id)]
    assert question.thread_id != "main"
    assert snapshot.execution is not None
    assert snapshot.execution.state == "running"
    assert not child or child[0]["thread_id"] == question.thread_id
    thread.interrupt(1)
    await viewer.until("execution.finished")


async def test_interrupting_a_parent_ends_its_children_and_keeps_their_results(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    tasks = '{"tasks": [{"goal": "/do say early bird"}, {"goal": "/do say halfway\\n/do wait 3000"}]}'
    await say(thread, f"/do tool delegate_task {tasks}", "one")
    await viewer.until("subagent.start")
    await viewer.until("subagent.start")
    early, late = [await session.thread(each["thread_id"]) for each in told(viewer, "subagent.start")]
    ends = await Viewer.of(early, Cursor(1, 0))
    await ends.until("execution.finished")
    ends.leave()
    halfway = await Viewer.of(late, Cursor(1, 0))
    await halfway.until("message.start")
    await halfway.until("message.delta")
    halfway.leave()
    assert thread.interrupt(1).outcome == "accepted"
    ended = await viewer.until("execution.finished")
    assert ended["payload"]["outcome"] == "interrupted"
    assert [each["status"] for each in told(viewer, "subagent.complete")] == ["completed", "interrupted"]
    (done,) = told(viewer, "tool.complete")
    assert "early bird" in done["output"]
    assert "halfway" in done["output"]
    assert [row.status for row in await roster(runtime, session).rows()] == ["completed", "interrupted"]
    assert late.running is None
    # The history is valid: the next turn goes on from it.
    await say(thread, "/do say still here", "two")
    await viewer.until("execution.finished")
    assert "still here" in told(viewer, "message.complete")[-1]["text"]


async def early_rows(runtime: ProfileRuntime, session: Session) -> list[str]:
    return [row.status for row in await roster(runtime, session).rows()]


async def test_a_follow_up_waits_and_leaves_the_children_alone(runtime: ProfileRuntime, people: People) -> None:
    """TURN-09: what is said to the parent meanwhile is queued; only an interrupt ends anything."""
    session, thread, viewer = await new_session(runtime)
    await say(thread, "/do delegate /do ask may I?", "one")
    question = await people.question(0)
    second = await say(thread, "/do say after that", "two")
    assert second.status == "queued"
    assert await early_rows(runtime, session) == ["running"]
    await runtime.sessions.answer(AnswerParams(id=question.id, result={"answers": {"q1": "yes"}}), OWNER)
    outcomes = [(await viewer.until("execution.finished"))["payload"]["outcome"] for _ in range(2)]
    assert outcomes == ["completed", "completed"]
    assert await early_rows(runtime, session) == ["completed"]


async def test_depth_and_number_are_bounded(house: House) -> None:
    """ENV-12."""
    house.home("default", config="agent: {subagents: {depth: 1, at_once: 2}}\n")
    async with house.served():
        runtime = await house.runtime()
        session, thread, viewer = await new_session(runtime)
        await say(thread, "/do delegate /do delegate /do say too deep", "one")
        await viewer.until("execution.finished")
        (row,) = await roster(runtime, session).rows()
        child = await Viewer.of(await session.thread(row.thread_id))
        assert "deep" in told(viewer, "subagent.complete")[0]["summary"]
        child.leave()
        three = '{"tasks": [{"goal": "a"}, {"goal": "b"}, {"goal": "c"}]}'
        await say(thread, f"/do tool delegate_task {three}", "two")
        await viewer.until("execution.finished")
        assert "2 may be at the same time" in told(viewer, "tool.complete")[-1]["output"]
        assert len(await roster(runtime, session).rows()) == 1


async def test_only_the_live_execution_can_be_controlled(runtime: ProfileRuntime) -> None:
    """OWNER-01: a stale, finished or foreign one is refused, and never listed."""
    session, thread, viewer = await new_session(runtime)
    other, _, _ = await new_session(runtime)
    await say(thread, '/do tool delegate_task {"goal": "/do say here I am\\n/do wait 3000"}', "one")
    subagent = (await viewer.until("subagent.start"))["payload"]["subagent_id"]
    here, there = roster(runtime, session), roster(runtime, other)
    with trio.fail_after(20):
        while "here I am" not in (await here.tail(subagent))[1]:  # noqa: ASYNC110
            await trio.sleep(0.02)
    (row,) = await here.rows()
    assert (row.status, row.accepting_steer, row.execution_generation) == ("running", True, 1)
    assert await there.rows() == []
    assert await there.tail(subagent) == (False, "", False)
    assert await here.tail("main") == (False, "", False)
    assert (await there.interrupt(subagent, None)).outcome == "no_active_execution"
    assert (await there.steer(subagent, "x", None, OWNER)).outcome == "no_active_execution"
    assert (await here.interrupt(subagent, 7)).outcome == "generation_mismatch"
    assert (await here.steer(subagent, "be quick", 1, OWNER)).outcome == "accepted"
    assert (await here.interrupt(subagent, 1)).outcome == "accepted"
    ended = await viewer.until("execution.finished")
    assert ended["payload"]["outcome"] == "completed", "the parent goes on when its child was ended"
    assert told(viewer, "subagent.complete")[0]["status"] == "interrupted"
    assert (await here.interrupt(subagent, None)).outcome == "no_active_execution"
    assert await here.tail(subagent) == (False, "", False)


async def test_an_agent_delegates_to_those_that_it_may(house: House) -> None:
    home = house.home("default")
    (home / "agents").mkdir()
    (home / "agents" / "lead.md").write_text("---\nsubagents: [scout]\n---\nLead.\n")
    (home / "agents" / "scout.md").write_text("---\ntoolsets: []\n---\nScout.\n")
    async with house.served():
        runtime = await house.runtime()
        session, thread, viewer = await new_session(runtime, agent="lead")
        await say(thread, '/do tool delegate_task {"goal": "look", "agent": "scout"}', "one")
        await viewer.until("execution.finished")
        (row,) = await roster(runtime, session).rows()
        assert (row.agent, row.status) == ("scout", "completed")
        assert "no tools in this conversation" in told(viewer, "subagent.complete")[0]["summary"]
        await say(thread, '/do tool delegate_task {"goal": "look", "agent": "default"}', "two")
        await viewer.until("execution.finished")
        assert "may not delegate to 'default'" in told(viewer, "tool.complete")[-1]["output"]


async def test_a_goal_keeps_no_secret_of_the_profile(house: House) -> None:
    home = house.home("default", env="TOKEN=secret-value-123456\n")
    async with house.served():
        runtime = await house.runtime()
        session, thread, viewer = await new_session(runtime)
        await say(thread, "/do delegate /do say secret-value-123456", "one")
        await viewer.until("execution.finished")
        goal = told(viewer, "subagent.start")[0]["goal"]
        assert "secret-value-123456" not in goal
        (row,) = await roster(runtime, session).rows()
        assert "secret-value-123456" not in row.goal
        page = await (await session.thread(row.thread_id)).snapshot(None, messages=True)
        assert "secret-value-123456" not in str(page)
    assert home.is_dir()


async def test_calls_of_one_batch_delegate_at_the_same_time(runtime: ProfileRuntime, people: People) -> None:
    _, thread, viewer = await new_session(runtime)
    await say(thread, "/do delegate /do ask one?\n/do delegate /do ask two?", "one")
    questions = [await people.question(0), await people.question(1)]
    for question in questions:
        await runtime.sessions.answer(AnswerParams(id=question.id, result={"answers": {"q1": "yes"}}), OWNER)
    await viewer.until("execution.finished", outcome="completed")
    assert [each["status"] for each in told(viewer, "subagent.complete")] == ["completed", "completed"]


async def test_an_interrupt_of_a_batch_that_delegates_leaves_a_valid_history(
    runtime: ProfileRuntime, people: People
) -> None:
    session, thread, viewer = await new_session(runtime)
    await say(thread, "/do delegate /do say alpha\\n/do ask one?\n/do delegate /do ask two?", "one")
    await people.question(0)
    thread.interrupt(1)
    await viewer.until("execution.finished", outcome="interrupted")
    assert len(told(viewer, "tool.complete")) == 2
    await say(thread, "/do say and now", "two")
    await viewer.until("execution.finished", outcome="completed")
    assert {row.status for row in await roster(runtime, session).rows()} <= {"interrupted", "completed"}


async def test_what_subagents_do_is_told_in_passing_where_they_are_waited_for(
    runtime: ProfileRuntime, people: People
) -> None:
    """Live only, each under its own id, to whoever comes while they are at work; and over with the result."""
    _, thread, viewer = await new_session(runtime)
    goals = ["/do say early\n/do tool todo {}\n\n/do ask which colour?", "/do ask which size?"]
    await say(thread, f"/do tool delegate_task {json.dumps({'tasks': [{'goal': goal} for goal in goals]})}", "one")
    await people.question(1)
    first, second = (
        (await viewer.until("subagent.start"))["payload"]["subagent_id"],
        (await viewer.until("subagent.start"))["payload"]["subagent_id"],
    )

    def lines(viewer: Viewer, subagent_id: str) -> list[str]:
        text = ""
        for payload in told(viewer, "subagent.progress"):
            if payload["subagent_id"] == subagent_id:
                assert payload["offset"] == len(text)
                text += payload["text"]
        return text.splitlines()

    await eventually(lambda: "waits for an answer: clarify" in thread.tail.live_text("subagent.progress", first))
    await eventually(lambda: "waits for an answer: clarify" in thread.tail.live_text("subagent.progress", second))
    await viewer.pull()
    late = await Viewer.of(thread)
    await late.pull()
    for each in (viewer, late):
        assert lines(each, first)[0].startswith("early")
        assert any(line.startswith("todo ") for line in lines(each, first))
        assert not any("colour" in line and "clarify" not in line for line in lines(each, second))
    for number in range(2):
        answer = AnswerParams(id=people.asked[number].id, result={"answers": {"q1": "blue"}})
        await runtime.sessions.answer(answer, OWNER)
    await viewer.until("execution.finished", outcome="completed")
    assert {each["status"] for each in told(viewer, "subagent.complete")} == {"completed"}
    assert thread.tail.statistics().live_texts == 0
    assert not [each for each in (await thread.events(Cursor(1, 0), 2000)).events if each.type == "subagent.progress"]


def test_a_step_is_one_line_of_a_bounded_length() -> None:
    def of(type: str, **payload: Any) -> str:
        return line({"type": type, "payload": payload})

    assert of("tool.start", name="terminal", arguments={"command": "a\nb"}) == 'terminal {"command":"a\\nb"}\n'
    assert of("message.complete", role="assistant", text="one\n\ntwo" * 1000).count("\n") == 1
    assert len(of("message.complete", role="assistant", text="x" * 10_000)) == LINE_CHARACTERS + 1
    assert of("message.complete", role="assistant", text=" \n") == ""
    assert of("message.complete", role="user", text="words") == ""
    assert of("tool.complete", name="patch", is_error=False, output="done") == ""
    assert of("tool.complete", name="patch", is_error=True, output="no\nway") == "patch failed: no way\n"
