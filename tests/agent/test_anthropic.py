"""Anthropic's messages: what is sent, what is read, and a server that misbehaves as real ones do."""

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
from hermes_ws.agent.models.anthropic_format import MAX_TOKENS, THINKING, body
from hermes_ws.agent.models.anthropic_stream import AnthropicStream
from hermes_ws.agent.models.dialect import Malformed
from hermes_ws.agent.models.endpoint import Endpoint, Patience, Transient
from hermes_ws.agent.models.http_model import HttpModel
from hermes_ws.agent.models.model import (
    Attached,
    EndPiece,
    ModelRequest,
    ReasoningPiece,
    RetryPiece,
    TextPiece,
    ToolCallPiece,
    ToolSpec,
    UsagePiece,
)
from hermes_ws.contract.content import (
    FileBlock,
    ImageBlock,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from hermes_ws.contract.errors import ModelFailed, ModelRateLimited, ModelUnauthorised
from hermes_ws.scope.secrets import Secrets
from tests.agent.chat_model import KEY, ask, ask_until_failure, refusing, text
from tests.agent.chat_server import Answer, ChatServer, Wire
from tests.agent.twins import user


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


def sent(request: ModelRequest, **settings: Any) -> Any:
    values: dict[str, Any] = {"reasoning": None, "temperature": None, "max_tokens": None, **settings}
    return json.loads(body("claude-1", request, **values))


MARK = {"type": "ephemeral"}


# --- what is sent --------------------------------------------------------------------------------------------------


def test_the_ends_of_tools_system_and_the_last_two_turns_are_marked_for_the_cache() -> None:
    history = [user("one", "u1"), said("ok"), user("two", "u2"), said("yes"), user("three", "u3")]
    tools = [ToolSpec(name, "Does it.", {"type": "object"}) for name in ("a", "b")]
    content = sent(ModelRequest("Be brief.", history, tools))
    assert content["system"] == [{"type": "text", "text": "Be brief.", "cache_control": MARK}]
    assert [tool.get("cache_control") for tool in content["tools"]] == [None, MARK]
    assert content["tools"][0]["input_schema"] == {"type": "object"}
    marked = [message["content"][-1].get("cache_control") for message in content["messages"]]
    assert marked == [None, None, MARK, None, MARK]
    assert (content["model"], content["stream"], content["max_tokens"]) == ("claude-1", True, MAX_TOKENS)


def said(words: str, *blocks: Any) -> Message:
    return Message(message_id="a", role="assistant", text=words, content=[*blocks, TextBlock(text=words)])


def calling(*calls: str, thought: ReasoningBlock | None = None) -> list[Message]:
    blocks = [ToolCallBlock(call_id=each, name="look", arguments={"at": each}) for each in calls]
    results = [
        ToolResultBlock(call_id=each, name="look", output=f"saw {each}", is_error=each == "c2") for each in calls
    ]
    return [
        Message(message_id="a", role="assistant", text="", content=[*([thought] if thought else []), *blocks]),
        Message(message_id="t", role="tool", text="", content=list(results)),
    ]


def test_calls_and_results_stand_in_one_message_each_and_steering_joins_the_results() -> None:
    history = [user("look"), *calling("c1", "c2", "call:3"), user("and hurry", "u2")]
    assistant, results = sent(ModelRequest("", history))["messages"][1:]
    assert [each["id"] for each in assistant["content"]] == ["c1", "c2", "call_3"]
    assert assistant["content"][0] == {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "c1"}}
    kinds = [(each["type"], each.get("tool_use_id"), each.get("is_error")) for each in results["content"]]
    assert kinds == [
        ("tool_result", "c1", None),
        ("tool_result", "c2", True),
        ("tool_result", "call_3", None),
        ("text", None, None),
    ]


def test_a_message_without_words_is_left_out() -> None:
    messages = sent(ModelRequest("", [user("a"), said(" \n"), user("b", "u2")]))["messages"]
    assert [(each["role"], len(each["content"])) for each in messages] == [("user", 2)]


@pytest.mark.parametrize("level", ["low", "medium", "high"])
def test_thinking_has_a_budget_and_room_besides_and_no_temperature(level: str) -> None:
    content = sent(ModelRequest("", [user("hi")]), reasoning=level, max_tokens=1000, temperature=0.5)
    assert content["thinking"] == {"type": "enabled", "budget_tokens": THINKING[level]}
    assert content["max_tokens"] == 1000 + THINKING[level]
    assert "temperature" not in content


def test_a_temperature_is_within_what_the_protocol_takes() -> None:
    assert sent(ModelRequest("", [user("hi")]), temperature=1.7)["temperature"] == 1.0
    assert "thinking" not in sent(ModelRequest("", [user("hi")]), reasoning="none")


def test_a_signed_thought_goes_back_with_the_calls_that_it_led_to() -> None:
    thought = ReasoningBlock(text="I look.", signature="sig")
    content = sent(ModelRequest("", [user("look"), *calling("c1", thought=thought)]), reasoning="low")
    first = content["messages"][1]["content"][0]
    assert first == {"type": "thinking", "thinking": "I look.", "signature": "sig"}
    assert "thinking" in content


def test_calls_without_a_signed_thought_are_gone_on_with_without_thinking() -> None:
    """After a change of the model, or a secret in the words: the provider would refuse the request for ever."""
    unsigned = ReasoningBlock(text="I look.")
    content = sent(ModelRequest("", [user("look"), *calling("c1", thought=unsigned)]), reasoning="high")
    assert "thinking" not in content
    assert [each["type"] for each in content["messages"][1]["content"]] == ["tool_use"]
    later = [user("look"), *calling("c1", thought=unsigned), said("done"), user("again", "u2")]
    assert "thinking" in sent(ModelRequest("", later), reasoning="high")


def test_pictures_and_files_are_sent_as_what_they_are() -> None:
    image, gone = ImageBlock(blob="b1", media_type="image/png"), ImageBlock(blob="b9", media_type="image/png", name="x")
    notes = FileBlock(blob="b2", media_type="text/plain", name="notes.txt", size=5)
    data = FileBlock(blob="b3", media_type="application/zip", name="a.zip", size=9)
    asked = Message(message_id="u", role="user", text="see", content=[TextBlock(text="see"), image, gone, notes, data])
    attached = {"b1": Attached(b"\x89PNG"), "b2": Attached(b"hello", "hello"), "b3": Attached(b"PK\x03")}
    picture, words = sent(ModelRequest("", [asked], attached=attached))["messages"][0]["content"]
    assert picture["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
    assert words["text"] == (
        "see\n\n[The user attached a picture, x, which is no longer there.]\n\n"
        "[The user attached notes.txt: text/plain, 5 bytes:]\nhello\n\n"
        "[The user attached a.zip: application/zip, 9 bytes. It is no text, so its content is not shown.]"
    )


# --- what is read --------------------------------------------------------------------------------------------------


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
