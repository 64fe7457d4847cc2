"""What was asked of a person when the server was killed stays asked, under its id, and the answer counts once."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gateway_client import PATIENCE, Client
from tests.e2e.process import Server


def killed_while_asking(serve: Callable[..., Server], text: str) -> tuple[str, str, dict[str, Any]]:
    """A session, its input, and the question that was open when the server was killed."""
    server = serve()
    client = server.connect()
    session: str = client.call("session.create")["session_id"]
    admitted: str = client.submit(session, text)["admission_id"]
    question = client.question()
    server.kill()
    client.close()
    return session, admitted, question


def waiting(client: Client, session: str) -> dict[str, Any]:
    """The thread's state once the execution that goes on has asked again."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        state = client.call("thread.state", session_id=session)
        if state["execution"] is not None and state["execution"]["state"] == "waiting":
            return state
    pytest.fail(f"It never asked again: {state}")


def test_the_question_of_an_execution_that_goes_on_stays_as_it_was_asked(
    serve: Callable[..., Server], homes: Path
) -> None:
    session, admitted, asked = killed_while_asking(serve, "/do run touch after-the-crash")

    client = serve().connect()
    resumed = client.call("session.resume", session_id=session, after="1:0")
    assert [each["id"] for each in resumed["questions"]] == [asked["id"]]
    assert client.question() == asked
    state = waiting(client, session)
    (question,) = state["questions"]
    assert (question["id"], question["execution_generation"]) == (asked["id"], 2)
    told = client.call("question.answer", id=asked["id"], result={"choice": "once"}, execution_generation=2)
    assert told["outcome"] == "settled"
    assert client.finished(admitted)["outcome"] == "completed"
    types = [event["type"] for event in client.events if event.get("admission_id") == admitted]
    assert types.count("request.settled") == 1
    assert types.count("tool.start") == 1
    opened = [event["payload"] for event in client.events if event["type"] == "request.opened"]
    assert [(each["id"], each["execution_generation"]) for each in opened] == [(asked["id"], 1), (asked["id"], 2)]
    assert opened[0]["asked_at"] == opened[1]["asked_at"]
    assert (homes / "default" / "home" / "after-the-crash").exists()
    again = client.call("question.answer", id=asked["id"], result={"choice": "deny"})
    assert (again["outcome"], again["result"]["choice"]) == ("already_settled", "once")
    client.close()


def test_a_refusal_after_the_crash_is_a_refusal(serve: Callable[..., Server], homes: Path) -> None:
    session, admitted, asked = killed_while_asking(serve, "/do run touch refused")

    client = serve().connect()
    client.call("session.resume", session_id=session, after="1:0")
    client.answer(client.question(), choice="deny", reason="not any more")
    assert client.finished(admitted)["outcome"] == "completed"
    (complete,) = [event["payload"] for event in client.events if event["type"] == "tool.complete"]
    assert "not any more" in complete["output"]
    assert [each["id"] for each in client.questions] == [asked["id"]]
    assert not (homes / "default" / "home" / "refused").exists()
    client.close()


def test_an_interrupt_after_the_crash_withdraws_the_question(serve: Callable[..., Server]) -> None:
    session, admitted, asked = killed_while_asking(serve, "/do run touch interrupted")

    client = serve().connect()
    client.call("session.resume", session_id=session, after="1:0")
    assert client.question()["id"] == asked["id"]
    waiting(client, session)
    assert client.call("session.interrupt", session_id=session, execution_generation=2)["outcome"] == "accepted"
    assert client.finished(admitted)["outcome"] == "interrupted"
    assert client.call("question.list")["questions"] == []
    late = client.call("question.answer", id=asked["id"], result={"choice": "once"})
    assert late["outcome"] == "withdrawn"
    client.close()


def test_a_second_crash_gives_the_question_up(serve: Callable[..., Server]) -> None:
    """What brings a server down twice is not tried a third time, and what it asked is abandoned."""
    session, admitted, asked = killed_while_asking(serve, "/do run touch twice")
    second = serve()
    client = second.connect()
    client.call("session.resume", session_id=session)
    waiting(client, session)
    second.kill()
    client.close()

    client = serve().connect()
    state = client.call("session.resume", session_id=session)
    assert state["questions"] == []
    assert [(row["admission_id"], row["status"]) for row in state["pending"]] == [(admitted, "unknown")]
    late = client.call("question.answer", id=asked["id"], result={"choice": "once"})
    assert late["outcome"] == "abandoned"
    client.close()
