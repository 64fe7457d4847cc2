"""What a client sends, however it is cut on its way."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass, field
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.frames import Frame as WebSocketFrame
from websockets.frames import Opcode
from websockets.http11 import Request as Head
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from hermes_ws.server.connection import Connection
from hermes_ws.server.inbound import Violation, extent
from hermes_ws.server.intake import Intake
from hermes_ws.server.life import Life
from hermes_ws.server.limits import Limits
from hermes_ws.server.outbox import Outbox
from hermes_ws.server.ports import Dispatcher
from hermes_ws.wire.peer import Request

SILENT = logging.Logger("silent", level=logging.CRITICAL + 1)


@dataclass
class Reader:
    """A connection and its dispatcher, as far as what arrives is concerned."""

    life: Life = Life.OPEN
    asked: list[Request] = field(default_factory=list)
    closes_after: int | None = None

    def accept(self, connection: object, request: Request, size: int) -> None:
        self.asked.append(request)
        if len(self.asked) == self.closes_after:
            self.life = Life.CLOSING


class Nothing:
    """An outbox in which nothing waits."""

    queue: tuple[bytes, ...] = ()
    bytes = 0


def opened() -> ServerProtocol:
    """A protocol that is past its handshake."""
    client = ClientProtocol(parse_uri("ws://localhost/"), logger=SILENT)
    client.send_request(client.connect())
    server = ServerProtocol(logger=SILENT)
    server.receive_data(b"".join(client.data_to_send()))
    server.send_response(server.accept(cast("Head", server.events_received()[0])))
    server.data_to_send()
    return server


def intake(reader: Reader, protocol: ServerProtocol, limits: Limits | None = None) -> Intake:
    connection, dispatcher = cast("Connection", reader), cast("Dispatcher", reader)
    return Intake(connection, protocol, dispatcher, cast("Outbox", Nothing()), limits or Limits())


def sent(opcode: Opcode, data: bytes, *, fin: bool = True) -> bytes:
    return WebSocketFrame(opcode, data, fin=fin).serialize(mask=True)


def text(number: int, filler: int) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "m", "params": {"x": "ä" * filler}}).encode()


@st.composite
def conversations(draw: st.DrawFn) -> tuple[bytes, int, int]:
    """What a client may send that breaks no rule, how many requests it has and how many pings."""
    frames: list[bytes] = []
    requests = pings = 0
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["whole", "whole", "pieces", "ping", "pong"]))
        if kind == "ping":
            frames.append(sent(Opcode.PING, draw(st.binary(max_size=125))))
            pings += 1
        elif kind == "pong":
            frames.append(sent(Opcode.PONG, b"x"))
        else:
            # Around the sizes at which the head of a frame gets longer.
            whole = text(requests, draw(st.sampled_from([0, 1, 30, 34, 35, 36, 200, 40_000])))
            requests += 1
            if kind == "whole":
                frames.append(sent(Opcode.TEXT, whole))
            else:
                at = draw(st.integers(0, len(whole)))
                frames += [sent(Opcode.TEXT, whole[:at], fin=False), sent(Opcode.PING, b"in between")]
                frames += [sent(Opcode.CONT, b"", fin=False), sent(Opcode.CONT, whole[at:])]
                pings += 1
    return b"".join(frames), requests, pings


@settings(max_examples=60, deadline=None)
@given(conversations(), st.data())
def test_however_it_is_cut_the_same_requests_arrive_in_order(
    conversation: tuple[bytes, int, int], data: st.DataObject
) -> None:
    stream, requests, pings = conversation
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    reader, protocol = Reader(), opened()
    taking = intake(reader, protocol)
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        if start < stop:
            taking.received(stream[start:stop])
    assert [request.id for request in reader.asked] == list(range(requests))
    assert all(set(str(request.params["x"])) <= {"ä"} for request in reader.asked)
    assert len(protocol.data_to_send()) == pings


def test_every_cut_of_a_short_conversation_gives_the_same() -> None:
    stream = sent(Opcode.TEXT, text(0, 0)) + sent(Opcode.PING, b"hi") + sent(Opcode.TEXT, text(1, 60))
    for cut in range(1, len(stream)):
        reader = Reader()
        taking = intake(reader, opened())
        taking.received(stream[:cut])
        taking.received(stream[cut:])
        assert [request.id for request in reader.asked] == [0, 1]


def test_what_follows_the_last_request_that_counts_goes_to_the_protocol() -> None:
    reader, protocol = Reader(closes_after=1), opened()
    later = sent(Opcode.TEXT, text(1, 0))
    goodbye = sent(Opcode.CLOSE, b"\x03\xe8")
    intake(reader, protocol).received(sent(Opcode.TEXT, text(0, 0)) + later + goodbye)
    assert [request.id for request in reader.asked] == [0]
    assert protocol.close_rcvd is not None
    assert protocol.close_rcvd.code == 1000


def test_what_was_asked_before_the_goodbye_is_looked_at_and_what_comes_after_is_not() -> None:
    reader, protocol = Reader(), opened()
    goodbye = sent(Opcode.CLOSE, b"\x03\xe8")
    stream = sent(Opcode.TEXT, text(0, 0)) + goodbye + sent(Opcode.TEXT, text(1, 0))
    intake(reader, protocol).received(stream)
    assert [request.id for request in reader.asked] == [0]
    assert protocol.state is State.CLOSING


def test_what_stood_behind_a_violation_is_given_to_the_protocol_when_the_goodbye_is_said() -> None:
    reader, protocol = Reader(), opened()
    taking = intake(reader, protocol)
    later = sent(Opcode.TEXT, text(1, 0))
    with pytest.raises(Violation):
        taking.received(sent(Opcode.BINARY, b"x") + later + sent(Opcode.CLOSE, b"\x03\xe8"))
    protocol.send_close(1003)
    taking.let_go()
    assert protocol.close_rcvd is not None
    assert reader.asked == []
    taking.let_go()  # there is nothing left


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"\x81\x05", id="unmasked"),
        pytest.param(b"\x83\x85", id="reserved-opcode"),
        pytest.param(b"\x81\xfe\xff\xff", id="oversize"),
        pytest.param(b"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff", id="absurd"),
    ],
)
def test_a_rule_that_the_head_breaks_is_seen_before_anything_follows_the_head(head: bytes) -> None:
    reader, protocol = Reader(), opened()
    protocol.max_message_size = 1000
    intake(reader, protocol, Limits(frame_bytes=1000)).received(head)
    assert protocol.parser_exc is not None
    assert protocol.state is State.CLOSING


def test_a_frame_ends_where_its_head_says() -> None:
    for size in (0, 1, 125, 126, 127, 65_535, 65_536, 70_000):
        for opcode in (Opcode.TEXT, Opcode.CONT, Opcode.BINARY):
            frame = sent(opcode, os.urandom(size), fin=opcode is not Opcode.CONT)
            assert extent(b"xyz" + frame + b"more", 3, 70_000) == len(frame)
    whole = sent(Opcode.TEXT, b"x" * 70_000)
    assert extent(whole[:9], 0, 70_000) is None
    assert extent(whole[:10], 0, 70_000) == len(whole)
