"""Models against a server that misbehaves, in each protocol: refusals, retries, cuts, silence, early leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio

from hermes_ws.agent.models import endpoint as bounds
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
from hermes_ws.contract.errors import ModelRateLimited, ModelUnauthorised
from tests.agent.chat_model import KEY, ask, ask_until_failure, refusing, text
from tests.agent.chat_server import ChatServer, Wire
from tests.agent.protocols import Protocol
from tests.agent.twins import user

# --- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_said_with_where_it_is_set_and_never_itself(
    server: ChatServer, protocol: Protocol, status: int
) -> None:
    server.answers = [refusing(status, {"error": {"message": f"Incorrect API key provided: {KEY}."}})]
    came, failed = await ask_until_failure(protocol.model(server))
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
async def test_a_refusal_is_said_at_once(
    server: ChatServer, protocol: Protocol, status: int, body: Any, said: str, hint: str
) -> None:
    server.answers = [refusing(status, body)]
    came, failed = await ask_until_failure(protocol.model(server))
    assert came == []
    assert said in failed.message
    assert hint in failed.hint
    assert failed.data["status"] == status
    assert len(server.asked) == 1


async def test_a_page_of_error_is_cut(server: ChatServer, protocol: Protocol) -> None:
    server.answers = [refusing(400, "x" * 1_000_000)]
    _, failed = await ask_until_failure(protocol.model(server))
    assert len(failed.message) < 1000


# --- trying again --------------------------------------------------------------------------------------------------


async def test_what_may_pass_is_tried_again_and_told(server: ChatServer, protocol: Protocol) -> None:
    server.answers = [
        refusing(500),
        refusing(503, "busy"),
        refusing(429, "", retry_after="0"),
        protocol.saying("there"),
    ]
    pieces = await ask(protocol.model(server))
    assert [type(piece) for piece in pieces[:3]] == [RetryPiece] * 3
    assert text(pieces) == "there"


async def test_it_gives_up_after_its_retries(server: ChatServer, protocol: Protocol) -> None:
    server.answers = [refusing(500, {"error": {"message": "broken"}})] * 9
    came, failed = await ask_until_failure(protocol.model(server))
    assert len(server.asked) == 1 + bounds.RETRIES
    assert len(came) == bounds.RETRIES
    assert "broken" in failed.message
    assert not isinstance(failed, ModelRateLimited)


async def test_asking_to_slow_down_again_and_again_is_a_rate_limit(server: ChatServer, protocol: Protocol) -> None:
    server.answers = [refusing(429, retry_after="0")] * 9
    _, failed = await ask_until_failure(protocol.model(server))
    assert isinstance(failed, ModelRateLimited)
    assert len(server.asked) == 1 + bounds.RETRIES


async def test_a_longer_wait_than_there_is_time_for_is_said_at_once(server: ChatServer, protocol: Protocol) -> None:
    server.answers = [refusing(429, retry_after="3600")]
    came, failed = await ask_until_failure(protocol.model(server))
    assert came == []
    assert isinstance(failed, ModelRateLimited)
    assert failed.data["retry_after_s"] == 3600


async def test_an_empty_account_is_not_asked_again(server: ChatServer, protocol: Protocol) -> None:
    server.answers = [refusing(429, {"error": {"message": "quota", "code": "insufficient_quota"}})]
    _, failed = await ask_until_failure(protocol.model(server))
    assert isinstance(failed, ModelRateLimited)
    assert "no quota" in failed.hint


async def test_an_endpoint_that_is_not_there_is_said(server: ChatServer, protocol: Protocol) -> None:
    with trio.socket.socket() as free:
        await free.bind(("127.0.0.1", 0))
        server.port = free.getsockname()[1]
        came, failed = await ask_until_failure(protocol.model(server))
    assert len(came) == bounds.RETRIES
    assert "cannot be reached" in failed.message
    assert "base_url" in failed.hint


async def test_an_endpoint_that_does_not_speak_tls_is_said(server: ChatServer, protocol: Protocol) -> None:
    reach = Endpoint(f"https://127.0.0.1:{server.port}/v1", "127.0.0.1", KEY, {}, "KEY in .env")
    _, failed = await ask_until_failure(HttpModel("m", reach, protocol.dialect(), patience=Patience(), redact=str))
    assert "cannot be reached" in failed.message
    assert server.asked == [], "the key is not sent in the clear"


async def test_a_connection_lost_before_the_first_piece_is_tried_again(server: ChatServer, protocol: Protocol) -> None:
    async def cut_at_once(wire: Wire) -> None:
        await wire.cut()

    answers = [cut_at_once, protocol.sending(then="cut"), protocol.sending(), protocol.saying("there")]
    server.answers = [*answers]
    pieces = await ask(protocol.model(server))
    assert text(pieces) == "there"
    assert len(server.asked) == 4


@pytest.mark.parametrize("hint", [None, "0", "Thu, 01 Jan 1970 00:00:00 GMT", "soon", "-5", "NaN"])
async def test_429_is_waited_out_with_and_without_a_hint(
    server: ChatServer, protocol: Protocol, hint: str | None
) -> None:
    headers = {} if hint is None else {"retry_after": hint}
    server.answers = [refusing(429, {"error": {"message": "slow down"}}, **headers), protocol.saying("there")]
    assert text(await ask(protocol.model(server))) == "there"


# --- failures after the first piece --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "then", "said"),
    [
        (lambda _: (), "cut", "broke the connection off"),
        (lambda _: (), "end", "broke off"),
        (lambda protocol: (protocol.word("more")[:-20],), "end", "broke off"),
        (lambda protocol: (protocol.trouble(f"overloaded {KEY}"),), "end", "overloaded «secret:KEY»"),
        (lambda _: [b"data: nonsense\n\n"] * 30, "end", "no {what}"),
        (lambda _: [b"data: []\n\n"] * 30, "end", "no {what}"),
        (lambda _: (), "hang", "said nothing for 0.2 seconds"),
    ],
    ids=["cut", "no end", "cut in a chunk", "error in the stream", "nonsense", "lists", "hangs"],
)
async def test_what_had_come_stands_and_the_failure_is_said(
    server: ChatServer, protocol: Protocol, after: Callable[[Protocol], Sequence[bytes]], then: str, said: str
) -> None:
    server.answers = [protocol.sending(protocol.word("half"), *after(protocol), then=then)]
    came, failed = await ask_until_failure(protocol.model(server, patience=Patience(10, 10, 0.2)))
    assert text(came) == "half"
    assert said.format(what=protocol.what) in failed.message
    assert len(server.asked) == 1, "nothing is repeated after the first piece"


async def test_some_nonsense_is_passed_over(server: ChatServer, protocol: Protocol) -> None:
    pieces = (protocol.word("a"), *protocol.odd, protocol.word("b"), protocol.stop, protocol.goodbye)
    server.answers = [protocol.sending(*pieces)]
    assert text(await ask(protocol.model(server))) == "ab"


async def test_an_answer_without_words_ends(server: ChatServer, protocol: Protocol) -> None:
    server.answers = [protocol.sending(protocol.nothing, protocol.stop, protocol.goodbye)]
    assert await ask(protocol.model(server)) == [EndPiece("stop")]


async def test_an_end_without_the_last_mark_is_an_end(server: ChatServer, protocol: Protocol) -> None:
    server.answers = [protocol.sending(protocol.word("all"), protocol.stop, then="cut")]
    assert await ask(protocol.model(server)) == [TextPiece("all"), EndPiece("stop")]


async def test_what_follows_the_end_is_not_read(server: ChatServer, protocol: Protocol) -> None:
    pieces = (protocol.word("all"), protocol.stop, protocol.goodbye, protocol.word("more"), protocol.trouble("late"))
    server.answers = [protocol.sending(*pieces)]
    assert await ask(protocol.model(server)) == [TextPiece("all"), EndPiece("stop")]


async def test_an_answer_that_is_not_streamed_is_read(server: ChatServer, protocol: Protocol) -> None:
    server.answers = [refusing(200, dict(protocol.whole))]
    assert text(await ask(protocol.model(server))) == "hi"


# --- leaving early -------------------------------------------------------------------------------------------------


async def test_an_interrupt_ends_the_request_and_closes_the_connection(server: ChatServer, protocol: Protocol) -> None:
    server.answers = [protocol.sending(protocol.word("half"), then="hang")]
    model = protocol.model(server)
    with trio.CancelScope() as scope:
        async with model.stream(ModelRequest("", [user("hi")])) as pieces:
            async for piece in pieces:
                assert piece == TextPiece("half")
                scope.cancel()
    assert scope.cancelled_caught
    with trio.fail_after(10):
        await server.idle.wait()
    await model.aclose()


async def test_leaving_in_the_middle_leaves_nothing_open(server: ChatServer, protocol: Protocol) -> None:
    async def talk(wire: Wire) -> None:
        await wire.begin()
        await wire.raw(protocol.opening)
        while True:
            await wire.raw(protocol.word("more "))

    server.answers = [talk]
    model = protocol.model(server)
    with pytest.raises(ZeroDivisionError):
        async with model.stream(ModelRequest("", [user("hi")])) as pieces:
            async for _ in pieces:
                raise ZeroDivisionError
    with trio.fail_after(10):
        await server.idle.wait()
    await model.aclose()


# --- falling back --------------------------------------------------------------------------------------------------


async def test_the_next_model_answers_when_one_fails_before_it_has_said_anything(
    server: ChatServer, protocol: Protocol
) -> None:
    server.answers = [refusing(401), protocol.saying("second"), protocol.saying("again")]
    model = FallbackModel([protocol.model(server), protocol.model(server)])
    pieces = await first_reply(model)
    assert isinstance(pieces[0], RetryPiece)
    assert "Falling back to tiny-1." in pieces[0].reason
    assert text(pieces) == "second"
    assert text(await first_reply(model)) == "again", "a turn that fell back stays there"
    await model.aclose()


async def first_reply(model: Model) -> list[Piece]:
    async with model.stream(ModelRequest("", [user("hi")])) as pieces:
        return [piece async for piece in pieces]


async def test_nothing_falls_back_after_the_first_piece(server: ChatServer, protocol: Protocol) -> None:
    server.answers = [protocol.sending(protocol.word("half"), then="cut")]
    came, failed = await ask_until_failure(FallbackModel([protocol.model(server), protocol.model(server)]))
    assert text(came) == "half"
    assert "broke the connection off" in failed.message
