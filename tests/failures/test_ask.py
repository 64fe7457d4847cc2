"""ASK: a question is asked once, seen by whoever can answer, and settled once."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from hermes_ws.contract.errors import NotFound
from hermes_ws.contract.methods.questions import AnswerParams
from hermes_ws.hosting.runtime import ProfileRuntime
from tests.e2e.gateway_client import Client, Refused
from tests.e2e.process import Server
from tests.session.house import OWNER, House, People, new_session, say

ASK = "/do ask Which colour?"


def asking(client: Client, text: str = ASK, profile: str = "default") -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A session that waits for an answer: its id, the question, and what admitted the input."""
    session = client.call("session.create", profile=profile)["session_id"]
    before = len(client.questions)
    admitted = client.submit(session, text)
    return session, client.question(before), admitted


def test_ask_01_an_answer_settles_the_question_that_it_names(shared_server: Server) -> None:
    """Of two open ones the second is answered, and the first stays open."""
    client = shared_server.connect()
    _, first, _ = asking(client)
    _, second, admitted = asking(client)
    client.answer(second, answers={"q1": "blue"})
    client.finished(admitted["admission_id"])
    open_now = {row["id"] for row in client.call("question.list", profile="*")["questions"]}
    assert first["id"] in open_now
    assert second["id"] not in open_now
    client.answer(first, answers={"q1": "red"})
    client.close()


async def test_ask_02_a_server_that_does_not_have_the_question_says_so_and_it_stays_open(
    runtime: ProfileRuntime, people: People, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Another server over other homes is given the answer."""
    _, thread, viewer = await new_session(runtime)
    await say(thread, ASK, "one")
    question = await people.question()
    root = tmp_path_factory.mktemp("elsewhere") / "homes"
    root.mkdir(mode=0o700)
    elsewhere = House(root)
    elsewhere.home("default")
    async with elsewhere.served() as host:
        assert await host.owner_of(question.id) is None
        other = await elsewhere.runtime()
        answer = AnswerParams(id=question.id, result={"answers": {"q1": "blue"}})
        with pytest.raises(NotFound):
            await other.sessions.answer(answer, OWNER)
        assert [each.id for each in await runtime.sessions.open_questions()] == [question.id]
        assert (await runtime.sessions.answer(answer, OWNER)).outcome == "settled"
    await viewer.until("execution.finished", outcome="completed")


def test_ask_03_a_resume_brings_the_question_with_its_choices_and_its_id(shared_server: Server) -> None:
    """A client goes to another session and comes back."""
    client = shared_server.connect()
    choice = json.dumps({"questions": [{"question": "Which?", "choices": ["red", "blue"]}]})
    session, question, _ = asking(client, f"/do tool clarify {choice}")
    client.call("session.create")
    snapshot = client.call("session.resume", session_id=session)
    assert snapshot["execution"]["state"] == "waiting"
    (again,) = snapshot["questions"]
    assert (again["id"], again["params"]) == (question["id"], question["params"])
    assert again["params"]["questions"][0]["choices"] == ["red", "blue"]
    client.answer(question, answers={"q1": "red"})
    client.close()


def test_ask_04_whoever_can_answer_is_asked_whatever_they_look_at(shared_server: Server) -> None:
    """One client has another session in front, one has none; and with none that can, the agent learns that at once."""
    asker, elsewhere, idle = (shared_server.connect() for _ in range(3))
    elsewhere.call("session.create")
    _, question, admitted = asking(asker)
    assert elsewhere.question() == idle.question() == question
    idle.answer(question, answers={"q1": "blue"})
    assert asker.finished(admitted["admission_id"])["outcome"] == "completed"
    for each in (asker, elsewhere, idle):
        each.close()


def test_ask_05_that_nobody_can_answer_is_no_refusal(shared_server: Server) -> None:
    """The client takes approvals alone, and a choice is asked for."""
    client = shared_server.connect(server_requests=["approval"])
    session = client.call("session.create", profile="second")["session_id"]
    admitted = client.submit(session, ASK)
    assert client.finished(admitted["admission_id"])["outcome"] == "completed"
    (output,) = [e["payload"]["output"] for e in client.events if e["type"] == "tool.complete"]
    assert "Nobody who could answer" in output
    assert "denied" not in output.lower()
    client.close()


def test_ask_06_one_id_answers_and_any_other_is_a_clear_error(shared_server: Server) -> None:
    """The session's id, the execution's, and the question's."""
    client = shared_server.connect()
    session, question, admitted = asking(client)
    for id in (session, admitted["admission_id"]):
        with pytest.raises(Refused) as refused:
            client.call("question.answer", id=id, result={"answers": {"q1": "x"}})
        assert refused.value.type == "not_found"
    told = client.call("question.answer", id=question["id"], result={"answers": {"q1": "x"}})
    assert told["outcome"] == "settled"
    client.close()


def test_ask_07_an_answer_without_an_id_reaches_nobody_and_says_so(shared_server: Server) -> None:
    """Absent, empty and blank."""
    client = shared_server.connect()
    for params in ({}, {"id": ""}, {"id": " "}, {"id": None}):
        with pytest.raises(Refused) as refused:
            client.call("question.answer", result={"answers": {}}, **params)
        assert (refused.value.code, refused.value.data["path"]) == (4000, "id")
    client.close()


def test_ask_09_one_decision_counts_once_however_often_it_is_sent(shared_server: Server) -> None:
    """Three times on two connections, all of them under way at once."""
    one, other = shared_server.connect(), shared_server.connect()
    _, question, admitted = asking(one, "/do run touch ask-09")
    answer = {"id": question["id"], "choice": "deny"}
    sent = [(client, client.send("approval.respond", **answer)) for client in (one, other, one)]
    outcomes = sorted(client.wait(number)["outcome"] for client, number in sent)
    assert outcomes == ["already_settled", "already_settled", "settled"]
    one.finished(admitted["admission_id"])
    ends = [e for e in one.events if e["type"] == "request.settled" and e["payload"]["id"] == question["id"]]
    assert len(ends) == 1
    for each in (one, other):
        each.close()


def test_ask_10_a_lost_connection_is_no_answer(shared_server: Server) -> None:
    """The only client drops while it is asked, comes back, and its answer counts."""
    client = shared_server.connect()
    session, question, admitted = asking(client)
    client.cut()
    back = shared_server.connect()
    # Whoever comes later and can be asked is sent what waits.
    assert back.question() == question
    assert back.call("session.resume", session_id=session)["questions"][0]["id"] == question["id"]
    back.answer(question, answers={"q1": "blue"})
    assert back.finished(admitted["admission_id"])["outcome"] == "completed"
    back.close()


def test_ask_11_a_question_that_waits_holds_up_nothing_else(shared_server: Server) -> None:
    """On the connection that was asked: a ping, another session's turn, and the asking session's own state."""
    client = shared_server.connect()
    session, question, _ = asking(client)
    assert client.call("gateway.ping") == {"ok": True}
    other = client.call("session.create")["session_id"]
    assert client.finished(client.submit(other, "/do say done")["admission_id"])["outcome"] == "completed"
    assert client.call("thread.state", session_id=session)["execution"]["state"] == "waiting"
    client.answer(question, answers={"q1": "blue"})
    client.close()


def test_ask_12_an_answer_given_while_the_asker_is_away_is_kept_and_asked_no_more(shared_server: Server) -> None:
    """The client that asked is gone when another one decides; it comes back to the outcome."""
    asker, other = shared_server.connect(), shared_server.connect()
    session, question, _ = asking(asker)
    asker.cut()
    assert other.call("question.answer", id=question["id"], result={"answers": {"q1": "blue"}})["outcome"] == "settled"
    back = shared_server.connect()
    assert back.call("session.resume", session_id=session)["questions"] == []
    late = back.call("question.answer", id=question["id"], result={"answers": {"q1": "red"}})
    assert (late["outcome"], late["result"]) == ("already_settled", {"answers": {"q1": "blue"}})
    back.call("gateway.ping")
    assert back.questions == []
    for each in (other, back):
        each.close()


async def test_ask_14_a_question_of_a_subagent_is_shown_in_its_session(runtime: ProfileRuntime, people: People) -> None:
    """A thread below the one that a client looks at asks; the client's snapshot has it, and names the thread."""
    _, thread, viewer = await new_session(runtime)
    await say(thread, f"/do delegate {ASK}", "one")
    question = await people.question()
    assert question.thread_id != "main"
    snapshot = await thread.snapshot(None, None)
    assert [(each.id, each.thread_id) for each in snapshot.questions] == [(question.id, question.thread_id)]
    items = question.params["questions"]
    assert isinstance(items, list)
    answer = AnswerParams(id=question.id, result={"answers": {"q1": "blue"}})
    with trio.fail_after(30):
        assert (await runtime.sessions.answer(answer, OWNER)).outcome == "settled"
    await viewer.until("execution.finished", outcome="completed")
