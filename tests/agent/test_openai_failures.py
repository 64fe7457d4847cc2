"""The OpenAI provider against a server that misbehaves: refusals, retries, cuts, floods, silence, leaving early."""

from __future__ import annotations

import json
from typing import Any

import h11
import pytest
import trio

from hermes_ws.agent.models import endpoint as bounds
from hermes_ws.agent.models import http_model
from hermes_ws.agent.models.endpoint import Endpoint, Patience
from hermes_ws.agent.models.fallback import FallbackModel
from hermes_ws.agent.models.http_model import HttpModel
from hermes_ws.agent.models.model import (
    EndPiece,
    Model,
    ModelRequest,
    Piece,
    RetryPiece,
    TextPiece,
)
from hermes_ws.agent.models.openai import openai
from hermes_ws.contract.errors import ModelRateLimited, ModelUnauthorised
from tests.agent.chat_model import KEY, ask, ask_until_failure, delta, hang, model_of, refusing, saying, sending, text
from tests.agent.chat_server import Answer, ChatServer, Wire
from tests.agent.twins import user

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
    _, failed = await ask_until_failure(HttpModel("m", reach, openai(), patience=Patience(), redact=str))
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
    monkeypatch.setattr(http_model, "RETRIES", 1)

    async def signs_of_life(wire: Wire) -> None:
        await wire.begin()
        while True:
            await wire.raw(b": still here\n\n")
            await trio.sleep(0.01)

    server.answers = [hang, signs_of_life]
    came, failed = await ask_until_failure(model_of(server, patience=Patience(10, 0.3, 10)))
    assert [type(piece) for piece in came] == [RetryPiece]
    assert "said nothing for 0.3 seconds" in failed.message


async def test_thinking_before_the_first_piece_is_no_idleness(server: ChatServer) -> None:
    async def think(wire: Wire) -> None:
        await wire.begin()
        await trio.sleep(0.1)
        answer = [delta(content="at last"), delta("stop")]
        await wire.raw(b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in answer))
        await wire.end()

    server.answers = [think]
    assert text(await ask(model_of(server, patience=Patience(10, 10, 0.01)))) == "at last"
    assert len(server.asked) == 1


async def test_a_flood_without_line_ends_is_ended(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_model, "LINE_BYTES", 100_000)

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
    monkeypatch.setattr(http_model, "RESPONSE_BYTES", 100_000)

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


async def first_reply(model: Model) -> list[Piece]:
    async with model.stream(ModelRequest("", [user("hi")])) as pieces:
        return [piece async for piece in pieces]


async def test_nothing_falls_back_after_the_first_piece(server: ChatServer) -> None:
    server.answers = [cut_in_the_middle]
    came, failed = await ask_until_failure(FallbackModel([model_of(server), model_of(server)]))
    assert text(came) == "half"
    assert "broke the connection off" in failed.message
