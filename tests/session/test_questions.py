"""Questions: asked once, settled once, by the first valid answer to exactly that one."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from hermes_ws.agent.ports import QuestionExpired
from hermes_ws.contract.errors import InvalidParams, NotFound, StaleGeneration, StorageUnavailable, UnknownParameter
from hermes_ws.contract.methods.questions import Answered, AnswerParams
from hermes_ws.contract.methods.sessions import ListParams
from hermes_ws.contract.model import Params
from hermes_ws.contract.questions import CLARIFY, ClarifyItem, ClarifyParams, ClarifyResult
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.session.ports import Counted
from hermes_ws.session.questions import TRANSITIONS, Asking, Happened, Questions, State
from tests.session.house import OWNER, House, People, Viewer, leave_behind, new_session, say

ASK = "/do ask Which colour?"
TOUCH = "/do run touch approved.txt"


async def answer(
    runtime: ProfileRuntime, id: str, result: dict[str, object], generation: int | None = None
) -> Answered:
    params = AnswerParams.model_validate({"id": id, "result": result, "execution_generation": generation})
    return await runtime.sessions.answer(params, OWNER)


def colour(question_params: dict[str, object], text: str) -> dict[str, object]:
    items = question_params["questions"]
    assert isinstance(items, list)
    return {"answers": {items[0]["qid"]: text}}


async def test_an_answer_releases_the_execution_that_asked(runtime: ProfileRuntime, people: People) -> None:
    _, thread, viewer = await new_session(runtime)
    await say(thread, ASK, "one")
    question = await people.question()
    assert question.id == f"srq-{runtime.scope.identity.origin}-1"
    told = await answer(runtime, question.id, colour(dict(question.params), "blue"))
    assert told.outcome == "settled"
    complete = await viewer.until("tool.complete")
    assert "blue" in complete["payload"]["output"]
    await viewer.until("execution.finished", outcome="completed")
    settled = next(event for event in viewer.events if event["type"] == "request.settled")
    assert settled["payload"]["state"] == "settled"
    assert people.told == [(question.id, "resolved", "default")]


async def test_an_answer_settles_the_question_it_names_and_not_the_oldest(
    runtime: ProfileRuntime, people: People
) -> None:
    # ASK-01
    _, first, _ = await new_session(runtime)
    _, second, viewer = await new_session(runtime)
    await say(first, ASK, "one")
    oldest = await people.question(0)
    await say(second, ASK, "one")
    newest = await people.question(1)
    await answer(runtime, newest.id, colour(dict(newest.params), "red"))
    await viewer.until("execution.finished", outcome="completed")
    assert [each.id for each in await runtime.sessions.open_questions()] == [oldest.id]
    assert (await first.snapshot(None, None)).questions[0].id == oldest.id


async def test_a_snapshot_carries_the_question_as_it_was_asked(runtime: ProfileRuntime, people: People) -> None:
    # ASK-03
    _, thread, _ = await new_session(runtime)
    await say(thread, TOUCH, "one")
    question = await people.question()
    for _ in range(2):
        snapshot = await thread.snapshot(None, None)
        assert snapshot.questions == [question]
        assert snapshot.execution is not None
        assert snapshot.execution.state == "waiting"
    listing = await runtime.sessions.list(ListParams())
    assert [row.state for row in listing.sessions] == ["waiting"]


async def test_with_clients_that_cannot_show_it_the_agent_learns_that_nobody_can_answer(
    runtime: ProfileRuntime, people: People
) -> None:
    # ASK-05
    people.counted = Counted(with_right=2, capable=0)
    _, thread, viewer = await new_session(runtime)
    await say(thread, TOUCH, "one")
    complete = await viewer.until("tool.complete")
    assert complete["payload"]["is_error"]
    assert "no refusal" in complete["payload"]["output"]
    settled = next(event for event in viewer.events if event["type"] == "request.settled")
    assert settled["payload"]["state"] == "withdrawn"
    assert await runtime.sessions.open_questions() == ()


async def test_with_nobody_there_it_waits_for_whoever_comes(runtime: ProfileRuntime, people: People) -> None:
    people.counted = Counted(with_right=0, capable=0)
    _, thread, viewer = await new_session(runtime)
    await say(thread, ASK, "one")
    question = await people.question()
    assert [each.id for each in await runtime.sessions.open_questions()] == [question.id]
    await answer(runtime, question.id, colour(dict(question.params), "green"))
    await viewer.until("execution.finished", outcome="completed")


async def test_an_answer_to_no_question_is_an_error(runtime: ProfileRuntime) -> None:
    # ASK-07
    with pytest.raises(NotFound):
        await answer(runtime, "srq-nowhere-1", {"choice": "once"})


async def test_a_repeated_answer_is_told_the_first_outcome(runtime: ProfileRuntime, people: People) -> None:
    # ASK-09, ASK-12
    _, thread, viewer = await new_session(runtime)
    await say(thread, TOUCH, "one")
    question = await people.question()
    told: list[str] = []

    async def send(choice: str) -> None:
        told.append((await answer(runtime, question.id, {"choice": choice})).outcome)

    async with trio.open_nursery() as nursery:
        for choice in ("deny", "deny", "deny"):
            nursery.start_soon(send, choice)
    assert sorted(told) == ["already_settled", "already_settled", "settled"]
    late = await answer(runtime, question.id, {"choice": "once"})
    assert late.outcome == "already_settled"
    assert late.result is not None
    assert late.result["choice"] == "deny"
    complete = await viewer.until("tool.complete")
    assert complete["payload"]["is_error"]
    assert len(people.asked) == 1


async def test_an_answer_that_does_not_fit_leaves_the_question_open(runtime: ProfileRuntime, people: People) -> None:
    _, thread, viewer = await new_session(runtime)
    await say(thread, TOUCH, "one")
    question = await people.question()
    with pytest.raises(InvalidParams) as wrong:
        await answer(runtime, question.id, {"choice": "perhaps"})
    assert wrong.value.data["path"] == "result.choice"
    with pytest.raises(UnknownParameter):
        await answer(runtime, question.id, {"choice": "once", "sure": True})
    assert [each.id for each in await runtime.sessions.open_questions()] == [question.id]
    await answer(runtime, question.id, {"choice": "deny", "reason": "not today"})
    complete = await viewer.until("tool.complete")
    assert "not today" in complete["payload"]["output"]


async def test_an_answer_must_fit_the_questions_that_were_asked(runtime: ProfileRuntime, people: People) -> None:
    _, thread, _ = await new_session(runtime)
    await say(thread, ASK, "one")
    question = await people.question()
    with pytest.raises(InvalidParams, match="There is no question nothing"):
        await answer(runtime, question.id, {"answers": {"nothing": "x"}})
    items = question.params["questions"]
    assert isinstance(items, list)
    assert isinstance(items[0], dict)
    with pytest.raises(InvalidParams, match="takes one answer"):
        await answer(runtime, question.id, {"answers": {str(items[0]["qid"]): ["a", "b"]}})


async def test_an_answer_for_another_execution_is_stale(runtime: ProfileRuntime, people: People) -> None:
    _, thread, _ = await new_session(runtime)
    await say(thread, TOUCH, "one")
    question = await people.question()
    with pytest.raises(StaleGeneration):
        await answer(runtime, question.id, {"choice": "once"}, generation=2)
    assert (await answer(runtime, question.id, {"choice": "deny"}, generation=1)).outcome == "settled"


async def test_an_interrupt_withdraws_the_question(runtime: ProfileRuntime, people: People) -> None:
    _, thread, viewer = await new_session(runtime)
    await say(thread, TOUCH, "one")
    question = await people.question()
    assert thread.interrupt(1).outcome == "accepted"
    await viewer.until("request.settled", state="withdrawn")
    await viewer.until("execution.finished", outcome="interrupted")
    late = await answer(runtime, question.id, {"choice": "once"})
    assert (late.outcome, late.result) == ("withdrawn", None)
    assert people.told == [(question.id, "interrupted", "default")]


async def test_whoever_comes_back_can_answer_what_was_asked_before(runtime: ProfileRuntime, people: People) -> None:
    # ASK-10: a connection that is lost settles nothing; the question and its answer outlive it.
    _, thread, viewer = await new_session(runtime)
    await say(thread, ASK, "one")
    question = await people.question()
    viewer.leave()
    people.counted = Counted(with_right=0, capable=0)
    await trio.testing.wait_all_tasks_blocked()
    told = await answer(runtime, question.id, colour(dict(question.params), "blue"))
    assert told.outcome == "settled"
    again = await Viewer.of(thread)
    await again.until("execution.finished", outcome="completed")


async def test_a_deadline_expires_and_is_no_refusal(runtime: ProfileRuntime, people: People) -> None:
    session, thread, viewer = await new_session(runtime)
    await say(thread, "/do wait 1000", "one")
    await viewer.until("execution.started")
    questions = Questions(runtime.journal, people, profile="default", origin=runtime.scope.identity.origin)
    params = ClarifyParams(
        session_id=session.session_id, thread_id="main", questions=[ClarifyItem(qid="q1", question="Well?")]
    )
    with pytest.raises(QuestionExpired):
        await questions.ask(Asking(thread.key, 1, "adm-1"), CLARIFY, params, deadline_s=0.01)
    opened = await viewer.until("request.opened")
    assert opened["payload"]["deadline"] > opened["payload"]["asked_at"]
    await viewer.until("request.settled", state="expired")
    late = await answer(runtime, people.asked[0].id, {"answers": {}})
    assert late.outcome == "expired"
    assert people.told == [(people.asked[0].id, "expired", "default")]


async def test_an_answer_comes_back_in_its_declared_shape(runtime: ProfileRuntime, people: People) -> None:
    session, thread, viewer = await new_session(runtime)
    await say(thread, "/do wait 1000", "one")
    await viewer.until("execution.started")
    questions = Questions(runtime.journal, people, profile="default", origin=runtime.scope.identity.origin)
    params = ClarifyParams(
        session_id=session.session_id, thread_id="main", questions=[ClarifyItem(qid="q1", question="Well?")]
    )
    got: list[Params] = []

    async def ask() -> None:
        got.append(await questions.ask(Asking(thread.key, 1, "adm-1"), CLARIFY, params, deadline_s=1000))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        question = await people.question()
        assert questions.waiting(thread.key)
        await questions.answer(AnswerParams(id=question.id, result={"answers": {"q1": None}}))
    assert got == [ClarifyResult(answers={"q1": None})]
    assert not questions.waiting(thread.key)


async def test_a_restart_abandons_the_questions_of_what_was_lost(house: House, people: People) -> None:
    left = await leave_behind(house)

    async with house.served():
        runtime = await house.runtime()
        assert await runtime.sessions.open_questions() == ()
        late = await answer(runtime, left.question_id, {"choice": "once"})
        assert late.outcome == "abandoned"


def test_nothing_but_what_the_table_names_settles_a_question() -> None:
    assert {state for state, _ in TRANSITIONS} == {State.OPEN}
    assert {happened for _, happened in TRANSITIONS} == set(Happened)


async def test_a_question_that_cannot_be_withdrawn_holds_up_nobody(
    house: House, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StorageUnavailable("The disk is gone.")

    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        await say(thread, TOUCH, "one")
        question = await people.question()
        with monkeypatch.context() as patched:
            patched.setattr("hermes_ws.journal.questions.settle", refuse)
            thread.interrupt(1)
            await viewer.until("execution.finished", outcome="interrupted")
        assert people.told == [(question.id, "interrupted", "default")]
        assert (await answer(runtime, question.id, {"choice": "deny"})).outcome == "settled"
