"""The contract over plain HTTP: who is let in, what is bounded, and what a stream of events says."""

from __future__ import annotations

import json
from typing import Any

import h11
import pytest
import trio
import trio.lowlevel
import trio.testing
from trio.testing import MockClock

from hermes_ws.journal.tail import LiveMarks
from hermes_ws.server.entry import Principal
from hermes_ws.server.events_http import HEARTBEAT, EventStream, Listening, Wish
from hermes_ws.server.limits import Limits
from hermes_ws.server.ports import Caller
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import error_frame, reply_frame
from hermes_ws.wire.peer import Request
from tests.server.stage import Desk, HungUp, RawClient, Stage, no_page, publish, stage

REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":1}}'


def post(client: RawClient, body: bytes = REQUEST, path: str = "/rpc", **headers: str) -> bytes:
    given = {"Content_Length": str(len(body)), **headers}
    return client.head(path, **given).replace(b"GET", b"POST", 1) + body


async def asked(on: Stage, body: bytes = REQUEST, path: str = "/rpc", **headers: str) -> tuple[int, Any]:
    client = await on.raw()
    await client.send(post(client, body, path, **headers))
    status, _, content = await client.response()
    return status, json.loads(content) if content and status != 413 else content


async def test_a_request_is_answered_as_on_a_websocket() -> None:
    async with stage() as on:
        assert await asked(on) == (200, {"jsonrpc": "2.0", "id": 1, "result": {"a": 1}})


async def test_a_connection_is_kept_for_further_requests() -> None:
    async with stage() as on:
        client = await on.raw()
        for _ in range(3):
            await client.send(post(client))
            status, headers, _ = await client.response()
            assert status == 200
            assert headers["content-type"] == "application/json"
            assert not any(name.startswith("access-control") for name in headers)


@pytest.mark.parametrize(("path", "method"), [("/rpc", "GET"), ("/events", "POST"), ("/p/work/rpc", "PUT")])
async def test_each_address_takes_its_own_method(path: str, method: str) -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(client.head(path).replace(b"GET", method.encode(), 1))
        status, headers, _ = await client.response()
        assert status == 405
        assert headers["allow"].upper() == ("GET" if path.endswith("events") else "POST")


@pytest.mark.parametrize("path", ["/rpc", "/events?session_id=s-1"])
async def test_nobody_is_let_in_without_the_token(path: str) -> None:
    async with stage() as on:
        client = await on.raw()
        head = client.head(path, token=None)
        await client.send(head if path.startswith("/events") else head.replace(b"GET", b"POST", 1))
        status, headers, _ = await client.response()
        assert status == 401
        assert headers["www-authenticate"] == "bearer"
        assert on.desk.seen == []


async def test_a_page_of_another_origin_is_refused() -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(post(client, Origin="http://evil.example"))
        assert (await client.response())[0] == 403


async def test_a_token_in_the_address_lets_nobody_in() -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(client.head("/events?session_id=s&token=a-token-that-only-the-tests-know", token=None))
        assert (await client.response())[0] == 401


async def test_a_profile_that_is_not_served_has_no_address() -> None:
    async with stage() as on:
        assert (await asked(on, path="/p/work/rpc"))[0] == 200
        client = await on.raw()
        await client.send(post(client, path="/p/other/rpc"))
        assert (await client.response())[0] == 404


async def test_a_body_larger_than_a_frame_is_refused() -> None:
    async with stage(limits=Limits(frame_bytes=1000)) as on:
        assert (await asked(on, b" " * 1001))[0] == 413
        assert on.desk.seen == []


async def test_a_client_that_waits_to_be_told_to_go_on_is_told_to() -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(post(client, Expect="100-continue")[: -len(REQUEST)])
        assert b"100" in await client.until(b"\r\n\r\n")
        await client.send(REQUEST)
        assert (await client.response())[0] == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc":"2.0","id":" ","method":"echo"}', -32600),
        (b'{"jsonrpc":"2.0","id":"srq-1","result":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"echo","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"nothing"}', -32601),
    ],
)
async def test_what_cannot_be_answered_is_refused_with_its_code(body: bytes, code: int) -> None:
    async with stage() as on:
        status, answer = await asked(on, body)
        assert status == 200
        assert answer["error"]["code"] == code


async def test_a_notification_gets_no_answer() -> None:
    async with stage() as on:
        assert await asked(on, b'{"jsonrpc":"2.0","method":"$/cancel","params":{"id":1}}') == (204, b"")


async def test_one_that_hangs_up_before_its_answer_leaves_nothing() -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(post(client, b'{"jsonrpc":"2.0","id":1,"method":"hold"}'))
        while not on.desk.held:
            await trio.lowlevel.checkpoint()
        await client.close()
        on.desk.release()
        assert (await asked(on))[0] == 200


async def test_a_request_under_way_is_pushed_out_by_no_flood() -> None:
    async with stage(limits=Limits(visitors=2)) as on:
        client = await on.raw()
        await client.send(post(client, b'{"jsonrpc":"2.0","id":1,"method":"hold"}'))
        while not on.desk.held:
            await trio.lowlevel.checkpoint()
        flood = [await on.raw() for _ in range(5)]
        while on.listener.statistics().visitors < 2:
            await trio.lowlevel.checkpoint()
        on.desk.release()
        assert (await client.response())[0] == 200
        assert flood


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("session_id=s-1&color=red", "color"),
        ("session_id=s-1&session_id=s-2", "session_id"),
        ("session_id=s-1&live=sometimes", "live"),
        ("session_id=s-1&" + "&".join(f"a{n}=1" for n in range(20)), None),
    ],
)
async def test_an_address_that_says_what_it_may_not_is_refused(query: str, path: str | None) -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(client.head(f"/events?{query}"))
        status, _, body = await client.response()
        assert status == 400
        assert json.loads(body)["error"]["data"].get("path") == path


# --- one stream, in memory -------------------------------------------------------------------------------------------


class Following(Desk):
    """Answers `thread.subscribe` with a snapshot, and subscribes."""

    position = "ok"
    error: dict[str, Any] | None = None

    def accept(self, connection: Caller, request: Request, size: int) -> None:
        assert request.method == "thread.subscribe"
        self.seen.append(str(request.params.get("after")))
        if self.error is not None:
            connection.reply(error_frame(request.id, self.error))
            return
        start = Cursor(self.tail.generation, 0 if self.position != "ok" else self.tail.head)
        snapshot = {"position": self.position, "generation": self.tail.generation, "cursor": str(start)}
        snapshot |= {"profile": "default", "session_id": "s-1", "thread_id": "main"}
        connection.reply(reply_frame(request.id, snapshot))
        connection.subscribe(self.tail, start, LiveMarks(), no_page)


class Streaming:
    """A stream with its client's end."""

    def __init__(self, query: str = "session_id=s-1", last: str | None = None) -> None:
        self.client, theirs = trio.testing.memory_stream_pair()
        http = h11.Connection(h11.SERVER)
        http.receive_data(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        http.next_event()
        owner = Principal("owner", profiles=None, rights=frozenset())
        self.stream = EventStream(theirs, Listening(owner, None, Wish.read(query, last), http), Limits())
        self.reader = h11.Connection(h11.CLIENT)
        self.reader.send(h11.Request(method="GET", target="/events", headers=[("Host", "x")]))
        self.reader.send(h11.EndOfMessage())
        self.status = 0
        self.body = b""

    async def until(self, mark: bytes) -> bytes:
        """The text up to and with a mark; what was read is gone."""
        while mark not in self.body:
            event = self.reader.next_event()
            if event is h11.NEED_DATA:
                data = await self.client.receive_some()
                if not data:
                    raise HungUp("end")
                self.reader.receive_data(data)
            elif isinstance(event, h11.Response):
                self.status = event.status_code
            elif isinstance(event, h11.Data):
                self.body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                raise HungUp("complete")
        end = self.body.index(mark) + len(mark)
        text, self.body = self.body[:end], self.body[end:]
        return text


async def test_a_stream_begins_with_its_place_and_gives_each_event_its_cursor(nursery: trio.Nursery) -> None:
    desk, streaming = Following(), Streaming()
    nursery.start_soon(streaming.stream.run, desk)
    assert await streaming.until(b"\n\n") == b"retry: 1000\nid: 1:0\n\n"
    assert streaming.status == 200
    publish(desk.tail, "hello")
    text = (await streaming.until(b"\n\n")).decode()
    id, data, _, _ = text.split("\n")
    assert id == "id: 1:1"
    assert json.loads(data.removeprefix("data: "))["params"]["payload"] == {"message": "hello"}


async def test_the_last_event_id_counts_more_than_the_address(nursery: trio.Nursery) -> None:
    desk, streaming = Following(), Streaming("session_id=s-1&after=1:1", last="1:5")
    nursery.start_soon(streaming.stream.run, desk)
    await streaming.until(b"\n\n")
    assert desk.seen == ["1:5"]


async def test_a_place_that_is_no_more_is_told_first(nursery: trio.Nursery) -> None:
    desk, streaming = Following(), Streaming(last="9:9")
    desk.position = "rebased"
    publish(desk.tail)
    nursery.start_soon(streaming.stream.run, desk)
    first = (await streaming.until(b"\n\n")).decode()
    assert "id: 1:0" in first
    assert '"type":"thread.rebased"' in first
    assert "id: 1:1" in (await streaming.until(b"\n\n")).decode()


async def test_silence_is_broken_by_a_heartbeat(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    desk, streaming = Following(), Streaming()
    nursery.start_soon(streaming.stream.run, desk)
    await streaming.until(b"\n\n")
    began = trio.current_time()
    assert await streaming.until(b"\n\n") == b": heartbeat\n\n"
    assert trio.current_time() - began == pytest.approx(HEARTBEAT)


async def test_a_refused_stream_is_an_http_error(nursery: trio.Nursery) -> None:
    desk, streaming = Following(), Streaming()
    desk.error = {"code": 4001, "message": "There is no session s-1.", "data": {"type": "session_unknown"}}
    nursery.start_soon(streaming.stream.run, desk)
    body = await streaming.until(b"}}}")
    assert streaming.status == 404
    assert json.loads(body)["error"]["code"] == 4001


async def test_a_stream_is_told_why_it_ends(nursery: trio.Nursery) -> None:
    desk, streaming = Following(), Streaming()
    nursery.start_soon(streaming.stream.run, desk)
    await streaming.until(b"\n\n")
    streaming.stream.close(4501, "the credential was withdrawn")
    said = await streaming.until(b"\n\n")
    assert said == b'event: closed\ndata: {"code":4501,"reason":"the credential was withdrawn"}\n\n'
    with pytest.raises(HungUp, match="complete"):
        await streaming.until(b"more")
    await streaming.stream.wait_ended()
    assert desk.gone_ids == [streaming.stream.id]


async def test_a_client_that_hangs_up_ends_its_stream(nursery: trio.Nursery) -> None:
    desk, streaming = Following(), Streaming()
    nursery.start_soon(streaming.stream.run, desk)
    await streaming.until(b"\n\n")
    await streaming.client.aclose()
    with trio.fail_after(10):
        await streaming.stream.wait_ended()
    assert desk.tail.statistics().listeners == 0


async def test_a_client_that_reads_nothing_is_given_up(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    desk = Following()
    theirs, _ = trio.testing.lockstep_stream_pair()
    streaming = Streaming()
    streaming.stream._stream = theirs  # pyright: ignore[reportPrivateUsage]
    nursery.start_soon(streaming.stream.run, desk)
    await streaming.stream.wait_ended()
    assert trio.current_time() >= Limits().send_deadline


async def test_only_a_stream_that_says_so_is_asked_questions(nursery: trio.Nursery) -> None:
    assert not Streaming().stream.askable
    asking = Streaming("session_id=s-1&server_requests=approval,unknown")
    assert asking.stream.askable
    assert asking.stream.negotiated.server_requests == {"approval"}
    assert "clarify" in Streaming("session_id=s-1&server_requests=true").stream.negotiated.server_requests
