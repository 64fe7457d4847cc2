"""Reading what the other side sends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.wire.peer import ID_CHARACTERS, Notification, Refused, Request, Response, parse


def _parse(**message: Any) -> object:
    return parse(json.dumps({"jsonrpc": "2.0", **message}).encode())


def _refused(text: bytes) -> Refused:
    with pytest.raises(Refused) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize("id", [0, 1, -5, 2**53, "a", "x" * ID_CHARACTERS])
def test_a_request_has_an_id_a_method_and_an_object(id: int | str) -> None:
    assert _parse(id=id, method="m", params={"a": [1]}) == Request(id, "m", {"a": [1]})
    assert _parse(id=id, method="m", more="ignored") == Request(id, "m", {})


def test_a_cancellation_is_a_notification() -> None:
    assert _parse(method="$/cancel", params={"id": 1}) == Notification("$/cancel", {"id": 1})


def test_an_answer_to_a_question_is_a_response() -> None:
    assert _parse(id="srq-1", result={"choice": "once"}) == Response("srq-1", {"choice": "once"}, None)
    assert _parse(id="srq-1", result=None) == Response("srq-1", None, None)
    assert _parse(id=1, error={"code": 1}) == Response(1, None, {"code": 1})


def test_an_answer_that_names_no_request_is_not_answered_itself() -> None:
    assert _parse(id=None, error={"code": -32700}) == Response(None, None, {"code": -32700})


@pytest.mark.parametrize("id", [None, True, 1.5, "", "  ", "x" * (ID_CHARACTERS + 1), [], {}, 2**70])
def test_an_id_that_cannot_be_repeated_is_refused(id: Any) -> None:
    refused = _refused(json.dumps({"jsonrpc": "2.0", "id": id, "method": "m"}).encode())
    assert (refused.error.code, refused.id) == (-32600, None)


def test_a_request_without_an_id_is_refused() -> None:
    assert _refused(b'{"jsonrpc":"2.0","method":"session.list"}').error.code == -32600


@pytest.mark.parametrize(
    ("text", "code", "id"),
    [
        (b"", -32700, None),
        (b"{", -32700, None),
        (b"nonsense", -32700, None),
        (b'{"a":NaN,"b":"\\u0041"}', -32700, None),
        (b'"\xff"', -32700, None),
        (b'"\\ud800\xff"', -32700, None),
        (b"[" * 5000 + b"]" * 5000, -32700, None),
        (b'["\\u0041",' * 50000, -32700, None),
        (b'{"a":"\\ud800","b":' + b"[" * 50000 + b"]" * 50000 + b"}", -32700, None),
        (b"1", -32600, None),
        (b"null", -32600, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"m"}]', -32600, None),
        (b"{}", -32600, None),
        (b'{"id":3,"method":"m"}', -32600, 3),
        (b'{"jsonrpc":"1.0","id":3,"method":"m"}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":3}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":3,"method":""}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":3,"method":5}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":3,"method":"' + b"m" * 200 + b'"}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":3,"method":"m","params":[]}', -32602, 3),
        (b'{"jsonrpc":"2.0","id":3,"method":"m","params":null}', -32602, 3),
    ],
)
def test_what_is_no_message_is_refused_with_its_code_and_its_id(text: bytes, code: int, id: int | None) -> None:
    refused = _refused(text)
    assert (refused.error.code, refused.id) == (code, id)


def test_lone_surrogates_are_replaced_wherever_they_stand() -> None:
    """FRAME-01, FRAME-02."""
    text = rb'{"jsonrpc":"2.0","id":1,"method":"m","params":{"\udc00":["\ud83d","\ud83d\ude00"],"n":[1,null]}}'
    assert parse(text) == Request(1, "m", {"\ufffd": ["\ufffd", "\U0001f600"], "n": [1, None]})


@given(st.binary(max_size=200))
def test_no_bytes_make_reading_fail_in_another_way(data: bytes) -> None:
    assert _outcome(data) in (None, -32600, -32602, -32700)


@given(
    st.dictionaries(
        st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "more"]),
        st.sampled_from([None, "2.0", "m", "$/cancel", 1, 1.5, True, "", [], {}, {"id": 1}, "\ud800"]),
    )
)
def test_any_object_is_a_message_or_refused_with_a_documented_error(message: dict[str, Any]) -> None:
    assert _outcome(json.dumps(message).encode()) in (None, -32600, -32602)


def _outcome(data: bytes) -> int | None:
    try:
        parse(data)
    except Refused as refused:
        return refused.error.code
    return None
