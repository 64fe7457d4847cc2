"""What does not fit its declaration is refused with the place where it does not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.contract.catalog import METHODS, AnyMethod
from hermes_ws.contract.errors import InvalidParams, UnknownParameter
from hermes_ws.contract.methods.connection import CapabilitiesParams
from hermes_ws.contract.methods.prompts import SubmitParams
from hermes_ws.contract.methods.questions import ConnectionRespondParams
from hermes_ws.contract.methods.sessions import CreateParams, ListParams, ResumeParams
from hermes_ws.contract.methods.threads import SubscribeParams
from hermes_ws.contract.model import Params
from hermes_ws.contract.validation import read_params

HELLO = {"client": {"name": "t"}, "protocol": {"major": 1, "minor": 0}}


def refusal(shape: type[Params], sent: dict[str, Any]) -> InvalidParams:
    with pytest.raises(InvalidParams) as caught:
        read_params(shape, sent)
    return caught.value


def test_an_unknown_key_is_named_with_its_path() -> None:
    error = refusal(ConnectionRespondParams, {"op_id": "srq-a-1", "result": {"targets": {}, "colour": "red"}})
    assert isinstance(error, UnknownParameter)
    assert error.data["path"] == "result.colour"


def test_what_a_newer_client_says_about_itself_is_passed_over() -> None:
    newer = HELLO | {"client": {"name": "t", "colour": "red"}, "telepathy": {"range": 3}}
    assert read_params(CapabilitiesParams, newer) == read_params(CapabilitiesParams, HELLO)


@pytest.mark.parametrize(
    ("shape", "sent", "path"),
    [
        (SubmitParams, {"session_id": "", "input_id": "i", "text": "x"}, "session_id"),
        (SubmitParams, {"session_id": "   ", "input_id": "i", "text": "x"}, "session_id"),
        (SubmitParams, {"session_id": "s", "input_id": "\t", "text": "x"}, "input_id"),
        (SubmitParams, {"session_id": "s", "text": "x"}, "input_id"),
        (SubmitParams, {"session_id": "s", "input_id": "i"}, ""),
        (SubmitParams, {"session_id": "s", "input_id": "i", "text": "  \n"}, ""),
        (SubmitParams, {"session_id": "s", "input_id": "i", "text": "x", "unattended": True}, ""),
        (SubmitParams, {"session_id": "s", "input_id": "i", "text": "x", "content": []}, ""),
        (SubscribeParams, {"session_id": "s", "after": "12"}, "after"),
        (SubscribeParams, {"session_id": "s", "after": "-1:2"}, "after"),
        (ListParams, {"limit": "5"}, "limit"),
        (ListParams, {"limit": True}, "limit"),
        (ListParams, {"limit": 0}, "limit"),
        (ResumeParams, {}, ""),
        (ResumeParams, {"session_id": "s", "latest": True}, ""),
        (CreateParams, {"source": "elsewhere"}, ""),
        (CreateParams, {"title": ""}, "title"),
    ],
)
def test_what_does_not_fit_is_refused_where_it_does_not(shape: type[Params], sent: dict[str, Any], path: str) -> None:
    error = refusal(shape, sent)
    assert error.data["path"] == path
    assert error.message.endswith(".")


def test_a_refusal_does_not_repeat_what_was_sent() -> None:
    error = refusal(ListParams, {"limit": "hunter2hunter2"})
    assert "hunter2" not in error.message


def test_nested_results_are_named_from_where_they_came() -> None:
    with pytest.raises(InvalidParams) as caught:
        read_params(ListParams, {"limit": 0}, where="result")
    assert caught.value.data["path"] == "result.limit"


def test_absent_parameters_are_none_given() -> None:
    assert read_params(ListParams, None) == ListParams()


def test_content_and_text_are_the_same_words() -> None:
    by_text = SubmitParams(session_id="s", input_id="i", text="one\ntwo")
    sent = {
        "session_id": "s",
        "input_id": "i",
        "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
    }
    assert read_params(SubmitParams, sent).plain_text() == by_text.plain_text()


def test_what_names_a_session_tells_where_it_lives() -> None:
    for method in METHODS.values():
        if "session_id" in method.params.model_fields and method.name != "session.resume":
            sent = method.params.model_construct(session_id="abcdefgh-1")
            assert sent.located_by() == "abcdefgh-1", method.name


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


@given(method=st.sampled_from(list(METHODS.values())), sent=st.dictionaries(st.text(max_size=12), JSON, max_size=4))
def test_anything_is_accepted_or_refused_with_a_documented_error(method: AnyMethod, sent: dict[str, Any]) -> None:
    try:
        accepted = read_params(method.params, sent)
    except InvalidParams as error:
        refused_at = error.data.get("path")
        assert isinstance(refused_at, str)
    else:
        assert set(sent) <= set(type(accepted).model_fields)
