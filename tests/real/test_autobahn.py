"""Autobahn's own cases, run by a fuzzing client of today (kosoku), against the listener as an echo server.

The handshake, framing, fragments, bounds, UTF-8, pings, closing and compression are the server's own. Replaced is what
a message means, and what stands before a stranger: no token is asked for, no first frame is sent, and binary messages,
which the contract refuses with 1003, come back like texts. The bounds are as wide as Autobahn's largest messages.

`EXCEPTIONS` are all cases in which the listener does something else than Autobahn would like best. `rfc6455.py` is our
own table, for the listener as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatch
from types import MappingProxyType
from typing import Any

import pytest
import trio
from kosoku import FailureError, run_fuzzingclient
from websockets.frames import Frame as WebSocketFrame
from websockets.frames import Opcode

from hermes_ws.contract.errors import ParseError
from hermes_ws.server.connection import Connection
from hermes_ws.server.inbound import Assembly
from hermes_ws.server.limits import Limits
from hermes_ws.wire.frames import Frame
from hermes_ws.wire.peer import Refused, Request
from tests.server.stage import TOKEN, Desk, stage

pytestmark = [
    # The cases open files of theirs and leave them to the collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

WIDE = Limits(frame_bytes=16 * 1024 * 1024, fragments=1_000_000)
"""Group 9 sends 16 MiB, and 4 MiB in fragments of 64 bytes."""

SIZES = (1, 4, 7, 11)
"""Of the sizes in groups 12 and 13: 16 bytes, 1 KiB, 16 KiB, 8 KiB in fragments; a thousand messages of each. Larger
ones measure how fast zlib is, and the client gives a case twenty seconds: they are run with texts alone (12.1)."""

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **{f"{group}.*": (f"{group}.*",) for group in (1, 2, 3, 4, 5, 6, 7, 9, 10)},
        "12.1.*": tuple(f"12.1.{size}" for size in (*SIZES, 10, 18)),
        **{f"12.{kind}.*": tuple(f"12.{kind}.{size}" for size in SIZES) for kind in range(2, 6)},
        **{f"13.{terms}.*": tuple(f"13.{terms}.{size}" for size in SIZES) for terms in range(1, 8)},
    }
)

EXCEPTIONS: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "2.1[01]": (
            "FAILED", "OK", "of pings that came together the latest is answered, as RFC 6455 allows (5.5.3): a flood of"
            " them takes no memory",
        ),
        "3.[234]": ("NON-STRICT", "OK", "what came in one read with a violation may go unanswered"),
        "4.[12].[345]": ("NON-STRICT", "OK", "what came in one read with a violation may go unanswered"),
        "5.15": ("NON-STRICT", "OK", "what came in one read with a violation may go unanswered"),
        "6.4.[1234]": ("NON-STRICT", "OK", "a text is looked at when it is whole; until then it is counted"),
        "7.1.5": (
            "FAILED", "WRONG CODE", "a close within a message is answered with 1002: the message will never be whole",
        ),
        "7.1.6": ("INFORMATIONAL", "INFORMATIONAL", "a close may overtake an answer"),
        "7.13.[12]": ("INFORMATIONAL", "INFORMATIONAL", "codes above 4999, of which the standard says nothing"),
    }
)  # fmt: skip
"""Cases by pattern: what Autobahn says of the exchange and of the closing where it is not OK, and why it is so here."""


class Binary(bytes):
    """A message that came as binary."""


BINARY = "binary"
"""The type of a frame that is to go as binary."""


class Echo(Desk):
    """Sends back what came, as what it came."""

    def accept(self, connection: Connection, request: Request, size: int) -> None:
        text, binary = request.params["text"], request.params["binary"]
        assert isinstance(text, str)
        frame = Frame(text.encode("latin-1"), BINARY) if binary else Frame(text.encode())
        if binary:
            # The answers of one read go out as they are, where nothing is compressed.
            frame._ws = bytes([0x80 | Opcode.BINARY]) + frame.ws[1:]  # pyright: ignore[reportPrivateUsage]
        connection.reply(frame)


@pytest.fixture
def _echoing(monkeypatch: pytest.MonkeyPatch) -> None:
    feed, encoded = Assembly.feed, vars(Connection)["_encoded"]
    welcome = Frame(b"{}")
    binary: set[Assembly] = set()

    def feed_any(self: Assembly, frame: WebSocketFrame) -> bytes | None:
        if frame.opcode is Opcode.BINARY:
            binary.add(self)
            frame = replace(frame, opcode=Opcode.TEXT)
        whole = feed(self, frame)
        if whole is not None and self in binary:
            binary.discard(self)
            return Binary(whole)
        return whole

    def as_it_came(message: bytes) -> Request:
        if isinstance(message, Binary):
            return Request(1, "raw", {"text": message.decode("latin-1"), "binary": True})
        try:
            return Request(1, "raw", {"text": message.decode(), "binary": False})
        except UnicodeDecodeError:
            raise Refused(ParseError("not UTF-8")) from None

    def encode_any(self: Any, frame: Frame) -> bytes:
        if frame is welcome:
            return b""
        if frame.type == BINARY:
            self._protocol.send_binary(frame.json)
            return b"".join(self._protocol.data_to_send())
        return encoded(self, frame)

    monkeypatch.setattr(Assembly, "feed", feed_any)
    monkeypatch.setattr("hermes_ws.server.intake.parse", as_it_came)
    monkeypatch.setattr(Connection, "_encoded", encode_any)

    def token(visit: object) -> str:
        return TOKEN

    def unsaid(connection: object) -> Frame:
        return welcome

    monkeypatch.setattr("hermes_ws.server.entry._token", token)
    monkeypatch.setattr("tests.server.stage.welcome", unsaid)


@pytest.mark.usefixtures("_echoing")
@pytest.mark.parametrize("group", GROUPS)
async def test_autobahns_cases_pass(group: str) -> None:
    def fuzz() -> list[Any]:
        try:
            return list(asyncio.run(run_fuzzingclient(f"ws://127.0.0.1:{on.port}/ws", GROUPS[group])))
        except FailureError as failure:
            return list(failure.results)

    async with stage(Echo(), limits=WIDE, compress=True) as on:
        results = await trio.to_thread.run_sync(fuzz)
    assert results
    assert [told for told in map(_wrong, results) if told] == []


def test_every_exception_is_of_a_group_that_is_run() -> None:
    assert all(any(fnmatch(name, f"{group.removesuffix('*')}*") for group in GROUPS) for name in EXCEPTIONS)


def _wrong(case: Any) -> str:
    """What is wrong with the outcome of a case; empty when it is as it should be, or as its exception says."""
    said = (case.behavior.value, case.behavior_close.value)
    allowed = [("OK", "OK"), *(each[:2] for name, each in EXCEPTIONS.items() if fnmatch(case.case_id, name))]
    return "" if said in allowed else f"{case.case_id}: {said}: {case.result} {case.result_close}"
