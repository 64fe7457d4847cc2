"""The OpenAI provider against a real server on loopback: what it sends, what it understands, how it fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import h11
import pytest
import trio

from hermes_ws.agent.approvals import SessionApprovals
from hermes_ws.agent.models import endpoint as bounds
from hermes_ws.agent.models import openai
from hermes_ws.agent.models.endpoint import Endpoint, Patience
from hermes_ws.agent.models.fallback import FallbackModel
from hermes_ws.agent.models.model import (
    EndPiece,
    Model,
    ModelRequest,
    Piece,
    ReasoningPiece,
    RetryPiece,
    TextPiece,
    ToolCallPiece,
    ToolSpec,
    UsagePiece,
)
from hermes_ws.agent.models.openai import OpenAIModel
from hermes_ws.agent.turn import run_turn
from hermes_ws.contract.content import Message, TextBlock, ToolCallBlock, ToolResultBlock
from hermes_ws.contract.errors import ModelFailed, ModelRateLimited, ModelUnauthorised
from hermes_ws.scope.secrets import Secrets
from tests.agent.chat_server import Answer, ChatServer, Wire
from tests.agent.twins import AskerTwin, HandsTwin, NarratorTwin, finished, request, user

KEY = "sk-test_4711-abcdefgh"


@pytest.fixture
async def server(nursery: trio.Nursery) -> ChatServer:
    running = ChatServer()
    serve = partial(trio.serve_tcp, running.handle, 0, host="127.0.0.1")
    listeners = await nursery.start(serve)
    running.port = listeners[0].socket.getsockname()[1]
    return running


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "BACK_OFF_S", 0.001)


def model_of(server: ChatServer, *, key: str | None = KEY, **more: Any) -> OpenAIModel:
    reach = Endpoint(server.base_url, "127.0.0.1", key, {"X-Extra": "yes"}, "KEY in .env (providers.mine.api_key)")
    values: dict[str, Any] = {"patience": Patience(), "redact": Secrets({"KEY": KEY}).redact, **more}
    return OpenAIModel("tiny-1", reach, **values)


async def ask(model: Model, *messages: Message, tools: Sequence[ToolSpec] = ()) -> list[Piece]:
    try:
        async with model.stream(ModelRequest("Be brief.", list(messages) or [user("hi")], tools)) as pieces:
            return [piece async for piece in pieces]
    finally:
        await model.aclose()


async def ask_until_failure(model: Model) -> tuple[list[Piece], ModelFailed]:
    """The pieces that came, and what ended them."""
    came: list[Piece] = []
    try:
        async with model.stream(ModelRequest("", [user("hi")])) as pieces:
            async for piece in pieces:
                came.append(piece)  # noqa: PERF401 - what came before the failure is what is looked at
    except ModelFailed as failed:
        return came, failed
    finally:
        await model.aclose()
    raise AssertionError("it did not fail")


def text(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


def saying(*words: str) -> Answer:
    async def answer(wire: Wire) -> None:
        await wire.begin()
        for word in words:
            await wire.delta(content=word)
        await wire.delta("stop")
        await wire.end()

    return answer


def sending(*events: object, end: bool = True) -> Answer:
    """Chunks as they are given: values as JSON, bytes as they are."""

    async def answer(wire: Wire) -> None:
        await wire.begin()
        for event in events:
            await (wire.raw(event) if isinstance(event, bytes) else wire.chunk(event))
        if end:
            await wire.end()
        else:
            await wire.send(h11.EndOfMessage())

    return answer


def refusing(status: int, body: object = "", **headers: str) -> Answer:
    async def answer(wire: Wire) -> None:
        await wire.refuse(status, body, **headers)

    return answer


async def hang(wire: Wire) -> None:
    await wire.gone()


def delta(finish_reason: str | None = None, **fields: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]}


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
        ToolCallPiece("a", "x", {}),
        ToolCallPiece("b", "y", {}),
        EndPiece("tool_calls"),
    ]


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", "nonsense", "NaN", '{"a": NaN}', "[" * 100_000])
async def test_arguments_that_are_no_object_are_told(server: ChatServer, arguments: str) -> None:
    call = {"index": 0, "id": "a", "function": {"name": "x", "arguments": arguments}}
    server.answers = [sending(delta(tool_calls=[call]), delta("tool_calls"))]
    piece = (await ask(model_of(server)))[0]
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


# --- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_said_with_where_it_is_set_and_never_itself(server: ChatServer, status: int) -> None:
    server.answers = [refusing(status, {"error": {"message": f"Incorrect API key provided: {KEY}."}})]
    came, failed = await ask_until_failure(model_of(server))
    assert came == []
    assert isinstance(failed, ModelUnauthorised)
    assert "KEY in .env (providers.mine.api_key)" in failed.hint
    assert "Incorrect API key provided: «secret:KEY»." in failed.message
    assert KEY not in repr((failed.message, failed.hint, failed.data))


@pytest.mark.parametrize(
    ("status", "body", "said", "hint"),
    [
        (404, {"error": {"message": "no such model"}}, "no such model", "base_url"),
        (404, "<html><body>not here</body></html>", "status 404.", "base_url"),
        (400, {"detail": "context too long"}, "context too long", "limits"),
        (400, [{"error": {"message": "in a list"}}], "in a list", "limits"),
        (422, {"error": "plain"}, "plain", "limits"),
        (402, "pay", "pay", "paid"),
        (301, "", "status 301", "redirect"),
    ],
)
async def test_a_refusal_is_said_at_once(server: ChatServer, status: int, body: Any, said: str, hint: str) -> None:
    server.answers = [refusing(status, body)]
    came, failed = await ask_until_failure(model_of(server))
    assert came == []
    assert said in failed.message
    assert hint in failed.hint
    assert failed.data["status"] == status
    assert len(server.asked) == 1


async def test_a_page_of_error_is_cut(server: ChatServer) -> None:
    server.answers = [refusing(400, "x" * 1_000_000)]
    _, failed = await ask_until_failure(model_of(server))
    assert len(failed.message) < 1000


# --- trying again --------------------------------------------------------------------------------------------------


async def test_what_may_pass_is_tried_again_and_told(server: ChatServer) -> None:
    server.answers = [refusing(500), refusing(503, "busy"), refusing(429, "", retry_after="0"), saying("there")]
    pieces = await ask(model_of(server))
    assert [type(piece) for piece in pieces[:3]] == [RetryPiece] * 3
    assert text(pieces) == "there"


async def test_it_gives_up_after_its_retries(server: ChatServer) -> None:
    server.answers = [refusing(500, {"error": {"message": "broken"}})] * 9
    came, failed = await ask_until_failure(model_of(server))
    assert len(server.asked) == 1 + bounds.RETRIES
    assert len(came) == bounds.RETRIES
    assert "broken" in failed.message
    assert not isinstance(failed, ModelRateLimited)


async def test_asking_to_slow_down_again_and_again_is_a_rate_limit(server: ChatServer) -> None:
    server.answers = [refusing(429, retry_after="0")] * 9
    _, failed = await ask_until_failure(model_of(server))
    assert isinstance(failed, ModelRateLimited)
    assert len(server.asked) == 1 + bounds.RETRIES


async def test_a_longer_wait_than_there_is_time_for_is_said_at_once(server: ChatServer) -> None:
    server.answers = [refusing(429, retry_after="3600")]
    came, failed = await ask_until_failure(model_of(server))
    assert came == []
    assert isinstance(failed, ModelRateLimited)
    assert failed.data["retry_after_s"] == 3600


async def test_an_empty_account_is_not_asked_again(server: ChatServer) -> None:
    server.answers = [refusing(429, {"error": {"message": "quota", "code": "insufficient_quota"}})]
    _, failed = await ask_until_failure(model_of(server))
    assert isinstance(failed, ModelRateLimited)
    assert "no quota" in failed.hint


async def test_an_endpoint_that_is_not_there_is_said(server: ChatServer) -> None:
    with trio.socket.socket() as free:
        await free.bind(("127.0.0.1", 0))
        server.port = free.getsockname()[1]
        came, failed = await ask_until_failure(model_of(server))
    assert len(came) == bounds.RETRIES
    assert "cannot be reached" in failed.message
    assert "base_url" in failed.hint


async def test_an_endpoint_that_does_not_speak_tls_is_said(server: ChatServer) -> None:
    reach = Endpoint(f"https://127.0.0.1:{server.port}/v1", "127.0.0.1", KEY, {}, "KEY in .env")
    _, failed = await ask_until_failure(OpenAIModel("m", reach, patience=Patience(), redact=str))
    assert "cannot be reached" in failed.message
    assert server.asked == [], "the key is not sent in the clear"


async def test_a_connection_lost_before_the_first_piece_is_tried_again(server: ChatServer) -> None:
    async def cut_at_once(wire: Wire) -> None:
        await wire.cut()

    async def cut_after_headers(wire: Wire) -> None:
        await wire.begin()
        await wire.delta(role="assistant", content="")
        await wire.cut()

    server.answers = [cut_at_once, cut_after_headers, sending(end=False), saying("there")]
    pieces = await ask(model_of(server))
    assert text(pieces) == "there"
    assert len(server.asked) == 4


# --- failures after the first piece --------------------------------------------------------------------------------


async def cut_in_the_middle(wire: Wire) -> None:
    await wire.begin()
    await wire.delta(content="half")
    await wire.cut()


async def hang_in_the_middle(wire: Wire) -> None:
    await wire.begin()
    await wire.delta(content="half")
    await wire.gone()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (cut_in_the_middle, "broke the connection off"),
        (sending(delta(content="half"), end=False), "broke off"),
        (sending(delta(content="half"), b'data: {"choices": [{"del', end=False), "broke off"),
        (sending(delta(content="half"), {"error": {"message": f"overloaded {KEY}"}}), "overloaded «secret:KEY»"),
        (sending(delta(content="half"), *[b"data: nonsense\n\n"] * 30), "no chat completion"),
        (sending(delta(content="half"), *[b"data: []\n\n"] * 30), "no chat completion"),
        (hang_in_the_middle, "said nothing for 0.2 seconds"),
    ],
    ids=["cut", "no end", "cut in a chunk", "error in the stream", "nonsense", "lists", "hangs"],
)
async def test_what_had_come_stands_and_the_failure_is_said(server: ChatServer, answer: Answer, said: str) -> None:
    server.answers = [answer]
    came, failed = await ask_until_failure(model_of(server, patience=Patience(10, 10, 0.2)))
    assert text(came) == "half"
    assert said in failed.message
    assert len(server.asked) == 1, "nothing is repeated after the first piece"


async def test_some_nonsense_is_passed_over(server: ChatServer) -> None:
    odd = [
        b"data: nonsense\n\n",
        b"data: [1]\n\n",
        b"data: 5\n\n",
        {"choices": [None, {"index": 1}]},
        {"choices": [{}]},
    ]
    server.answers = [sending(delta(content="a"), *odd, {"choices": None}, delta(content="b"), delta("stop"))]
    assert text(await ask(model_of(server))) == "ab"


async def test_an_end_without_the_last_mark_is_an_end(server: ChatServer) -> None:
    async def cut_after_the_reason(wire: Wire) -> None:
        await wire.begin()
        await wire.delta(content="all")
        await wire.delta("stop")
        await wire.cut()

    server.answers = [cut_after_the_reason]
    assert await ask(model_of(server)) == [TextPiece("all"), EndPiece("stop")]


async def test_silence_before_the_first_piece_is_bounded(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "RETRIES", 1)

    async def signs_of_life(wire: Wire) -> None:
        await wire.begin()
        while True:
            await wire.raw(b": still here\n\n")
            await trio.sleep(0.01)

    server.answers = [hang, signs_of_life]
    came, failed = await ask_until_failure(model_of(server, patience=Patience(10, 0.3, 10)))
    assert [type(piece) for piece in came] == [RetryPiece]
    assert "said nothing for 0.3 seconds" in failed.message


async def test_a_flood_without_line_ends_is_ended(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "LINE_BYTES", 100_000)

    async def flood(wire: Wire) -> None:
        await wire.begin()
        await wire.delta(content="half")
        while True:
            await wire.raw(b"data: " + b"x" * 65_536)

    server.answers = [flood]
    came, failed = await ask_until_failure(model_of(server))
    assert text(came) == "half"
    assert "more than an answer can be" in failed.message


async def test_a_flood_of_bytes_is_ended(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "RESPONSE_BYTES", 100_000)

    async def flood(wire: Wire) -> None:
        await wire.begin()
        while True:
            await wire.delta(content="x" * 1000)

    server.answers = [flood]
    came, failed = await ask_until_failure(model_of(server))
    assert 0 < len(text(came)) < 110_000
    assert "more than an answer can be" in failed.message


async def test_what_is_no_completion_at_all_is_said(server: ChatServer) -> None:
    async def page(wire: Wire) -> None:
        await wire.begin("text/html")
        await wire.raw(b"<html>welcome</html>")
        await wire.send(h11.EndOfMessage())

    server.answers = [page]
    _, failed = await ask_until_failure(model_of(server))
    assert "no chat completion" in failed.message
    assert "base_url" in failed.hint


async def test_a_compressed_answer_is_refused(server: ChatServer) -> None:
    server.answers = [refusing(200, "x", content_encoding="gzip")]
    _, failed = await ask_until_failure(model_of(server))
    assert "compresses" in failed.message
    assert server.asked[0].headers["accept-encoding"] == "identity"


async def test_a_key_that_cannot_be_sent_is_said(server: ChatServer) -> None:
    for key in ("clé-ü", "two\nlines"):
        _, failed = await ask_until_failure(model_of(server, key=key))
        assert isinstance(failed, ModelUnauthorised)
        assert key not in failed.message + failed.hint
    assert server.asked == []


# --- leaving early -------------------------------------------------------------------------------------------------


async def test_an_interrupt_ends_the_request_and_closes_the_connection(server: ChatServer) -> None:
    server.answers = [hang_in_the_middle]
    model = model_of(server)
    with trio.CancelScope() as scope:
        async with model.stream(ModelRequest("", [user("hi")])) as pieces:
            async for piece in pieces:
                assert piece == TextPiece("half")
                scope.cancel()
    assert scope.cancelled_caught
    with trio.fail_after(10):
        await server.idle.wait()
    await model.aclose()


async def test_leaving_in_the_middle_leaves_nothing_open(server: ChatServer) -> None:
    async def talk(wire: Wire) -> None:
        await wire.begin()
        while True:
            await wire.delta(content="more ")

    server.answers = [talk]
    model = model_of(server)
    with pytest.raises(ZeroDivisionError):
        async with model.stream(ModelRequest("", [user("hi")])) as pieces:
            async for _ in pieces:
                raise ZeroDivisionError
    with trio.fail_after(10):
        await server.idle.wait()
    await model.aclose()


# --- falling back --------------------------------------------------------------------------------------------------


async def test_the_next_model_answers_when_one_fails_before_it_has_said_anything(server: ChatServer) -> None:
    server.answers = [refusing(401), saying("second"), saying("again")]
    model = FallbackModel([model_of(server), model_of(server)])
    pieces = await first_reply(model)
    assert isinstance(pieces[0], RetryPiece)
    assert "Falling back to tiny-1." in pieces[0].reason
    assert text(pieces) == "second"
    assert text(await first_reply(model)) == "again", "a turn that fell back stays there"
    await model.aclose()


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


async def first_reply(model: Model) -> list[Piece]:
    async with model.stream(ModelRequest("", [user("hi")])) as pieces:
        return [piece async for piece in pieces]


async def test_nothing_falls_back_after_the_first_piece(server: ChatServer) -> None:
    server.answers = [cut_in_the_middle]
    came, failed = await ask_until_failure(FallbackModel([model_of(server), model_of(server)]))
    assert text(came) == "half"
    assert "broke the connection off" in failed.message
