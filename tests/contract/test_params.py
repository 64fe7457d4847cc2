"""What parameters ask beyond the shape of each, and what they say about where they belong."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_ws.contract import catalog
from hermes_ws.contract.catalog import METHODS, AnyMethod
from hermes_ws.contract.content import SUMMARY_ID, summary_message
from hermes_ws.contract.errors import HermesError, InvalidParams
from hermes_ws.contract.events import Envelope
from hermes_ws.contract.methods import connection
from hermes_ws.contract.methods.prompts import SubmitParams
from hermes_ws.contract.registry import Order, Right, Scope, method
from hermes_ws.contract.validation import read_params
from hermes_ws.wire.negotiation import UNSPOKEN
from tests.permissions.examples import example

IDS = ("session_id", "id", "op_id", "process_id", "terminal_id")
"""Parameters whose value begins with the origin of the home that it belongs to."""


@pytest.mark.parametrize("each", METHODS.values(), ids=lambda each: each.name)
def test_parameters_tell_which_home_they_are_about(each: AnyMethod) -> None:
    given = example(each)
    params = read_params(each.params, given)
    named = [given[name] for name in IDS if name in given]
    assert params.located_by() in [*named, None]
    if each.scope in (Scope.SESSION, Scope.THREAD):
        assert params.located_by() == given["session_id"]
    assert isinstance(params.unknown(), HermesError)


@pytest.mark.parametrize(
    ("name", "params", "reason"),
    [
        ("config.set", {"key": "a.b", "value": 1, "scope": "session"}, "go together"),
        ("config.set", {"key": "a.b", "value": 1, "session_id": "s-1"}, "go together"),
        ("prompt.submit", {"session_id": "s-1", "input_id": "i"}, "either text or content"),
        ("prompt.submit", {"session_id": "s-1", "input_id": "i", "text": " \n"}, "blank"),
        ("prompt.submit", {"session_id": "s-1", "input_id": "i", "text": "x", "unattended": True}, "finite"),
        ("prompt.receipt", {"session_id": "s-1"}, "exactly one"),
        ("session.create", {"source": "elsewhere"}, "source is one of"),
        ("session.create", {"base_url": "https://x.example"}, "api_key"),
        ("session.create", {"safe_mode": True, "cwd": "/"}, "safe_mode"),
        ("session.create", {"if_missing": True}, "if_missing needs the title"),
        ("session.resume", {"session_id": "s-1", "latest": True}, "exactly one"),
        ("session.steer", {"session_id": "s-1", "execution_generation": 1, "text": " "}, "blank"),
    ],
)
def test_what_does_not_fit_together_is_refused_with_the_reason(name: str, params: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidParams, match=reason):
        read_params(METHODS[name].params, params)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"every_s": None}, "exactly one"),
        ({"cron": "0 7 * * *"}, "exactly one"),
        ({"session_id": "s-1", "agent": "default"}, "one of the two"),
    ],
)
def test_a_schedule_has_one_time_and_one_agent(changed: dict[str, Any], reason: str) -> None:
    declared = METHODS["schedule.create"].params
    given = {"prompt": "say so", "every_s": 3600, **changed}
    with pytest.raises(InvalidParams, match=reason):
        read_params(declared, {key: value for key, value in given.items() if value is not None})


def test_a_prompt_may_be_words_or_blocks() -> None:
    blocks = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    params: Any = read_params(
        METHODS["prompt.submit"].params, {"session_id": "s-1", "input_id": "i", "content": blocks}
    )
    assert params.plain_text() == "one\ntwo"


def test_two_declarations_of_one_name_are_an_error_at_import(monkeypatch: pytest.MonkeyPatch) -> None:
    doubled = method(
        "gateway.ping",
        METHODS["gateway.ping"].params,
        METHODS["gateway.ping"].result,
        scope=Scope.CONNECTION,
        right=Right.NONE,
        order=Order.NOW,
        doc="Again.",
    )
    monkeypatch.setattr(connection, "AGAIN", METHODS["session.create"], raising=False)
    assert catalog._collect() == METHODS  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(connection, "DOUBLED", doubled, raising=False)
    with pytest.raises(ImportError, match=r"gateway\.ping is declared twice"):
        catalog._collect()  # pyright: ignore[reportPrivateUsage]


def test_what_takes_more_than_looking_is_written_down() -> None:
    assert METHODS["prompt.submit"].audited
    assert not METHODS["session.list"].audited
    assert not METHODS["gateway.ping"].audited


def test_an_envelope_goes_out_without_nulls() -> None:
    assert set(Envelope(type="notice", ts=1.0, payload={"a": None}).model_dump()) == {"type", "ts", "payload"}


def test_a_summary_is_a_message_that_says_what_it_is() -> None:
    message = summary_message("so far")
    assert message.message_id == SUMMARY_ID
    assert message.text.endswith("so far")


def test_a_client_that_turned_out_not_to_know_a_kind_is_not_asked_again() -> None:
    assert "approval" not in UNSPOKEN.without("approval").server_requests


def test_what_steers_an_execution_takes_no_files() -> None:
    sent = {"session_id": "s-1", "input_id": "i-1", "text": "hello", "mode": "steer"}
    read_params(SubmitParams, sent)
    with pytest.raises(InvalidParams, match="words"):
        read_params(
            SubmitParams, {**sent, "attached": [{"blob": "0" * 64, "name": "a.txt", "media_type": "text/plain"}]}
        )
