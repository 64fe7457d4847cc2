"""What is said to a running execution: taken at its next step, or told that it was not; never lost, never re-aimed."""

from __future__ import annotations

from hermes_ws.contract.methods.prompts import CancelParams, Receipt, ReceiptParams
from hermes_ws.contract.methods.questions import AnswerParams
from hermes_ws.contract.methods.sessions import ControlResult, SteerParams
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal import messages
from hermes_ws.session.session import Session
from hermes_ws.session.thread import Thread
from tests.session.house import OWNER, People, new_session, say

ASK = "/do ask which one?"


async def steer(thread: Thread, generation: int, text: str) -> ControlResult:
    params = SteerParams(session_id=thread.key.session_id, execution_generation=generation, text=text)
    return await thread.steer(params, OWNER)


async def receipt(session: Session, input_id: str) -> Receipt:
    return await session.receipt(ReceiptParams(session_id=session.session_id, input_id=input_id), OWNER)


async def answer(runtime: ProfileRuntime, people: People, number: int = 0) -> None:
    question = await people.question(number)
    qid = question.params["questions"][0]["qid"]  # type: ignore[index,call-overload]
    await runtime.sessions.answer(AnswerParams(id=question.id, result={"answers": {str(qid): "this"}}), OWNER)


async def history(runtime: ProfileRuntime, thread: Thread) -> list[tuple[str, str]]:
    found = await runtime.journal.read(lambda connection: messages.stored(connection, thread.key))
    return [(each.role, each.text.strip()) for each in found]


async def test_words_to_a_running_execution_are_taken_at_its_next_step(runtime: ProfileRuntime, people: People) -> None:
    session, thread, viewer = await new_session(runtime)
    await say(thread, ASK, "one")
    await people.question()
    assert (await steer(thread, 1, "/do say steered")).outcome == "accepted"
    (row,) = [each for each in (await thread.snapshot(None, None)).pending if each.status == "queued"]
    await answer(runtime, people)
    said = await viewer.until("message.complete", role="user", text="/do say steered")
    assert said["execution_generation"] == 1
    assert said["admission_id"] == row.admission_id
    taken = await viewer.until("execution.finished", outcome="completed")
    assert taken["admission_id"] == row.admission_id
    assert "execution_generation" not in taken
    ended = await viewer.until("execution.finished", outcome="completed")
    assert ended["execution_generation"] == 1
    told = await history(runtime, thread)
    assert [role for role, _ in told] == ["user", "assistant", "tool", "user", "assistant"]
    assert told[-1] == ("assistant", "steered")
    done = await receipt(session, row.input_id)
    assert (done.status, done.outcome, done.execution_generation) == ("finished", "completed", 1)


async def test_words_that_come_while_the_last_answer_is_given_make_another_step(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime)
    await say(thread, "/do stream 40 5", "one")
    await viewer.until("message.delta")
    assert (await steer(thread, 1, "/do say as well")).outcome == "accepted"
    await viewer.until("execution.finished")
    ended = await viewer.until("execution.finished")
    assert ended["execution_generation"] == 1
    assert (await history(runtime, thread))[-1] == ("assistant", "as well")


async def test_steering_is_never_aimed_at_another_execution(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime)
    assert (await steer(thread, 1, "hello")).outcome == "no_active_execution"
    await say(thread, "/do say one", "one")
    await viewer.until("execution.finished")
    await say(thread, "/do wait 1000", "two")
    await viewer.until("execution.started")
    stale = await steer(thread, 1, "hello")
    assert (stale.outcome, stale.active) == ("generation_mismatch", 2)
    early = await steer(thread, 3, "hello")
    assert (early.outcome, early.active) == ("generation_mismatch", 2)
    thread.interrupt(2)
    finishing = await steer(thread, 2, "hello")
    assert finishing.outcome in ("finishing", "no_active_execution")
    await viewer.until("execution.finished", outcome="interrupted")
    assert not [said for said in await history(runtime, thread) if said == ("user", "hello")]


async def test_what_an_interrupted_execution_did_not_take_is_cancelled_with_it(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await say(thread, "/do say begun\n/do wait 1000", "one")
    await viewer.until("message.delta")  # its first step is under way, and has taken what there was to hear
    assert (await steer(thread, 1, "too late")).outcome == "accepted"
    queued = await viewer.until("execution.queued", text="too late")
    thread.interrupt(1)
    cancelled = await viewer.until("execution.finished", outcome="cancelled")
    assert cancelled["admission_id"] == queued["admission_id"]
    await viewer.until("execution.finished", outcome="interrupted")
    assert (await receipt(session, queued["payload"]["input_id"])).status == "cancelled"
    await say(thread, "/do say next", "two")
    await viewer.until("execution.finished", outcome="completed")
    assert ("user", "too late") not in await history(runtime, thread)


async def test_a_finite_input_takes_no_steering_and_a_steering_input_waits_behind_it(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await say(thread, "/do stream 20 5", "one", finite=True)
    await viewer.until("message.delta")
    assert (await steer(thread, 1, "hello")).outcome == "not_steerable"
    await say(thread, "/do say afterwards", "two", mode="steer")
    await viewer.until("execution.finished", outcome="completed")
    ended = await viewer.until("execution.finished", outcome="completed")
    assert ended["execution_generation"] == 2
    assert (await receipt(session, "two")).execution_generation == 2


async def test_an_input_of_mode_steer_runs_by_itself_when_nothing_does(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await say(thread, "/do say alone", "one", mode="steer")
    await viewer.until("execution.finished", outcome="completed")
    assert (await receipt(session, "one")).execution_generation == 1


async def test_an_input_of_mode_steer_is_taken_once_however_often_it_is_sent(
    runtime: ProfileRuntime, people: People
) -> None:
    session, thread, viewer = await new_session(runtime)
    await say(thread, ASK, "one")
    await people.question()
    first = await say(thread, "/do say steered", "two", mode="steer")
    again = await say(thread, "/do say steered", "two", mode="steer")
    assert again == first
    await answer(runtime, people)
    await viewer.until("execution.finished")
    await viewer.until("execution.finished")
    await runtime.sessions.wait_until_idle()
    assert (await history(runtime, thread)).count(("user", "/do say steered")) == 1
    assert (await receipt(session, "two")).execution_generation == 1


async def test_an_input_of_mode_steer_that_an_interrupt_left_runs_in_its_turn(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await say(thread, "/do say begun\n/do wait 1000", "one")
    await viewer.until("message.delta")
    await say(thread, "/do say afterwards", "two", mode="steer")
    thread.interrupt(1)
    await viewer.until("execution.finished", outcome="interrupted")
    await viewer.until("execution.finished", outcome="completed")
    assert (await receipt(session, "two")).execution_generation == 2


async def test_steering_that_was_taken_back_is_not_taken(runtime: ProfileRuntime, people: People) -> None:
    session, thread, viewer = await new_session(runtime)
    await say(thread, ASK, "one")
    await people.question()
    admitted = await say(thread, "/do say steered", "two", mode="steer")
    taken_back = CancelParams(session_id=session.session_id, admission_id=admitted.admission_id)
    assert (await session.cancel(taken_back, OWNER)).status == "cancelled"
    await answer(runtime, people)
    await viewer.until("execution.finished", outcome="cancelled")
    await viewer.until("execution.finished", outcome="completed")
    assert ("user", "/do say steered") not in await history(runtime, thread)


async def test_steering_at_the_instant_of_completion_is_taken_or_refused(runtime: ProfileRuntime) -> None:
    # TURN-08: it is kept nowhere that nobody reads.
    _, thread, viewer = await new_session(runtime)
    for number in range(1, 25):
        await say(thread, f"/do say {number}", f"input-{number}")
        await viewer.until("message.complete", role="assistant")
        outcome = (await steer(thread, number, f"/do say steered {number}")).outcome
        assert outcome in ("accepted", "finishing", "no_active_execution")
        await runtime.sessions.wait_until_idle()
        said = ("user", f"/do say steered {number}")
        assert (await history(runtime, thread)).count(said) == (outcome == "accepted")
        await viewer.pull()
