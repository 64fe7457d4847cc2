"""Questions of every kind, over real connections: who is asked, who answers, and what is kept of an answer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gateway_client import Client, Refused
from tests.e2e.process import Server, write_home

CANARY = "canary-that-is-kept-nowhere-4711"


def tool(name: str, /, **arguments: Any) -> str:
    return f"/do tool {name} {json.dumps(arguments)}"


def session(client: Client, profile: str = "default") -> str:
    created: str = client.call("session.create", profile=profile)["session_id"]
    return created


def completed(client: Client, admission_id: str) -> str:
    """What the tool gave that an execution ran."""
    client.finished(admission_id)
    found = [e for e in client.events if e["type"] == "tool.complete" and e["admission_id"] == admission_id]
    output: str = found[-1]["payload"]["output"]
    return output


def settled(client: Client, id: str) -> dict[str, Any]:
    event = client.until(lambda e: e["type"] == "request.settled" and e["payload"]["id"] == id)
    payload: dict[str, Any] = event["payload"]
    return payload


def test_every_client_that_can_is_asked_and_the_first_answer_counts(shared_server: Server) -> None:
    asker, viewer = shared_server.connect(), shared_server.connect()
    silent = shared_server.connect(server_requests=["clarify"])
    id = session(asker)
    admitted = asker.submit(id, "/do run touch first-answer")
    question = asker.question()
    # Attached or not: the viewer has opened nothing (ASK-04).
    assert viewer.question() == question
    row = {"id": question["id"], "kind": "approval", "profile": "default", "session_id": id}
    listed = viewer.call("question.list", profile="*")["questions"]
    assert [each for each in listed if row.items() <= each.items()]
    viewer.answer(question, choice="deny", reason="not now")
    assert settled(asker, question["id"])["result"]["choice"] == "deny"
    told = asker.until(lambda e: e["type"] == "request.cancel")
    assert told["payload"] == {"id": question["id"], "reason": "resolved"}
    assert "not now" in completed(asker, admitted["admission_id"])
    # Too late, by a response and by a method.
    asker.answer(question, choice="once")
    notice = asker.until(lambda e: e["type"] == "notice")
    assert notice["payload"]["type"] == "already_settled"
    late = asker.call("approval.respond", id=question["id"], choice="once")
    assert (late["outcome"], late["result"]["choice"]) == ("already_settled", "deny")
    assert silent.questions == []
    for each in (asker, viewer, silent):
        each.close()


def test_a_method_that_is_named_after_a_kind_answers_that_kind_alone(shared_server: Server) -> None:
    client = shared_server.connect()
    id = session(client)
    client.submit(id, "/do ask Which colour?")
    question = client.question()
    for method, answer in (
        ("approval.respond", {"choice": "once"}),
        ("sudo.respond", {"value": "x"}),
        ("secret.respond", {"value": "x"}),
    ):
        with pytest.raises(Refused) as refused:
            client.call(method, id=question["id"], **answer)
        assert (refused.value.type, refused.value.data["path"]) == ("invalid_params", "id")
    with pytest.raises(Refused) as stale:
        client.call("clarify.respond", id=question["id"], answers={"q1": "blue"}, execution_generation=99)
    assert stale.value.type == "stale_generation"
    assert client.call("clarify.respond", id=question["id"], answers={"q1": "blue"})["outcome"] == "settled"
    client.close()


def test_a_client_that_turns_out_not_to_know_the_kind_ends_the_wait(shared_server: Server) -> None:
    """ASK-15: method not found from the only one who could; any other error leaves the question open."""
    client = shared_server.connect()
    id = session(client, "second")
    admitted = client.submit(id, "/do ask Which colour?")
    question = client.question()
    client.socket.send(
        json.dumps({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32000, "message": "busy"}})
    )
    assert client.call("thread.state", session_id=id)["questions"][0]["id"] == question["id"]
    gone = {"code": -32601, "message": "Method not found"}
    client.socket.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], "error": gone}))
    assert settled(client, question["id"])["state"] == "withdrawn"
    assert "Nobody who could answer" in completed(client, admitted["admission_id"])
    # It is asked no question of this kind any more.
    again = client.submit(id, "/do ask Which shape?")
    assert "Nobody who could answer" in completed(client, again["admission_id"])
    assert len(client.questions) == 1
    client.close()


def test_a_secret_goes_to_the_profile_and_is_kept_nowhere_else(serve: Callable[..., Server], homes: Path) -> None:
    server = serve()
    client = server.connect()
    id = session(client, "second")
    for index, name in enumerate(("BY_RESPONSE", "BY_METHOD")):
        admitted = client.submit(id, tool("request_secret", name=name, prompt="For the tests."))
        question = client.question(index)
        assert (question["method"], question["params"]["name"]) == ("secret", name)
        if name == "BY_RESPONSE":
            client.answer(question, value=CANARY)
        else:
            told = client.call("secret.respond", id=question["id"], value=CANARY)
            assert told == {"outcome": "settled", "result": None}
        assert f"{name} is in the profile's .env" in completed(client, admitted["admission_id"])
        assert settled(client, question["id"])["result"] is None
        again = client.call("question.answer", id=question["id"], result={"value": "other"})
        assert again == {"outcome": "already_settled", "result": None}
        assert name in client.call("secrets.names", profile="second")["names"]
        assert name not in client.call("secrets.names", profile="default")["names"]
    audit = client.call("runtime.audit", profile="second")
    frames = json.dumps([client.events, client.questions, audit])
    client.close()
    assert server.stop() == 0
    assert CANARY not in frames
    kept = [file for file in homes.rglob("*") if _holds(file, CANARY)]
    assert kept == [homes / "second" / ".env"]
    assert CANARY not in server.log.read_text()


def test_a_refused_secret_is_no_secret(shared_server: Server) -> None:
    client = shared_server.connect()
    id = session(client)
    admitted = client.submit(id, tool("request_secret", name="WANTED_KEY", prompt="For the tests."))
    client.answer(client.question(), value=None)
    assert "would not give it" in completed(client, admitted["admission_id"])
    client.close()


def test_a_connection_is_asked_for_without_holding_anything(shared_server: Server) -> None:
    client = shared_server.connect()
    id = session(client, "second")
    target = {"name": "hub", "kind": "connector", "required_env": [{"name": "HUB_TOKEN"}]}
    admitted = client.submit(id, tool("request_connection", targets=[target]))
    assert "Go on meanwhile" in completed(client, admitted["admission_id"])
    request = client.until(lambda e: e["type"] == "connection.request")["payload"]
    op_id = request["op_id"]
    before = client.call("connectors.operation.status", op_id=op_id)
    assert (before["settled"], before["seq"], before["targets"][0]["name"]) == (False, 1, "hub")
    assert before["deadline_at"] == request["deadline_at"] > time.time()
    assert client.call("question.list", profile="second")["questions"][-1]["deadline"] == request["deadline_at"]
    assert client.call("thread.state", session_id=id)["questions"][0]["id"] == op_id
    with pytest.raises(Refused) as missing:
        client.call("connection.respond", op_id=op_id, result={"targets": {"hub": "connected"}})
    assert missing.value.data["path"] == "result.values"
    result = {"targets": {"hub": "connected"}, "values": {"HUB_TOKEN": CANARY}}
    assert client.call("connection.respond", op_id=op_id, result=result)["outcome"] == "settled"
    update = client.until(lambda e: e["type"] == "connection.update")
    assert "cursor" not in update
    assert (update["payload"]["op_id"], update["payload"]["seq"], update["payload"]["settled"]) == (op_id, 2, True)
    after = client.call("connectors.operation.status", op_id=op_id)
    assert (after["settled"], after["targets"][0]["state"]) == (True, "connected")
    assert "HUB_TOKEN" in client.call("secrets.names", profile="second")["names"]
    assert CANARY not in json.dumps(client.events)
    client.close()


def test_a_question_expires_and_that_is_no_refusal(
    serve: Callable[..., Server], tmp_path: Path, base_environment: dict[str, str]
) -> None:
    root = tmp_path / "timed"
    write_home(root / "default", env={}, config="questions:\n  deadline_s: 0.2\n")
    server = serve(root=root)
    client = server.connect()
    id = session(client)
    admitted = client.submit(id, "/do run touch too-late")
    question = client.question()
    opened = client.until(lambda e: e["type"] == "request.opened")
    assert opened["payload"]["deadline"] > opened["payload"]["asked_at"]
    assert settled(client, question["id"])["state"] == "expired"
    assert "no refusal" in completed(client, admitted["admission_id"])
    assert client.call("approval.respond", id=question["id"], choice="once")["outcome"] == "expired"
    client.close()
    assert server.stop() == 0


def test_a_login_comes_from_the_vault_into_the_command_and_nowhere_else(
    serve: Callable[..., Server], homes: Path
) -> None:
    (homes / "second" / "config.yaml").write_text("agent:\n  toolsets: [vault]\n")
    server = serve()
    client = server.connect()
    id = session(client, "second")
    command = 'printf "%s:%s:%s" "$LOGIN_USERNAME" "$LOGIN_PASSWORD" "$LOGIN_CODE"; test "$LOGIN_PASSWORD" = ' + CANARY
    admitted = client.submit(
        id, tool("run_with_login", origin="https://example.org", command=command.split("; test")[0], code=True)
    )
    kinds: list[str] = []
    answers = {
        "approval": {"choice": "once"},
        "vault.unlock_prompt": {"value": "a password of the tests"},
        "vault.save_login": {"value": json.dumps({"username": "ada-of-tests", "password": CANARY})},
        "vault.code": {"value": "code-815-of-tests"},
    }
    for index in range(4):
        question = client.question(index)
        kinds.append(question["method"])
        client.answer(question, **answers[question["method"]])
    assert kinds == ["approval", "vault.unlock_prompt", "vault.save_login", "vault.code"]
    assert completed(client, admitted["admission_id"]) == "[LOGIN_USERNAME]:[LOGIN_PASSWORD]:[LOGIN_CODE]"
    # It is open now and has the login: only the approval is asked.
    again = client.submit(id, tool("run_with_login", origin="https://example.org", command="echo $LOGIN_USERNAME"))
    client.answer(client.question(4), choice="once")
    assert completed(client, again["admission_id"]) == "[LOGIN_USERNAME]"
    listed = client.call("vault.list", profile="second")
    assert [(row["label"], row["username"]) for row in listed["items"]] == [("example.org", "ada-of-tests")]
    assert client.call("vault.list", profile="default") == {"unlocked": False, "items": []}
    assert client.call("vault.lock", profile="second") == {"unlocked": False}
    assert not client.call("vault.unlock", profile="second", password="wrong")["unlocked"]
    with pytest.raises(Refused):
        client.call("vault.add", profile="second", label="x", secret={"username": "u", "password": "p"})
    assert client.call("vault.unlock", profile="second", password="a password of the tests")["unlocked"]
    frames = json.dumps(client.events)
    client.close()
    assert server.stop() == 0
    assert CANARY not in frames
    assert "code-815" not in frames
    assert [file for file in homes.rglob("*") if _holds(file, CANARY, "code-815-of-tests")] == []


def _holds(file: Path, *texts: str) -> bool:
    with suppress(OSError):
        if file.is_file() and not file.is_symlink():
            return any(text.encode() in file.read_bytes() for text in texts)
    return False


def test_a_tool_that_a_client_offers_is_called_on_that_client(shared_server: Server) -> None:
    offered = {"name": "clipboard", "description": "Reads the clipboard.", "parameters": {"type": "object"}}
    other = shared_server.connect(server_requests=["client_tool"])
    client = shared_server.connect(client_tools=[offered])
    id = session(client)
    admitted = client.submit(id, tool("clipboard", which="main"))
    question = client.question()
    if question["method"] == "approval":
        client.answer(question, choice="once")
        question = client.question(1)
    assert question["method"] == "client_tool"
    assert (question["params"]["tool"], question["params"]["arguments"]) == ("clipboard", {"which": "main"})
    client.answer(question, output="copied words", is_error=False)
    assert completed(client, admitted["admission_id"]) == "copied words"
    # It was asked of nobody who does not offer it; and with its client gone nobody offers it.
    assert other.call("question.list")["questions"] == []
    assert other.questions == []
    client.close()
    admitted = other.submit(id, tool("clipboard", which="main"))
    other.call("session.resume", session_id=id, after="1:0")
    assert "There is no tool clipboard" in completed(other, admitted["admission_id"])
    other.close()
