"""Models against what is too slow, too much, or no text, in each protocol: all of it is bounded, and read as it is."""

from __future__ import annotations

import h11
import pytest
import trio

from hermes_ws.agent.models import http_model
from hermes_ws.agent.models.chat_stream import ARGUMENT_CHARACTERS, CALLS
from hermes_ws.agent.models.endpoint import Patience
from hermes_ws.agent.models.model import (
    RetryPiece,
    ToolCallPiece,
)
from hermes_ws.contract.errors import ModelUnauthorised
from tests.agent.chat_model import ask, ask_until_failure, hang, refusing, text
from tests.agent.chat_server import ChatServer, Wire
from tests.agent.protocols import Protocol


async def test_a_drip_of_single_bytes_is_read_as_what_it_spells(server: ChatServer, protocol: Protocol) -> None:
    async def drip(wire: Wire) -> None:
        await wire.begin()
        for byte in protocol.opening + protocol.word("smålt ✓ 🙂") + protocol.stop + protocol.goodbye:
            await wire.raw(bytes([byte]))
        await wire.send(h11.EndOfMessage())

    server.answers = [drip]
    assert text(await ask(protocol.model(server))) == "smålt ✓ 🙂"


async def test_a_drip_that_is_slower_than_silence_may_be_is_given_up(server: ChatServer, protocol: Protocol) -> None:
    async def drip(wire: Wire) -> None:
        await wire.begin()
        await wire.raw(protocol.opening + protocol.word("half"))
        for byte in protocol.word("never"):
            await trio.sleep(1)
            await wire.raw(bytes([byte]))

    server.answers = [drip]
    came, failed = await ask_until_failure(protocol.model(server, patience=Patience(10, 10, 0.2)))
    assert text(came) == "half"
    assert "said nothing for 0.2 seconds" in failed.message


@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
async def test_other_line_ends_are_line_ends(server: ChatServer, protocol: Protocol, end: bytes) -> None:
    async def answer(wire: Wire) -> None:
        await wire.begin()
        whole = protocol.opening + protocol.word("one") + protocol.word("two") + protocol.stop + protocol.goodbye
        await wire.raw(whole.replace(b"\n", end))
        await wire.send(h11.EndOfMessage())

    server.answers = [answer]
    assert text(await ask(protocol.model(server))) == "onetwo"


@pytest.mark.parametrize("charset", ["", "; charset=utf-8", "; charset=iso-8859-1", "; charset=nonsense"])
async def test_an_answer_is_utf_8_whatever_its_header_says(
    server: ChatServer, protocol: Protocol, charset: str
) -> None:
    async def answer(wire: Wire) -> None:
        await wire.begin(f"text/event-stream{charset}")
        raw = protocol.word("MARK").replace(b"MARK", "grün ✓".encode())
        await wire.raw(protocol.opening + raw + protocol.stop + protocol.goodbye)
        await wire.send(h11.EndOfMessage())

    server.answers = [answer]
    assert text(await ask(protocol.model(server))) == "grün ✓"


async def test_bytes_that_are_no_utf_8_are_replaced_and_the_rest_is_read(
    server: ChatServer, protocol: Protocol
) -> None:
    broken = protocol.word("MARK").replace(b"MARK", b"gr\xfcn \xe2\x9c")
    server.answers = [protocol.sending(broken, protocol.word(" rest"), protocol.stop, protocol.goodbye)]
    said = text(await ask(protocol.model(server)))
    assert said.startswith("gr\ufffdn ")
    assert said.endswith(" rest")


async def test_half_a_surrogate_is_no_character(server: ChatServer, protocol: Protocol) -> None:
    broken = protocol.word("MARK").replace(b"MARK", b"a \\ud83d b")
    whole = protocol.word("MARK").replace(b"MARK", b"\\ud83d\\ude42")
    server.answers = [protocol.sending(broken, whole, protocol.stop, protocol.goodbye)]
    said = text(await ask(protocol.model(server)))
    said.encode()
    assert said.startswith("a ")
    assert said.endswith(" b🙂")


async def test_a_huge_piece_is_one_piece(server: ChatServer, protocol: Protocol) -> None:
    huge = "x" * 1_000_000
    server.answers = [protocol.sending(protocol.word(huge), protocol.stop, protocol.goodbye)]
    assert text(await ask(protocol.model(server))) == huge


@pytest.mark.parametrize(
    ("fragments", "problem"),
    [
        (['{"at": ', '"here"', "}"], None),
        ([], None),
        (['{"at": '], "not a JSON object"),
        (["[1]"], "not a JSON object"),
        (['"text"'], "not a JSON object"),
        (['{"a": 1}{"b": 2}'], "not a JSON object"),
        (["{" * 5000], "not a JSON object"),
    ],
)
async def test_arguments_of_calls_are_put_together_or_told_to_be_no_json(
    server: ChatServer, protocol: Protocol, fragments: list[str], problem: str | None
) -> None:
    calls = (protocol.call(0, "c1", "look", fragments), protocol.call(1, "c2", "look", ['{"at": 2}']))
    server.answers = [protocol.sending(*calls, protocol.stop, protocol.goodbye)]
    first, second = (each for each in await ask(protocol.model(server)) if isinstance(each, ToolCallPiece))
    assert second.arguments == {"at": 2}
    if problem is None:
        assert (first.arguments, first.problem) == ({"at": "here"} if fragments else {}, "")
    else:
        assert (first.arguments, problem in first.problem) == ({}, True)


async def test_calls_without_number_are_ended(server: ChatServer, protocol: Protocol) -> None:
    calls = [protocol.call(number, f"c{number}", "look", ["{}"]) for number in range(CALLS + 1)]
    server.answers = [protocol.sending(protocol.word("half"), *calls, protocol.stop, protocol.goodbye)]
    came, failed = await ask_until_failure(protocol.model(server))
    assert text(came) == "half"
    assert f"more than {CALLS} calls" in failed.message


async def test_arguments_without_end_are_ended(server: ChatServer, protocol: Protocol) -> None:
    pieces = ["x" * 100_000] * (ARGUMENT_CHARACTERS // 100_000 + 1)
    server.answers = [protocol.sending(protocol.call(0, "c1", "look", pieces), protocol.stop, protocol.goodbye)]
    _, failed = await ask_until_failure(protocol.model(server))
    assert "characters" in failed.message


async def test_silence_before_the_first_piece_is_bounded(
    server: ChatServer, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_model, "RETRIES", 1)

    async def signs_of_life(wire: Wire) -> None:
        await wire.begin()
        await wire.raw(protocol.opening)
        while True:
            await wire.raw(b": still here\n\n" + protocol.nothing)
            await trio.sleep(0.01)

    server.answers = [hang, signs_of_life]
    came, failed = await ask_until_failure(protocol.model(server, patience=Patience(10, 0.3, 10)))
    assert [type(piece) for piece in came] == [RetryPiece]
    assert "said nothing for 0.3 seconds" in failed.message


async def test_thinking_before_the_first_piece_is_no_idleness(server: ChatServer, protocol: Protocol) -> None:
    async def think(wire: Wire) -> None:
        await wire.begin()
        await trio.sleep(0.1)
        await wire.raw(protocol.opening + protocol.word("at last") + protocol.stop + protocol.goodbye)
        await wire.send(h11.EndOfMessage())

    server.answers = [think]
    assert text(await ask(protocol.model(server, patience=Patience(10, 10, 0.01)))) == "at last"
    assert len(server.asked) == 1


async def test_a_flood_without_line_ends_is_ended(
    server: ChatServer, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_model, "LINE_BYTES", 100_000)

    async def flood(wire: Wire) -> None:
        await wire.begin()
        await wire.raw(protocol.opening + protocol.word("half"))
        while True:
            await wire.raw(b"data: " + b"x" * 65_536)

    server.answers = [flood]
    came, failed = await ask_until_failure(protocol.model(server))
    assert text(came) == "half"
    assert "more than an answer can be" in failed.message


async def test_a_flood_of_bytes_is_ended(
    server: ChatServer, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_model, "RESPONSE_BYTES", 100_000)

    async def flood(wire: Wire) -> None:
        await wire.begin()
        await wire.raw(protocol.opening)
        while True:
            await wire.raw(protocol.word("x" * 1000))

    server.answers = [flood]
    came, failed = await ask_until_failure(protocol.model(server))
    assert 0 < len(text(came)) < 110_000
    assert "more than an answer can be" in failed.message


async def test_a_flood_of_signs_of_life_is_ended(
    server: ChatServer, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_model, "RESPONSE_BYTES", 100_000)

    async def flood(wire: Wire) -> None:
        await wire.begin()
        while True:
            await wire.raw(protocol.nothing * 100)

    server.answers = [flood]
    _, failed = await ask_until_failure(protocol.model(server))
    assert "more than an answer can be" in failed.message


async def test_what_is_no_answer_at_all_is_said(server: ChatServer, protocol: Protocol) -> None:
    async def page(wire: Wire) -> None:
        await wire.begin("text/html")
        await wire.raw(b"<html>welcome</html>")
        await wire.send(h11.EndOfMessage())

    server.answers = [page]
    _, failed = await ask_until_failure(protocol.model(server))
    assert f"no {protocol.what}" in failed.message
    assert "base_url" in failed.hint
    assert server.asked[0].path == protocol.path


async def test_a_compressed_answer_is_refused(server: ChatServer, protocol: Protocol) -> None:
    server.answers = [refusing(200, "x", content_encoding="gzip")]
    _, failed = await ask_until_failure(protocol.model(server))
    assert "compresses" in failed.message
    assert server.asked[0].headers["accept-encoding"] == "identity"


async def test_a_key_that_cannot_be_sent_is_said(server: ChatServer, protocol: Protocol) -> None:
    for key in ("clé-ü", "two\nlines"):
        _, failed = await ask_until_failure(protocol.model(server, key=key))
        assert isinstance(failed, ModelUnauthorised)
        assert key not in failed.message + failed.hint
    assert server.asked == []
