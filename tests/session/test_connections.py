"""Connections that the agent asks for: nothing waits for them, and of an answer the decisions alone are kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from hermes_ws.agent.ports import NoAnswerer
from hermes_ws.contract.errors import HermesError, NotFound, StorageUnavailable
from hermes_ws.contract.methods.questions import AnswerParams
from hermes_ws.contract.model import Params
from hermes_ws.contract.questions import ConnectionField, ConnectionParams, ConnectionTarget
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal import questions as question_rows
from hermes_ws.journal.database import Transaction
from hermes_ws.session.ports import Counted
from hermes_ws.session.questions import Asking
from tests.session.house import OWNER, House, People, Viewer, new_session, say

ASKED = (
    ConnectionTarget(name="hub", kind="connector", required_env=[ConnectionField(name="HUB_TOKEN")]),
    ConnectionTarget(name="notes", kind="mcp"),
)
DAY = 86_400.0


async def post(
    runtime: ProfileRuntime,
    deadline_s: float = DAY,
    keep: Callable[[Params], Awaitable[None]] | None = None,
) -> tuple[str, Viewer, list[Params]]:
    """Ask for two connections in a session that has had one execution; its id, who watches, and what was decided."""
    session, thread, viewer = await new_session(runtime)
    await say(thread, "/do say hello", "one")
    await viewer.until("execution.finished")
    decided: list[Params] = []

    async def note(result: Params) -> None:
        decided.append(result)

    params = ConnectionParams(session_id=session.session_id, thread_id="main", targets=list(ASKED))
    asking = Asking(thread.key, 1, "adm-1")
    op_id = await runtime.sessions.questions.post(asking, params, keep or note, deadline_s=deadline_s)
    return op_id, viewer, decided


async def test_the_deadline_is_said_at_once_to_those_who_watch_and_to_those_who_ask(
    runtime: ProfileRuntime, people: People
) -> None:
    op_id, viewer, _ = await post(runtime)
    told = (await viewer.until("connection.request"))["payload"]
    assert told["timeout_seconds"] == pytest.approx(DAY)
    assert people.asked[0].deadline == told["deadline_at"]
    stands = await runtime.sessions.questions.operation(op_id)
    assert stands.deadline_at == told["deadline_at"]
    assert [each.state for each in stands.targets] == ["pending", "pending"]
    assert runtime.in_use


async def test_what_became_of_it_is_told_in_passing_and_of_the_answer_only_the_decisions_are_kept(
    runtime: ProfileRuntime,
) -> None:
    op_id, viewer, decided = await post(runtime)
    result = {"targets": {"hub": "connected"}, "values": {"HUB_TOKEN": "not to be seen"}}
    answer = AnswerParams.model_validate({"id": op_id, "result": result})
    assert (await runtime.sessions.answer(answer, OWNER)).result == {"targets": {"hub": "connected"}}
    update = await viewer.until("connection.update")
    assert "cursor" not in update
    assert "seq" not in update
    assert (update["payload"]["seq"], update["payload"]["settled_by"]) == (2, "settled")
    states = {each["name"]: each["state"] for each in update["payload"]["targets"]}
    assert states == {"hub": "connected", "notes": "skipped"}
    stands = await runtime.sessions.questions.operation(op_id)
    assert (stands.settled, [each.state for each in stands.targets]) == (True, ["connected", "skipped"])
    assert [each.model_dump()["values"] for each in decided] == [{"HUB_TOKEN": "not to be seen"}]
    assert "not to be seen" not in str(viewer.events)
    again = await runtime.sessions.answer(answer, OWNER)
    assert (again.outcome, again.result) == ("already_settled", {"targets": {"hub": "connected"}})
    assert len(decided) == 1


async def test_what_is_given_is_in_its_place_before_anybody_is_told_and_a_failure_leaves_it_open(
    runtime: ProfileRuntime,
) -> None:
    states = list[str]()
    questions = runtime.sessions.questions

    async def keep(result: Params) -> None:
        stands = await questions.operation(op_id)
        states.append(stands.state)
        if len(states) == 1:
            raise StorageUnavailable("The disk is full.")

    op_id, _, _ = await post(runtime, keep=keep)
    answer = AnswerParams.model_validate({"id": op_id, "result": {"targets": {}}})
    with pytest.raises(StorageUnavailable):
        await runtime.sessions.answer(answer, OWNER)
    assert (await questions.operation(op_id)).state == "open"
    assert (await runtime.sessions.answer(answer, OWNER)).outcome == "settled"
    assert states == ["open", "open"]


async def test_of_two_answers_at_once_one_is_kept(runtime: ProfileRuntime) -> None:
    going, go = trio.Event(), trio.Event()
    kept, outcomes = list[Params](), list[str]()

    async def keep(result: Params) -> None:
        kept.append(result)
        going.set()
        await go.wait()

    op_id, _, _ = await post(runtime, keep=keep)
    answer = AnswerParams.model_validate({"id": op_id, "result": {"targets": {}}})

    async def give() -> None:
        outcomes.append((await runtime.sessions.answer(answer, OWNER)).outcome)

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(give)
            await going.wait()
            nursery.start_soon(give)
            await trio.testing.wait_all_tasks_blocked()
            go.set()
    assert sorted(outcomes) == ["already_settled", "settled"]
    assert len(kept) == 1


async def test_at_its_deadline_it_expires_and_that_is_no_refusal(runtime: ProfileRuntime, people: People) -> None:
    op_id, viewer, decided = await post(runtime, 0.01)
    await runtime.sessions.questions.expire(op_id, 0.01)
    await viewer.until("request.settled", state="expired")
    update = await viewer.until("connection.update", settled_by="expired")
    assert {each["state"] for each in update["payload"]["targets"]} == {"expired"}
    late = await runtime.sessions.answer(AnswerParams.model_validate({"id": op_id, "result": {"targets": {}}}), OWNER)
    assert late.outcome == "expired"
    assert decided == []
    assert people.told == [(op_id, "expired", "default")]
    assert runtime.sessions.questions.posted == 0


async def test_an_answer_before_the_deadline_ends_the_wait_for_it(runtime: ProfileRuntime) -> None:
    op_id, viewer, _ = await post(runtime)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runtime.sessions.questions.expire, op_id, DAY)
            answer = AnswerParams.model_validate({"id": op_id, "result": {"targets": {}}})
            await runtime.sessions.answer(answer, OWNER)
    await viewer.until("request.settled", state="settled")
    await runtime.sessions.questions.expire(op_id, DAY)


async def test_a_deadline_that_cannot_be_written_down_is_tried_again(
    runtime: ProfileRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    op_id, viewer, _ = await post(runtime, 0.01)
    settle, refused = question_rows.settle, list[str]()

    def first_refuse(tx: Transaction, question_id: str, *rest: Any) -> Any:
        if len(refused) < 2:
            refused.append(question_id)
            raise StorageUnavailable("The disk is gone.")
        return settle(tx, question_id, *rest)

    monkeypatch.setattr("hermes_ws.session.questions.EXPIRE_AGAIN_S", 0.01)
    monkeypatch.setattr("hermes_ws.journal.questions.settle", first_refuse)
    with trio.fail_after(30):
        await runtime.sessions.questions.expire(op_id, 0.01)
    await viewer.until("request.settled", state="expired")
    assert refused == [op_id, op_id]


async def test_when_nobody_who_is_there_can_decide_it_ends_at_once(runtime: ProfileRuntime, people: People) -> None:
    people.counted = Counted(with_right=1, capable=0)
    with pytest.raises(NoAnswerer):
        await post(runtime)
    assert runtime.sessions.questions.posted == 0
    stands = await runtime.sessions.questions.operation(people.asked[0].id)
    assert {each.state for each in stands.targets} == {"not_connected"}


async def test_nothing_is_told_where_nobody_can_listen(runtime: ProfileRuntime) -> None:
    op_id, viewer, _ = await post(runtime)
    viewer.leave()
    session_id = op_id and viewer.events[0]["session_id"]
    thread = await (await runtime.sessions.get(session_id)).thread("main")
    assert runtime.journal.close_tail(thread.key)
    answer = AnswerParams.model_validate({"id": op_id, "result": {"targets": {}}})
    assert (await runtime.sessions.answer(answer, OWNER)).outcome == "settled"


async def test_it_is_abandoned_with_the_server_that_asked(house: House) -> None:
    async with house.served():
        op_id, _, _ = await post(await house.runtime())
    async with house.served():
        runtime = await house.runtime()
        stands = await runtime.sessions.questions.operation(op_id)
        assert (stands.state, {each.state for each in stands.targets}) == ("abandoned", {"not_connected"})


async def test_there_is_no_operation_with_the_id_of_another_question(runtime: ProfileRuntime, people: People) -> None:
    _, thread, viewer = await new_session(runtime)
    await say(thread, "/do ask Which colour?", "one")
    question = await people.question()
    for missing in (question.id, "srq-none-1"):
        with pytest.raises(NotFound) as error:
            await runtime.sessions.questions.operation(missing)
        assert isinstance(error.value, HermesError)
        assert missing in error.value.message
    thread.interrupt(1)
    await viewer.until("execution.finished", outcome="interrupted")
