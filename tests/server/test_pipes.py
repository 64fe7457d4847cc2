"""A client at the other end of two pipes: lines instead of frames, and the same rules."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from hermes_ws.contract.registry import Right
from hermes_ws.server.entry import Principal
from hermes_ws.server.limits import Limits
from hermes_ws.server.pipes import PipeConnection
from hermes_ws.wire.frames import event_frame
from tests.server.stage import Desk, publish, welcome


class Line:
    """A client, in memory."""

    def __init__(self, desk: Desk, limits: Limits | None = None) -> None:
        self._send, incoming = trio.testing.memory_stream_one_way_pair()
        outgoing, self._receive = trio.testing.memory_stream_one_way_pair()
        self._buffer = b""
        self.connection = PipeConnection(
            incoming,
            outgoing,
            principal=Principal("owner", profiles=None, rights=frozenset(Right)),
            profile=None,
            dispatcher=desk,
            limits=limits or Limits(),
        )

    async def open(self, nursery: trio.Nursery) -> None:
        nursery.start_soon(self.connection.run, welcome)
        assert (await self.said())["params"]["type"] == "gateway.ready"

    async def say(self, data: bytes) -> None:
        await self._send.send_all(data)

    async def ask(self, method: str, **params: Any) -> None:
        await self.say(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")

    async def said(self) -> Any:
        while b"\n" not in self._buffer:
            self._buffer += await self._receive.receive_some()
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    async def end(self) -> None:
        await self._send.aclose()

    async def closed(self) -> tuple[int, str]:
        last = await self.said()
        assert last["method"] == "$/closed"
        await self.connection.wait_ended()
        return last["params"]["code"], last["params"]["reason"]


async def test_requests_are_answered_and_threads_followed(nursery: trio.Nursery) -> None:
    desk = Desk()
    line = Line(desk)
    await line.open(nursery)
    await line.ask("echo", a=1)
    assert (await line.said())["result"] == {"a": 1}
    await line.ask("listen")
    await line.said()
    publish(desk.tail, "news")
    assert (await line.said())["params"]["payload"] == {"message": "news"}
    await line.ask("gateway.ping")
    assert (await line.said())["result"] == {"ok": True}
    assert "gateway.ping" not in desk.seen


async def test_lines_may_be_blank_or_end_as_on_another_system(nursery: trio.Nursery) -> None:
    line = Line(Desk())
    await line.open(nursery)
    await line.say(b'\n\r\n  \n{"jsonrpc":"2.0","id":1,"method":"echo"}\r\n')
    assert (await line.said())["result"] == {}


@pytest.mark.parametrize(("text", "code"), [(b"{", -32700), (b"[]", -32600), (b'{"jsonrpc":"2.0"}', -32600)])
async def test_what_is_no_request_is_answered_and_the_line_stands(
    nursery: trio.Nursery, text: bytes, code: int
) -> None:
    line = Line(Desk())
    await line.open(nursery)
    await line.say(text + b"\n")
    assert (await line.said())["error"]["code"] == code
    await line.ask("echo")
    assert (await line.said())["result"] == {}


@pytest.mark.parametrize(
    ("data", "code"), [(b'"\xff"\n', 1007), (b'"' + b"x" * 2000 + b'"\n', 1009), (b"x" * 2000, 1009)]
)
async def test_a_line_that_no_frame_could_be_ends_it_with_the_code(
    nursery: trio.Nursery, data: bytes, code: int
) -> None:
    line = Line(Desk(), Limits(frame_bytes=1000))
    await line.open(nursery)
    await line.say(data)
    assert (await line.closed())[0] == code


async def test_what_was_asked_before_the_input_ended_is_answered(nursery: trio.Nursery) -> None:
    desk = Desk()
    line = Line(desk)
    await line.open(nursery)
    await line.ask("hold")
    await line.end()
    await trio.testing.wait_all_tasks_blocked()
    desk.release()
    assert (await line.said())["result"] == "released"
    assert await line.closed() == (1000, "the input has ended")
    assert desk.gone_ids == [line.connection.id]


async def test_answers_to_questions_and_cancellations_reach_the_dispatcher(nursery: trio.Nursery) -> None:
    desk = Desk()
    line = Line(desk)
    await line.open(nursery)
    await line.say(b'{"jsonrpc":"2.0","id":"srq-1","result":{}}\n')
    await line.say(b'{"jsonrpc":"2.0","method":"$/cancel","params":{"id":7}}\n')
    await line.ask("echo")
    await line.said()
    assert [each.id for each in desk.answers] == ["srq-1"]
    assert desk.cancelled_ids == [7]


async def test_an_answer_larger_than_a_frame_becomes_an_error(nursery: trio.Nursery) -> None:
    line = Line(Desk(), Limits(frame_bytes=1000))
    await line.open(nursery)
    await line.ask("big", bytes=2000)
    assert (await line.said())["error"]["data"]["type"] == "limit_reached"


async def test_a_parent_that_reads_nothing_is_given_up(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    outgoing, _ = trio.testing.lockstep_stream_one_way_pair()
    _, incoming = trio.testing.memory_stream_one_way_pair()
    owner = Principal("owner", profiles=None, rights=frozenset(Right))
    connection = PipeConnection(incoming, outgoing, principal=owner, profile=None, dispatcher=Desk(), limits=Limits())
    nursery.start_soon(connection.run, welcome)
    await connection.wait_ended()
    assert trio.current_time() >= Limits().send_deadline


async def test_a_flood_of_answers_that_nobody_reads_is_bounded(nursery: trio.Nursery) -> None:
    desk = Desk()
    line = Line(desk, Limits(unread_frames=10))
    await line.open(nursery)
    for _ in range(20):
        line.connection.notify(event_frame({"type": "notice", "ts": 1.0, "payload": {}}))
    codes = []
    while not codes:
        said = await line.said()
        if said.get("method") == "$/closed":
            codes.append(said["params"]["code"])
    assert codes == [4429]
