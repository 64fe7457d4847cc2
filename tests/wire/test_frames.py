"""JSON texts and the frames around them."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame as ReferenceFrame
from websockets.frames import Opcode

from hermes_ws.contract.errors import NotFound
from hermes_ws.contract.events import Notice
from hermes_ws.wire.frames import (
    NESTING,
    Frame,
    batch_frame,
    encode,
    error_frame,
    event_frame,
    notification_frame,
    reply_frame,
    request_frame,
    scrub,
    text_frame,
)

any_text = st.text(st.characters(exclude_categories=()), max_size=40)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(any_text, inner, max_size=5),
    max_leaves=30,
)


@given(any_json)
def test_every_json_value_is_written_as_utf_8_that_reads_back(value: Any) -> None:
    """FRAME-01, FRAME-09."""
    read = json.loads(encode(value).decode())
    assert json.loads(encode(read).decode()) == read


@given(any_text)
def test_only_lone_surrogates_are_replaced(text: str) -> None:
    assert json.loads(encode(text)) == scrub(text)
    assert scrub(text) == "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in text)


@given(st.integers())
def test_integers_keep_all_their_digits(number: int) -> None:
    assert json.loads(encode({"n": number})) == {"n": number}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_have_become_null(number: float) -> None:
    assert encode([number]) == b"[null]"
    assert encode([number, "\ud800", 2**70]) == '[null,"\ufffd",1180591620717411303424]'.encode()


def test_what_is_nested_too_deeply_becomes_null_and_the_rest_stays() -> None:
    deep: Any = "bottom"
    for _ in range(5000):
        deep = [deep]
    written = encode({"a": 1, "deep": deep})
    assert written.startswith(b'{"a":1,"deep":[')
    assert written.count(b"[") < NESTING
    assert b"null" in written


def test_a_model_is_written_whole_and_scrubbed() -> None:
    assert json.loads(encode(Notice(level="info", type="t", message="m")))["message"] == "m"
    poisoned = Notice(level="info", type="t", message="cut \ud83d")
    assert json.loads(encode(poisoned))["message"] == "cut \ufffd"
    assert json.loads(encode({"inside": poisoned}))["inside"]["message"] == "cut \ufffd"
    beside = {"inside": Notice(level="info", type="t", message="m"), "text": "\ud800"}
    assert json.loads(encode(beside))["inside"]["message"] == "m"


def test_a_part_that_is_encoded_already_is_taken_as_it_is() -> None:
    assert encode({"payload": orjson.Fragment(b'{"a": 1}')}) == b'{"payload":{"a": 1}}'
    assert json.loads(encode({"payload": orjson.Fragment(b'{"a": 1}'), "t": "\ud800"})) == {
        "payload": {"a": 1},
        "t": "\ufffd",
    }


@pytest.mark.parametrize("value", [object(), b"bytes", {"a": {1, 2}}])
def test_what_is_no_json_value_is_a_mistake_of_the_caller(value: object) -> None:
    with pytest.raises(TypeError, match="is no JSON value"):
        encode(value)


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65535, 65536, 1_048_576])
def test_a_frame_is_what_the_library_would_have_made(size: int) -> None:
    payload = b"x" * size
    assert text_frame(payload) == ReferenceFrame(Opcode.TEXT, payload).serialize(mask=False)


def test_the_websocket_form_is_made_once() -> None:
    frame = Frame(b"{}")
    assert frame.ws is frame.ws
    assert len(frame) == 2
    assert "2 bytes" in repr(frame)


def test_an_envelope_leaves_out_its_nulls_and_keeps_those_of_the_payload() -> None:
    frame = event_frame({"type": "notice", "cursor": None, "ts": 1.5, "payload": {"x": None}})
    assert frame.type == "notice"
    assert json.loads(frame.json) == {
        "jsonrpc": "2.0",
        "method": "event",
        "params": {"type": "notice", "ts": 1.5, "payload": {"x": None}},
    }


def test_answers_name_their_request_and_questions_their_id() -> None:
    reply = reply_frame("a", {"x": 1})
    error = error_frame(None, NotFound("No such thing.").to_wire())
    assert (reply.id, json.loads(reply.json)) == ("a", {"jsonrpc": "2.0", "id": "a", "result": {"x": 1}})
    assert json.loads(error.json)["id"] is None
    assert json.loads(error.json)["error"]["code"] == 4004
    assert json.loads(request_frame("srq-1", "approval", {}).json)["method"] == "approval"
    assert json.loads(notification_frame("event", {}).json) == {"jsonrpc": "2.0", "method": "event", "params": {}}


def test_a_batch_is_an_array_of_its_notifications() -> None:
    frames = [event_frame({"type": "notice", "ts": number, "payload": {}}) for number in range(3)]
    batch = json.loads(batch_frame(frames).json)
    assert [each["params"]["ts"] for each in batch] == [0, 1, 2]


def test_a_model_that_cannot_be_written_as_it_is_is_written_as_well_as_it_can_be() -> None:
    reply = reply_frame(7, Notice(level="info", type="t", message="a lone \ud800 surrogate"))
    assert reply.id == 7
    assert json.loads(reply.json)["result"]["message"] == "a lone \ufffd surrogate"
    whole = reply_frame(8, Notice(level="info", type="t", message="plain"))
    assert (whole.id, json.loads(whole.json)["result"]["message"]) == (8, "plain")
    named = reply_frame('a "name"', Notice(level="info", type="t", message="plain"))
    assert (named.id, json.loads(named.json)["id"]) == ('a "name"', 'a "name"')
