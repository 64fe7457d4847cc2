"""Anthropic's messages: what is read, and a server that misbehaves as real ones do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.agent.models import http_model
from hermes_ws.agent.models.anthropic import anthropic
from hermes_ws.agent.models.anthropic_stream import AnthropicStream
from hermes_ws.agent.models.dialect import Malformed
from hermes_ws.agent.models.endpoint import Endpoint, Patience, Transient
from hermes_ws.agent.models.http_model import HttpModel
from hermes_ws.agent.models.model import (
    EndPiece,
    ReasoningPiece,
    RetryPiece,
    TextPiece,
    ToolCallPiece,
    ToolSpec,
    UsagePiece,
)
from hermes_ws.contract.errors import ModelFailed, ModelRateLimited, ModelUnauthorised
from hermes_ws.scope.secrets import Secrets
from tests.agent.chat_model import KEY, ask, ask_until_failure, refusing, text
from tests.agent.chat_server import Answer, ChatServer, Wire


def model_of(server: ChatServer, *, redact: Any = None, **settings: Any) -> HttpModel:
    reach = Endpoint(server.base_url, "127.0.0.1", KEY, {}, "ANTHROPIC_API_KEY in .env")
    patience = settings.pop("patience", Patience())
    return HttpModel("claude-1", reach, anthropic(**settings), patience=patience, redact=Secrets({"KEY": KEY}).redact)


def playing(*events: Mapping[str, Any] | bytes, cut: bool = False) -> Answer:
    """Events as they are given; what is bytes goes out as it is."""

    async def answer(wire: Wire) -> None:
        await wire.begin()
        for event in events:
            if isinstance(event, bytes):
                await wire.raw(event)
            else:
                await wire.raw(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        if cut:
            await wire.cut()
        else:
            await wire.send(h11.EndOfMessage())

    return answer


def start(**usage: int) -> Mapping[str, Any]:
    return {"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 10, **usage}}}


def block(index: int, **content: Any) -> Mapping[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": content}


def delta(index: int, **content: Any) -> Mapping[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": content}


def stopped(reason: str = "end_turn", tokens: int = 5) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    return (
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": tokens}},
        {"type": "message_stop"},
    )


def saying(*words: str) -> Answer:
    pieces = [delta(0, type="text_delta", text=word) for word in words]
    return playing(start(), block(0, type="text", text=""), *pieces, *stopped())


async def test_text_thought_and_parallel_calls_are_read(server: ChatServer) -> None:
    server.answers = [
        playing(
            start(cache_read_input_tokens=90, cache_creation_input_tokens=7, output_tokens=1),
            block(0, type="thinking", thinking=""),
            delta(0, type="thinking_delta", thinking="Hm"),
            {"type": "ping"},
            delta(0, type="thinking_delta", thinking="m."),
            delta(0, type="signature_delta", signature="si"),
            delta(0, type="signature_delta", signature="g"),
            {"type": "content_block_stop", "index": 0},
            block(1, type="text", text=""),
            delta(1, type="text_delta", text="Hel"),
            delta(1, type="text_delta", text="lo", unknown=True),
            block(2, type="tool_use", id="t1", name="look", input={}),
            block(3, type="tool_use", id="t2", name="look", input={}),
            delta(3, type="input_json_delta", partial_json='{"at": 2}'),
            delta(2, type="input_json_delta", partial_json='{"at"'),
            delta(2, type="input_json_delta", partial_json=": 1}"),
            {"type": "invented_tomorrow", "index": 2},
            *stopped("tool_use", 33),
        )
    ]
    pieces = await ask(model_of(server), tools=[ToolSpec("look", "Looks.", {"type": "object"})])
    thought = [(each.text, each.signature) for each in pieces if isinstance(each, ReasoningPiece)]
    assert thought == [("Hm", ""), ("m.", ""), ("", "sig")]
    assert text(pieces) == "Hello"
    calls = [each for each in pieces if isinstance(each, ToolCallPiece)]
    assert [(each.call_id, each.arguments) for each in calls] == [("t1", {"at": 1}), ("t2", {"at": 2})]
    assert pieces[-2:] == [UsagePiece(107, 33, 90), EndPiece("tool_calls")]
    asked = server.asked[0]
    assert (asked.path, asked.headers["x-api-key"]) == ("/v1/messages", KEY)
    assert asked.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in asked.headers


@pytest.mark.parametrize(
    ("reason", "end"),
    [("end_turn", "stop"), ("stop_sequence", "stop"), ("max_tokens", "length"), ("refusal", "filtered")],
)
async def test_the_reason_of_the_end_is_told(server: ChatServer, reason: str, end: str) -> None:
    server.answers = [playing(start(), block(0, type="text", text="a"), *stopped(reason))]
    pieces = await ask(model_of(server))
    assert pieces[-1] == EndPiece(end)  # pyright: ignore[reportArgumentType]


async def test_several_thoughts_are_not_given_back_as_one(server: ChatServer) -> None:
    server.answers = [
        playing(
            start(),
            block(0, type="thinking", thinking="a"),
            delta(0, type="signature_delta", signature="x"),
            block(1, type="redacted_thinking", data="…"),
            block(2, type="text", text="b"),
            *stopped(),
        )
    ]
    pieces = await ask(model_of(server))
    assert not any(isinstance(each, ReasoningPiece) and each.signature for each in pieces)


async def test_an_answer_that_is_not_streamed_is_read(server: ChatServer) -> None:
    async def whole(wire: Wire) -> None:
        content = [
            {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
            {"type": "text", "text": "hi"},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}},
        ]
        usage = {"input_tokens": 3, "output_tokens": 4}
        await wire.refuse(200, {"type": "message", "content": content, "stop_reason": "tool_use", "usage": usage})

    server.answers = [whole]
    pieces = await ask(model_of(server))
    assert text(pieces) == "hi"
    assert pieces[-3:] == [ToolCallPiece("t1", "look", {"at": 1}), UsagePiece(3, 4, 0), EndPiece("tool_calls")]


# --- misbehaviour --------------------------------------------------------------------------------------------------


async def test_arguments_that_are_no_json_are_told_to_the_model(server: ChatServer) -> None:
    server.answers = [
        playing(
            start(),
            block(0, type="tool_use", id="t1", name="look", input={}),
            delta(0, type="input_json_delta", partial_json='{"at": '),
            *stopped("max_tokens"),
        )
    ]
    [call] = [each for each in await ask(model_of(server)) if isinstance(each, ToolCallPiece)]
    assert (call.arguments, "not a JSON object" in call.problem) == ({}, True)


async def test_overload_is_waited_out_also_when_it_comes_within_the_stream(server: ChatServer) -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    server.answers = [refusing(529, overloaded), playing(start(), overloaded), saying("here")]
    pieces = await ask(model_of(server))
    assert text(pieces) == "here"
    assert ["Overloaded" in each.reason for each in pieces if isinstance(each, RetryPiece)] == [True, True]


async def test_an_error_after_the_first_words_keeps_them(server: ChatServer) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": f"Overloaded, {KEY}"}}
    server.answers = [playing(start(), block(0, type="text", text="Hel"), error)]
    came, failed = await ask_until_failure(model_of(server))
    assert text(came) == "Hel"
    assert "Overloaded" in failed.message
    assert KEY not in failed.message


@pytest.mark.parametrize("retry_after", ["0", None])
async def test_429_is_waited_out_with_and_without_a_hint(server: ChatServer, retry_after: str | None) -> None:
    hint = {} if retry_after is None else {"retry_after": retry_after}
    limited = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    server.answers = [refusing(429, limited, **hint), saying("here")]
    assert text(await ask(model_of(server))) == "here"


async def test_429_for_ever_is_said(server: ChatServer) -> None:
    server.answers = [refusing(429, {"error": {"message": "slow down"}}, retry_after="60")]
    _, failed = await ask_until_failure(model_of(server))
    assert isinstance(failed, ModelRateLimited)
    assert failed.hint


@pytest.mark.parametrize(("status", "kind"), [(401, ModelUnauthorised), (400, ModelFailed), (404, ModelFailed)])
async def test_a_refusal_is_a_sentence_with_a_hint(server: ChatServer, status: int, kind: type[ModelFailed]) -> None:
    server.answers = [refusing(status, {"type": "error", "error": {"type": "x", "message": f"no, {KEY}"}})]
    _, failed = await ask_until_failure(model_of(server))
    assert type(failed) is kind
    assert failed.hint
    assert "no, " in failed.message
    assert KEY not in failed.message


async def test_a_stream_that_is_cut_is_tried_again_only_before_the_first_words(server: ChatServer) -> None:
    server.answers = [playing(start(), cut=True), saying("here")]
    assert text(await ask(model_of(server))) == "here"
    server.answers = [playing(start(), block(0, type="text", text="Hel"), cut=True)]
    came, failed = await ask_until_failure(model_of(server))
    assert (text(came), bool(failed.message)) == ("Hel", True)


async def test_a_stream_that_ends_without_its_end_is_no_answer(server: ChatServer) -> None:
    server.answers = [playing(start(), block(0, type="text", text="Hel"))]
    came, failed = await ask_until_failure(model_of(server))
    assert text(came) == "Hel"
    assert "broke off" in failed.message


async def test_an_empty_answer_ends(server: ChatServer) -> None:
    server.answers = [playing(start(), *stopped())]
    pieces = await ask(model_of(server))
    assert pieces == [UsagePiece(10, 5, 0), EndPiece("stop")]


async def test_malformed_chunks_are_passed_over_and_a_stream_of_them_is_not(server: ChatServer) -> None:
    odd = b'data: {"type": \n\ndata: []\n\ndata: {"kind": "x"}\n\n: comment\n\n'
    server.answers = [playing(start(), odd, block(0, type="text", text="hi"), *stopped())]
    assert text(await ask(model_of(server))) == "hi"
    server.answers = [playing(*[b"data: nonsense\n\n"] * (http_model.MALFORMED + 1))]
    _, failed = await ask_until_failure(model_of(server))
    assert "messages protocol" in failed.message


async def test_an_endpoint_that_speaks_another_protocol_is_said(server: ChatServer) -> None:
    async def page(wire: Wire) -> None:
        await wire.refuse(200, "<html>hello</html>")

    server.answers = [page]
    _, failed = await ask_until_failure(model_of(server))
    assert "/messages" in failed.hint


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
EVENTS = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop", "message", "error"]
)
BLOCKS = st.sampled_from(["text", "thinking", "tool_use", "text_delta", "input_json_delta", "signature_delta"])
FIELDS = st.fixed_dictionaries(
    {"type": BLOCKS}, optional={"text": JSON, "name": JSON, "id": JSON, "partial_json": JSON}
)
ANY = st.fixed_dictionaries(
    {"type": EVENTS},
    optional={
        **dict.fromkeys(("index", "usage", "error", "content"), JSON),
        **dict.fromkeys(("content_block", "delta", "message"), FIELDS | JSON),
    },
)


@given(st.lists(ANY | JSON, max_size=8))
def test_any_json_is_understood_passed_over_or_a_documented_failure(events: list[Any]) -> None:
    stream = AnthropicStream()
    for event in events:
        try:
            pieces = stream.feed(json.dumps(event))
        except Malformed:
            continue
        except (ModelFailed, Transient):
            return
        assert all(isinstance(each, TextPiece | ReasoningPiece) for each in pieces)
    assert isinstance(stream.end()[-1], EndPiece)
