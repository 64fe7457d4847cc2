"""The OpenAI provider against a real server on loopback: what it sends and what it understands."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from hermes_ws.agent.approvals import SessionApprovals
from hermes_ws.agent.models.model import (
    EndPiece,
    ModelRequest,
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    ToolNamePiece,
    ToolSpec,
    UsagePiece,
)
from hermes_ws.agent.turn import run_turn
from hermes_ws.contract.content import Message, TextBlock, ToolCallBlock, ToolResultBlock
from tests.agent.chat_model import KEY, ask, delta, model_of, refusing, saying, sending, text
from tests.agent.chat_server import ChatServer
from tests.agent.twins import AskerTwin, HandsTwin, NarratorTwin, finished, request, user

# --- what is sent and understood -----------------------------------------------------------------------------------


async def test_text_is_streamed_as_it_comes(server: ChatServer) -> None:
    server.answers = [saying("Hello", ", ", "world")]
    pieces = await ask(model_of(server))
    assert pieces == [TextPiece("Hello"), TextPiece(", "), TextPiece("world"), EndPiece("stop")]


async def test_the_request_holds_prompt_history_tools_and_key(server: ChatServer) -> None:
    server.answers = [saying("ok")]
    call = ToolCallBlock(call_id="c1", name="terminal", arguments={"command": "ls"})
    history = [
        user("list"),
        Message(message_id="a", role="assistant", text="", content=[call]),
        Message(
            message_id="t",
            role="tool",
            text="",
            content=[ToolResultBlock(call_id="c1", name="terminal", output="a.txt")],
        ),
        Message(message_id="b", role="assistant", text="one file", content=[TextBlock(text="one file")]),
        user("thanks \ud800", "u2"),
    ]
    tool = ToolSpec("terminal", "Run.", {"type": "object"})
    await ask(model_of(server, reasoning="low", temperature=0.5, max_tokens=99), *history, tools=[tool])
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["x-extra"] == "yes"
    assert asked.body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "list"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
        {"role": "assistant", "content": "one file"},
        {"role": "user", "content": "thanks \ufffd"},
    ]
    assert asked.body["tools"][0]["function"] == {
        "name": "terminal",
        "description": "Run.",
        "parameters": {"type": "object"},
    }
    assert asked.body["stream_options"] == {"include_usage": True}
    assert (asked.body["reasoning_effort"], asked.body["temperature"], asked.body["max_tokens"]) == ("low", 0.5, 99)


async def test_without_a_key_none_is_sent_whatever_the_environment_says(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ENV-02: another's key or proxy, left in the process environment, is never used."""
    for name in ("OPENAI_API_KEY", "HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    server.answers = [saying("ok")]
    assert text(await ask(model_of(server, key=None))) == "ok"
    assert "authorization" not in server.asked[0].headers


async def test_a_streamed_tool_call_is_put_together(server: ChatServer) -> None:
    def fragment(index: int, arguments: str, **more: object) -> dict[str, object]:
        function: dict[str, object] = {"arguments": arguments}
        if "name" in more:
            function["name"] = more.pop("name")
        return delta(tool_calls=[{"index": index, "function": function, **more}])

    server.answers = [
        sending(
            delta(content="Let me see. "),
            fragment(0, "", id="call_a", type="function", name="terminal"),
            fragment(0, '{"comm'),
            fragment(1, "", id="call_b", type="function", name="read_file"),
            fragment(0, 'and": "ls"}'),
            fragment(1, '{"path": "a"}'),
            delta("tool_calls"),
        )
    ]
    assert await ask(model_of(server)) == [
        TextPiece("Let me see. "),
        ToolNamePiece("terminal"),
        ToolNamePiece("read_file"),
        ToolCallPiece("call_a", "terminal", {"command": "ls"}),
        ToolCallPiece("call_b", "read_file", {"path": "a"}),
        EndPiece("tool_calls"),
    ]


@pytest.mark.parametrize(
    "calls",
    [
        [[{"id": "a", "function": {"name": "x", "arguments": "{}"}}, {"id": "b", "function": {"name": "y"}}]],
        [
            [{"index": 0, "id": "a", "function": {"name": "x", "arguments": {}}}],
            [{"index": 0, "id": "b", "function": {"name": "y"}}],
        ],
        [[{"index": 0, "id": "a", "function": {"name": "x"}}], [{"index": 1, "id": "b", "function": {"name": "y"}}]],
    ],
    ids=["no index", "one index for all", "by index"],
)
async def test_calls_are_told_apart_however_a_provider_numbers_them(server: ChatServer, calls: Any) -> None:
    server.answers = [sending(*(delta(tool_calls=each) for each in calls), delta("stop"))]
    assert await ask(model_of(server)) == [
        ToolNamePiece("x"),
        ToolNamePiece("y"),
        ToolCallPiece("a", "x", {}),
        ToolCallPiece("b", "y", {}),
        EndPiece("tool_calls"),
    ]


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", "nonsense", "NaN", '{"a": NaN}', "[" * 100_000])
async def test_arguments_that_are_no_object_are_told(server: ChatServer, arguments: str) -> None:
    call = {"index": 0, "id": "a", "function": {"name": "x", "arguments": arguments}}
    server.answers = [sending(delta(tool_calls=[call]), delta("tool_calls"))]
    named, piece, *_ = await ask(model_of(server))
    assert named == ToolNamePiece("x")
    assert isinstance(piece, ToolCallPiece)
    assert piece.arguments == {}
    assert "not a JSON object" in piece.problem


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_is_told_apart(server: ChatServer, field: str) -> None:
    server.answers = [sending(delta(**{field: "hm"}), delta(content="so", **{field: None}), delta("stop"))]
    assert await ask(model_of(server)) == [ReasoningPiece("hm"), TextPiece("so"), EndPiece("stop")]


async def test_usage_comes_with_empty_choices_at_the_end(server: ChatServer) -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}}
    server.answers = [sending(delta(content="a"), delta("stop"), {"choices": [], "usage": usage})]
    assert (await ask(model_of(server)))[1:] == [UsagePiece(12, 3, 8), EndPiece("stop")]


@pytest.mark.parametrize(
    ("reason", "told"), [("stop", "stop"), ("length", "length"), ("content_filter", "filtered"), ("eos", "stop")]
)
async def test_the_reason_of_the_end_is_kept(server: ChatServer, reason: str, told: str) -> None:
    server.answers = [sending(delta(content="a"), delta(reason))]
    assert (await ask(model_of(server)))[-1] == EndPiece(told)  # type: ignore[arg-type]


async def test_a_connection_is_kept_between_the_steps_of_a_turn(server: ChatServer) -> None:
    server.answers = [saying("one"), saying("two")]
    model = model_of(server)
    for word in ("one", "two"):
        async with model.stream(ModelRequest("", [user("hi")])) as pieces:
            assert text([piece async for piece in pieces]) == word
    assert server.connections == 1
    await model.aclose()
    await model.aclose()
    with trio.fail_after(10):
        await server.idle.wait()


async def test_characters_are_whole_wherever_a_stream_is_cut(server: ChatServer) -> None:
    line = b"data: " + json.dumps(delta(content="é😀 \u2028 x"), ensure_ascii=False).encode() + b"\r\n\r\n"
    split = [line[at : at + 1] for at in range(len(line))]
    pair = [b'data: {"choices":[{"delta":{"content":"' + half + b'"}}]}\n\n' for half in (rb"\ud83d", rb"\ude00")]
    server.answers = [sending(*split, *pair, b": a comment\n\n", b"event: x\ndata: \n\n", delta("stop"))]
    assert text(await ask(model_of(server))) == "é😀 \u2028 x😀"


async def test_a_whole_answer_instead_of_a_stream_is_understood(server: ChatServer) -> None:
    message = {"role": "assistant", "content": [{"type": "text", "text": "whole"}]}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5}}
    server.answers = [refusing(200, body)]
    assert await ask(model_of(server)) == [TextPiece("whole"), UsagePiece(5, 0), EndPiece("stop")]


async def test_a_turn_runs_a_streamed_call_and_goes_on(server: ChatServer) -> None:
    call = {
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": "terminal", "arguments": '{"command":'},
    }
    rest = {"index": 0, "function": {"arguments": '"ls"}'}}
    usage = {"choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 9}}
    server.answers = [
        sending(delta(tool_calls=[call]), delta(tool_calls=[rest]), delta("tool_calls"), usage),
        saying("There is one file."),
    ]
    narrator, hands = NarratorTwin(), HandsTwin(commands={"ls": finished("a.txt")})
    end = await run_turn(
        request("what is here?"),
        narrator=narrator,
        hands=hands,
        asker=AskerTwin(),
        approvals=SessionApprovals(),
        model=model_of(server),
    )
    assert narrator.said.endswith("There is one file.")
    assert server.asked[1].body["messages"][-1] == {"role": "tool", "tool_call_id": "call_1", "content": "a.txt"}
    assert (end.steps, end.usage.input_tokens, end.usage.model) == (2, 50, "tiny-1")
    with trio.fail_after(10):
        await server.idle.wait()
