"""The listener as an echo server with its bounds as they are: each text comes back as it was sent. Everything up to the
whole message is the server's own; only what a message means is replaced.

Autobahn's own cases, with wider bounds, are in `test_autobahn.py`; what differs, and why, stands in `rfc6455.py`.
"""

from __future__ import annotations

import pytest
import trio
from websockets.exceptions import ConnectionClosedError, ConnectionClosedOK
from websockets.sync.client import connect

from hermes_ws.contract.errors import ParseError
from hermes_ws.server.connection import Connection
from hermes_ws.wire.frames import Frame
from hermes_ws.wire.peer import Refused, Request
from tests.real.rfc6455 import CONT, INVALID, PING, PONG, TEXT, VALID, chopped, frame
from tests.server.stage import TOKEN, Desk, RawClient, stage

SIZES = (0, 1, 125, 126, 127, 128, 65_535, 65_536, 65_537, 1024 * 1024)


class Echo(Desk):
    """Sends back what came."""

    def accept(self, connection: Connection, request: Request, size: int) -> None:
        text = request.params["text"]
        assert isinstance(text, str)
        connection.reply(Frame(text.encode()))


def _as_it_came(text: bytes) -> Request:
    try:
        return Request(1, "raw", {"text": text.decode()})
    except UnicodeDecodeError:
        raise Refused(ParseError("not UTF-8")) from None


@pytest.fixture(autouse=True)
def raw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_ws.server.intake.parse", _as_it_came)


async def echoed(client: RawClient) -> bytes:
    while True:
        opcode, payload = await client.receive()
        if opcode not in (PING, PONG):
            assert opcode == TEXT
            return payload


async def test_texts_of_all_sizes_come_back_as_they_were_sent() -> None:
    async with stage(Echo()) as on:
        client = await on.opened()
        for size in SIZES:
            payload = b"*" * size
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.send, frame(TEXT, payload))
                assert await echoed(client) == payload


@pytest.mark.parametrize("piece", [1, 7, 997])
async def test_how_the_bytes_are_cut_makes_no_difference(piece: int) -> None:
    async with stage(Echo()) as on:
        client = await on.opened()
        payload = "κόσμε".encode() * 100
        for part in chopped(frame(TEXT, payload), piece):
            await client.send(part)
        assert await echoed(client) == payload


@pytest.mark.parametrize("piece", [256, 1300, 16_384])
async def test_a_message_in_fragments_comes_back_whole(piece: int) -> None:
    async with stage(Echo()) as on:
        client = await on.opened()
        payload = b"0123456789abcdef" * 4096
        parts = chopped(payload, piece)
        await client.send(frame(TEXT, parts[0], fin=False))
        for part in parts[1:]:
            await client.send(frame(CONT, part, fin=False) + frame(PING, b"between"))
        await client.send(frame(CONT))
        assert await echoed(client) == payload


async def test_every_valid_text_comes_back_and_no_other() -> None:
    async with stage(Echo()) as on:
        client = await on.opened()
        for text in VALID:
            await client.send(frame(TEXT, text.encode()))
            assert (await echoed(client)).decode() == text
        for octets in INVALID:
            client = await on.opened()
            await client.send(frame(TEXT, octets))
            assert await client.closed_with() == 1007


@pytest.mark.parametrize("compress", [False, True])
async def test_a_client_library_that_others_use_gets_its_echoes(compress: bool) -> None:
    def talk(url: str) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with connect(
            url, additional_headers=headers, compression="deflate" if compress else None, proxy=None, legacy=True
        ) as socket:
            assert "gateway.ready" in str(socket.recv(timeout=30))
            for size in SIZES:
                text = "ab" * (size // 2)
                socket.send(text)
                assert socket.recv(timeout=30) == text
            socket.send(["in ", "several ", "fragments"])
            assert socket.recv(timeout=30) == "in several fragments"
            assert socket.ping().wait(30)
            socket.close()
        with pytest.raises(ConnectionClosedOK):
            socket.recv()
        with connect(url, additional_headers=headers, compression=None, proxy=None, legacy=True) as socket:
            socket.recv(timeout=30)
            socket.send(b"binary")
            with pytest.raises(ConnectionClosedError) as closed:
                socket.recv(timeout=30)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1003

    async with stage(Echo(), compress=compress) as on:
        await trio.to_thread.run_sync(talk, on.url)
