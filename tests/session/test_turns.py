"""Inputs, their order, their interrupts, and what becomes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from hermes_ws.contract.errors import AdmissionConflict, Draining, NotFound, SessionBusy
from hermes_ws.contract.methods.prompts import ReceiptParams
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal.tail import LiveMarks
from hermes_ws.session.session import Session
from hermes_ws.wire.cursor import Cursor
from tests.session.house import OWNER, House, new_session, say


async def receipt(session: Session, input_id: str) -> str:
    params = ReceiptParams(session_id=session.session_id, input_id=input_id)
    return (await session.receipt(params, OWNER)).status


async def test_an_input_becomes_an_execution_that_tells_its_whole_story(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    admitted = await say(thread, "What can you do?", "one")
    finished = await viewer.until("execution.finished")
    assert admitted.status == "queued"
    assert admitted.cursor == "1:0"
    assert finished["payload"]["outcome"] == "completed"
    assert finished["payload"]["usage"]["output_tokens"] > 0
    committed = [type for type in viewer.types() if not type.endswith(".delta")]
    assert committed == [
        "execution.queued",
        "execution.started",
        "message.complete",
        "message.start",
        "message.complete",
        "usage.update",
        "session.info",
        "execution.finished",
    ]
    assert {event["profile"] for event in viewer.events} == {"default"}
    assert [event["seq"] for event in viewer.events if "seq" in event] == list(range(1, len(committed) + 1))
    whole = next(
        event["payload"]
        for event in viewer.events
        if event["type"] == "message.complete" and event["payload"]["role"] == "assistant"
    )
    assert whole["text"].startswith("You asked: “What can you do?”")
    assert whole["text"].startswith(viewer.live_text(whole["message_id"]))
    done = await session.receipt(ReceiptParams(session_id=session.session_id, input_id="one"), OWNER)
    assert (done.status, done.outcome, done.execution_generation) == ("finished", "completed", 1)
    assert done.admission_id == admitted.admission_id


async def test_queued_inputs_run_one_at_a_time_in_the_order_in_which_they_came(runtime: ProfileRuntime) -> None:
    # TURN-01
    _, thread, viewer = await new_session(runtime)
    for number in range(1, 6):
        await say(thread, f"/do say p{number}", f"p{number}")
    for _ in range(5):
        await viewer.until("execution.finished", outcome="completed")
    answers = [event["payload"] for event in viewer.events if event["type"] == "message.complete"]
    started = [each["text"].strip() for each in answers if each["role"] == "assistant"]
    assert started == ["p1", "p2", "p3", "p4", "p5"]
    bounds = [event["type"] for event in viewer.events if event["type"] in ("execution.started", "execution.finished")]
    assert bounds == ["execution.started", "execution.finished"] * 5


async def test_an_interrupt_ends_the_turn_and_keeps_its_partial_text(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime)
    await say(thread, "/do say before\n/do wait 1000\n/do say after", "one")
    await viewer.until("message.delta")
    assert thread.interrupt(1).outcome == "accepted"
    whole = await viewer.until("message.complete", role="assistant")
    finished = await viewer.until("execution.finished")
    assert whole["payload"]["partial"]
    assert "before" in whole["payload"]["text"]
    assert "after" not in whole["payload"]["text"]
    assert finished["payload"]["outcome"] == "interrupted"
    assert thread.active is None


async def test_an_interrupt_leaves_the_next_input_alone(runtime: ProfileRuntime) -> None:
    # TURN-04
    _, thread, viewer = await new_session(runtime)
    await say(thread, "/do wait 1000", "hung")
    await viewer.until("execution.started")
    assert thread.interrupt(1).outcome == "accepted"
    await viewer.until("execution.finished", outcome="interrupted")
    assert thread.interrupt(1).outcome == "no_active_execution"
    await say(thread, "/do say p2", "two")
    await viewer.until("execution.finished", outcome="completed")


async def test_a_stale_interrupt_leaves_the_next_execution_alone(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime)
    await say(thread, "/do say one", "one")
    await viewer.until("execution.finished")
    await say(thread, "/do wait 1000", "two")
    await viewer.until("execution.started")
    stale = thread.interrupt(1)
    assert (stale.outcome, stale.active) == ("generation_mismatch", 2)
    early = thread.interrupt(3)
    assert (early.outcome, early.active) == ("generation_mismatch", 2)
    assert thread.active is not None
    assert thread.interrupt(2).outcome == "accepted"
    await viewer.until("execution.finished", outcome="interrupted")


async def test_an_interrupt_right_after_the_claim_lets_nothing_of_the_turn_begin(runtime: ProfileRuntime) -> None:
    # TURN-03
    _, thread, viewer = await new_session(runtime)

    def stop() -> None:
        if thread.active is not None and thread.active.generation == 1:
            thread.interrupt(1)

    thread.tail.attach(stop)
    await say(thread, "/do say never", "one")
    await viewer.until("execution.finished", outcome="interrupted")
    assert "message.start" not in viewer.types()
    assert [event for event in viewer.events if event["type"] == "tool.start"] == []


async def test_an_interrupted_input_is_part_of_no_later_one(runtime: ProfileRuntime) -> None:
    # TURN-06: what is interrupted stays a message of its own, and is not merged into the next.
    _, thread, viewer = await new_session(runtime)
    await say(thread, "/do wait 1000", "one")
    await viewer.until("execution.started")
    thread.interrupt(1)
    await viewer.until("execution.finished")
    await say(thread, "second only", "two")
    whole = await viewer.until("message.complete", role="user")
    assert whole["payload"]["text"] == "second only"
    answer = await viewer.until("message.complete", role="assistant")
    assert "“second only”" in answer["payload"]["text"]


async def test_a_repeated_input_id_never_starts_a_second_turn(runtime: ProfileRuntime) -> None:
    # TURN-07
    session, thread, viewer = await new_session(runtime)
    with pytest.raises(NotFound):
        await receipt(session, "one")
    first = await say(thread, "/do say hello", "one")
    again = await say(thread, "/do say hello", "one")
    assert again.admission_id == first.admission_id
    await viewer.until("execution.finished")
    assert await receipt(session, "one") == "finished"
    last = await say(thread, "/do say hello", "one")
    assert (last.status, last.execution_generation, last.cursor) == ("finished", 1, first.cursor)
    assert viewer.types().count("execution.started") == 1
    with pytest.raises(AdmissionConflict):
        await say(thread, "/do say something else", "one")


async def test_inputs_sent_at_the_same_time_with_one_id_are_one_input(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime)
    ids: set[str] = set()

    async def send() -> None:
        ids.add((await say(thread, "/do say once", "one")).admission_id)

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(send)
    await viewer.until("execution.finished")
    assert len(ids) == 1
    assert viewer.types().count("execution.started") == 1


async def test_a_receipt_by_input_id_is_the_callers_own(runtime: ProfileRuntime) -> None:
    session, thread, _ = await new_session(runtime)
    admitted = await say(thread, "/do say hello", "one")
    by_other = ReceiptParams(session_id=session.session_id, input_id="one")
    with pytest.raises(NotFound):
        await session.receipt(by_other, "somebody else")
    by_admission = ReceiptParams(session_id=session.session_id, admission_id=admitted.admission_id)
    assert (await session.receipt(by_admission, "somebody else")).admission_id == admitted.admission_id


async def test_mode_reject_refuses_while_something_runs(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime)
    await say(thread, "/do wait 1000", "one", mode="reject")
    await viewer.until("execution.started")
    with pytest.raises(SessionBusy):
        await say(thread, "/do say two", "two", mode="reject")
    repeated = await say(thread, "/do wait 1000", "one", mode="reject")
    assert repeated.status == "started"
    thread.interrupt(1)
    await viewer.until("execution.finished")
    await say(thread, "/do say two", "two", mode="reject")
    await viewer.until("execution.finished", outcome="completed")


async def test_sessions_run_side_by_side(runtime: ProfileRuntime) -> None:
    _, waits, slow = await new_session(runtime)
    _, goes_on, fast = await new_session(runtime)
    await say(waits, "/do wait 1000", "one")
    await slow.until("execution.started")
    await say(goes_on, "/do say quick", "one")
    await fast.until("execution.finished", outcome="completed")
    assert waits.active is not None
    assert runtime.sessions.running >= 1


async def test_a_models_failure_ends_the_execution_with_a_sentence_and_a_hint(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime)
    await say(thread, "/do fail model_unauthorised", "one")
    finished = await viewer.until("execution.finished")
    assert finished["payload"]["outcome"] == "failed"
    assert finished["payload"]["error"]["type"] == "model_unauthorised"
    assert finished["payload"]["error"]["hint"]
    await say(thread, "/do say next", "two")
    await viewer.until("execution.finished", outcome="completed")


async def test_a_draining_profile_takes_no_input_and_keeps_what_is_queued(house: House) -> None:
    session_id = ""

    async with house.served():
        runtime = await house.runtime()
        session, thread, viewer = await new_session(runtime)
        session_id = session.session_id
        await say(thread, "/do wait 1000", "one")
        await viewer.until("execution.started")
        await say(thread, "/do say later", "two")
        runtime.draining = True
        with pytest.raises(Draining):
            await say(thread, "/do say no", "three")

    async with house.served():
        runtime = await house.runtime()
        session = await runtime.sessions.get(session_id)
        thread = await session.thread("main")
        await runtime.sessions.wait_until_idle()
        assert await receipt(session, "two") == "finished"
        done = await session.receipt(ReceiptParams(session_id=session_id, input_id="one"), OWNER)
        assert done.outcome == "interrupted"
        with pytest.raises(NotFound):
            await receipt(session, "three")
        assert thread.active is None


async def test_an_answer_that_was_given_before_is_part_of_the_next_turns_history(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime)
    await say(thread, "/do say first answer", "one")
    await viewer.until("execution.finished")
    await say(thread, "second", "two")
    await viewer.until("execution.finished")
    snapshot = await thread.snapshot(None, messages=True)
    assert snapshot.messages is not None
    assert [message.role for message in snapshot.messages] == ["user", "assistant", "user", "assistant"]


async def test_which_tool_a_call_is_written_for_is_told_while_it_is_written(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime)
    marks, heard = LiveMarks(), list[dict[str, Any]]()

    def at_once() -> None:
        taken = thread.tail.take(Cursor(thread.tail.generation, thread.tail.head), marks, 1 << 20)
        heard.extend(json.loads(frame.json)["params"] for frame in taken.frames)

    thread.tail.attach(at_once)
    await say(thread, "/do read notes.txt", "one")
    await viewer.until("execution.finished")
    told = [each for each in heard if each["type"] == "tool.generating"]
    assert [each["payload"] for each in told] == [{"name": "read_file"}]
    assert (told[0]["execution_generation"], "cursor" in told[0]) == (1, False)
    late = thread.tail.take(Cursor(1, 0), LiveMarks(), 1 << 20)
    assert b"tool.generating" not in b"".join(frame.json for frame in late.frames)
