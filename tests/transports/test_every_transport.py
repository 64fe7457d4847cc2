"""The same contract on every transport: each of these runs over all of them."""

from __future__ import annotations

import base64
import hashlib
import os
import uuid
from typing import Any

import pytest

from tests.e2e.gateway_client import Refused
from tests.transports.conftest import Opened


def committed(events: list[dict[str, Any]]) -> list[int]:
    return [event["seq"] for event in events if "cursor" in event]


def test_a_prompt_is_admitted_and_its_story_comes_in_order(opened: Opened) -> None:
    client = opened()
    session = client.session()["session_id"]
    admitted = client.submit(session, "hello")
    assert client.finished(admitted["admission_id"])["outcome"] == "completed"
    seen = committed(client.events)
    assert seen == list(range(1, len(seen) + 1)), "a gap or a repetition"
    text = ""
    for event in client.events:
        payload = event["payload"]
        if event["type"] == "message.delta":
            assert payload["offset"] == len(text)
            text += payload["text"]
        elif event["type"] == "message.complete" and payload["role"] == "assistant":
            assert payload["text"] == text


def test_a_question_is_asked_answered_and_settled(opened: Opened) -> None:
    client = opened()
    session = client.session()["session_id"]
    admitted = client.submit(session, "/do run echo one two")
    question = client.question()
    assert question["method"] == "approval"
    assert question["params"]["command"] == "echo one two"
    client.answer(question, choice="once")
    assert client.finished(admitted["admission_id"])["outcome"] == "completed"
    done = client.until(lambda e: e["type"] == "tool.complete")
    assert done["payload"]["output"].strip() == "one two"
    settled = client.until(lambda e: e["type"] == "request.settled")
    assert settled["payload"]["state"] == "settled"


def test_a_client_that_comes_back_gets_what_it_missed_and_nothing_twice(opened: Opened, transport: str) -> None:
    client = opened()
    session = client.session()["session_id"]
    client.finished(client.submit(session, "first")["admission_id"])
    half = next(event["cursor"] for event in client.events if event["type"] == "message.start")
    whole = [event for event in client.events if "cursor" in event]
    again = client if transport == "standalone" else opened()
    again.events.clear()
    again.listen(session, half)
    again.until(lambda e: e["type"] == "execution.finished")
    rest = [event for event in again.events if "cursor" in event]
    place = next(index for index, event in enumerate(whole) if event["cursor"] == half)
    assert rest == whole[place + 1 :]


def test_a_replaced_history_is_told_to_those_who_listen(opened: Opened) -> None:
    client = opened()
    created = client.session()
    session = created["session_id"]
    client.finished(client.submit(session, "first")["admission_id"])
    revision = client.call("session.info", session_id=session)["revision"]
    client.call(
        "session.mutate",
        session_id=session,
        request_id=uuid.uuid4().hex,
        expected_revision=revision,
        operation="reset",
    )
    rebased = client.until(lambda e: e["type"] == "thread.rebased")
    assert rebased["payload"]["generation"] == 2
    assert rebased["cursor"].startswith("2:")


def test_a_cursor_of_no_journal_is_told_that_its_history_is_void(opened: Opened) -> None:
    client = opened()
    session = client.call("session.create", subscribe=False)["session_id"]
    admitted = client.submit(session, "hello")
    client.listen(session, "7:70")
    end = client.until(lambda e: e["type"] == "execution.finished" and e["admission_id"] == admitted["admission_id"])
    assert end["cursor"].startswith("1:")


def test_what_cannot_be_read_is_refused_alike(opened: Opened) -> None:
    client = opened()
    for text, code in (
        ("{", -32700),
        ("[]", -32600),
        ('"text"', -32600),
        ('{"jsonrpc": "1.0", "id": 1, "method": "profiles.list"}', -32600),
        ('{"jsonrpc": "2.0", "id": " ", "method": "profiles.list"}', -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": ""}', -32600),
        ('{"jsonrpc": "2.0", "id": 1, "method": "profiles.list", "params": []}', -32602),
        ('{"jsonrpc": "2.0", "id": 1, "method": "no.such"}', -32601),
        ('{"jsonrpc": "2.0", "id": 1, "method": "thread.state", "params": {"session_id": " "}}', 4000),
        ('{"jsonrpc": "2.0", "id": 1, "method": "thread.state", "params": {"session_id": "x", "y": 1}}', 4000),
        ('{"jsonrpc": "2.0", "id": 1, "method": "thread.state", "params": {"session_id": "none-1"}}', 4001),
    ):
        assert client.raw(text)["error"]["code"] == code, text
    assert client.call("profiles.list")["launch"] == "default"


def test_a_lone_surrogate_is_replaced_before_it_is_stored(opened: Opened) -> None:
    client = opened()
    session = client.session()["session_id"]
    params = f'{{"session_id":"{session}","input_id":"i","text":"a\\ud800b"}}'
    text = f'{{"jsonrpc":"2.0","id":"s","method":"prompt.submit","params":{params}}}'
    assert "result" in client.raw(text)
    queued = client.until(lambda e: e["type"] == "execution.queued")
    assert queued["payload"]["text"] == "a�b"


def test_one_input_is_admitted_once(opened: Opened) -> None:
    client = opened()
    session = client.session()["session_id"]
    said = {"session_id": session, "input_id": "the-same", "text": "hello"}
    first = client.call("prompt.submit", **said)
    assert client.call("prompt.submit", **said)["admission_id"] == first["admission_id"]
    with pytest.raises(Refused) as refused:
        client.call("prompt.submit", **{**said, "text": "other"})
    assert refused.value.type == "admission_conflict"


def test_a_path_binds_to_one_profile(opened: Opened) -> None:
    client = opened(profile="second")
    assert [each["name"] for each in client.call("profiles.list")["profiles"]] == ["second"]
    assert client.session()["profile"] == "second"
    with pytest.raises(Refused) as refused:
        client.call("session.create", profile="third")
    assert refused.value.type == "profile_unknown"


def test_an_execution_that_waits_is_interrupted(opened: Opened) -> None:
    client = opened()
    session = client.session()["session_id"]
    admitted = client.submit(session, "/do run sleep 60")
    client.question()
    started = client.until(lambda e: e["type"] == "execution.started")
    outcome = client.call("session.interrupt", session_id=session, execution_generation=started["execution_generation"])
    assert outcome["outcome"] == "accepted"
    assert client.finished(admitted["admission_id"])["outcome"] == "interrupted"


def test_a_large_content_goes_there_and_back_in_pieces(opened: Opened) -> None:
    client = opened()
    content = os.urandom(900_000)
    upload = uuid.uuid4().hex
    blob = None
    for offset in range(0, len(content), 400_000):
        piece = base64.b64encode(content[offset : offset + 400_000]).decode()
        put = client.call("blob.put", upload=upload, offset=offset, size=len(content), data=piece)
        blob = put["blob"]
    assert blob == hashlib.sha256(content).hexdigest()
    back = b""
    while len(back) < len(content):
        part = client.call("blob.get", blob=blob, offset=len(back))
        back += base64.b64decode(part["data"])
    assert back == content
