"""Every case of the table, against the listener as it is."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import orjson
import pytest
import trio

from tests.real.rfc6455 import CLOSE, DEFLATED, PING, PLAIN, PONG, Case, Outcome
from tests.server.stage import HungUp, RawClient, stage

PATIENCE = 30.0


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case.name)
async def test_an_endpoint_does_what_the_standard_says(case: Case) -> None:
    async with stage() as on:
        client = await on.opened()
        await play(client, case, Reading(client))


@pytest.mark.parametrize("case", DEFLATED, ids=lambda case: case.name)
async def test_a_compressed_endpoint_does_what_the_standard_says(case: Case) -> None:
    async with stage(compress=True) as on:
        client = await on.raw()
        offered = "permessage-deflate; client_max_window_bits"
        status, headers = await client.upgrade(Sec_WebSocket_Extensions=offered)
        assert status == 101
        assert headers["sec-websocket-extensions"].startswith("permessage-deflate")
        reading = Reading(client)
        assert await reading.following(("welcome", "")) == ("welcome", "gateway.ready")
        await play(client, case, reading)


@pytest.mark.parametrize(
    ("offered", "taken"),
    [
        ("permessage-deflate", True),
        ("permessage-deflate; client_max_window_bits", True),
        ("permessage-deflate; server_max_window_bits=10; client_max_window_bits=10", True),
        ("permessage-deflate; server_no_context_takeover; client_no_context_takeover", True),
        ("permessage-deflate; server_max_window_bits=7", False),
        ("permessage-deflate; server_max_window_bits=16", False),
        ("permessage-deflate; unknown", False),
        ("permessage-bzip2", False),
    ],
)
async def test_compression_is_negotiated_as_far_as_it_is_known(offered: str, taken: bool) -> None:
    async with stage(compress=True) as on:
        client = await on.raw()
        status, headers = await client.upgrade(Sec_WebSocket_Extensions=offered)
        assert status == 101
        assert ("sec-websocket-extensions" in headers) is taken


async def play(client: RawClient, case: Case, reading: Reading) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(send, client, case)
        with trio.fail_after(PATIENCE):
            wanted = list(case.outcomes)
            while wanted:
                got = await reading.following(wanted[0])
                if wanted[0][0] == "echo" and got[0] == "close" and wanted[1:] == [got]:
                    break  # it came in one read with what ended the connection
                assert got == wanted.pop(0)
        nursery.cancel_scope.cancel()


async def send(client: RawClient, case: Case) -> None:
    try:
        for piece in case.pieces:
            await client.send(piece)
    except trio.BrokenResourceError:
        return  # the other side has seen enough


class Reading:
    """What comes back, inflated where it was deflated."""

    def __init__(self, client: RawClient) -> None:
        self._client = client
        self._inflate = zlib.decompressobj(wbits=-15)

    async def following(self, wanted: Outcome) -> Outcome:
        """The next thing; where an echo is wanted, pongs before it are passed over: there may be fewer than pings."""
        while True:
            try:
                opcode, payload = await self._frame()
            except HungUp as end:
                return "end", str(end)
            if opcode == CLOSE:
                return "close", struct.unpack("!H", payload[:2])[0] if payload else 1005
            if opcode == PONG:
                if wanted[0] == "pong":
                    return "pong", payload
            elif opcode != PING:
                answer: dict[str, Any] = orjson.loads(payload)
                if "method" in answer:
                    return "welcome", answer["params"]["type"]
                if "error" in answer:
                    return "error", answer["error"]["code"]
                return "echo", answer["result"]["text"]

    async def _frame(self) -> tuple[int, bytes]:
        while not self._client.buffer:
            await self._client.more()
        deflated = bool(self._client.buffer[0] & 0x40)
        if deflated:
            self._client.buffer[0] &= 0xBF
        opcode, payload = await self._client.receive()
        if deflated:
            payload = self._inflate.decompress(payload + b"\x00\x00\xff\xff")
        return opcode, payload
