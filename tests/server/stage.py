"""A listener on loopback with a small dispatcher behind it, and a client that speaks to its socket byte by byte."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import struct
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio
from websockets.frames import apply_mask

from hermes_ws.journal.stored_event import StoredEvent
from hermes_ws.journal.tail import Address, LiveMarks, ThreadTail
from hermes_ws.server import static_files
from hermes_ws.server.connection import Connection
from hermes_ws.server.entry import Entry, Peer, host_names
from hermes_ws.server.lateness import Lateness
from hermes_ws.server.limits import Limits
from hermes_ws.server.listener import Listener
from hermes_ws.server.ports import Page, Pages, ReadPage
from hermes_ws.server.proxy import Proxies
from hermes_ws.server.sockets import Bound, listen_tcp, listen_unix
from hermes_ws.server.tls import Secure
from hermes_ws.server.token import LaunchToken
from hermes_ws.server.visitor import NO_PROXIES, Site
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import Frame, RequestId, error_frame, event_frame, notification_frame, reply_frame
from hermes_ws.wire.peer import Request, Response

TOKEN = "a-token-that-only-the-tests-know"
ADDRESS = Address("default", "s-1", "main")


async def no_page(after: Cursor, budget: int) -> Page:
    raise AssertionError("nothing in this test is older than the tail's memory")


def welcome(connection: Connection) -> Frame:
    return event_frame({"type": "gateway.ready", "ts": 1.0, "payload": {"instance_id": "i-1"}})


@dataclass
class Desk:
    """A dispatcher: `echo` gives back its parameters, `big` gives many bytes, `listen` subscribes, `hold` waits."""

    tail: ThreadTail = field(default_factory=lambda: new_tail())
    read: ReadPage = no_page
    held: list[tuple[Connection, RequestId]] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    answers: list[Response] = field(default_factory=list)
    cancelled_ids: list[RequestId] = field(default_factory=list)
    gone_ids: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    watch: Callable[[Request], None] | None = None

    def accept(self, connection: Connection, request: Request, size: int) -> None:
        self.seen.append(request.method)
        self.sizes.append(size)
        if self.watch is not None:
            self.watch(request)
        if request.method == "echo":
            connection.reply(reply_frame(request.id, dict(request.params)))
        elif request.method == "big":
            count = request.params["bytes"]
            assert isinstance(count, int)
            connection.reply(reply_frame(request.id, "x" * count))
        elif request.method == "listen":
            after = request.params.get("after")
            start = Cursor.parse(after) if isinstance(after, str) else Cursor(self.tail.generation, self.tail.head)
            connection.reply(reply_frame(request.id, {"cursor": str(start)}))
            connection.subscribe(self.tail, start, LiveMarks(), self.read)
        elif request.method == "hold":
            self.held.append((connection, request.id))
        elif request.method == "crash":
            raise RuntimeError("a bug of ours")
        else:
            connection.reply(error_frame(request.id, {"code": -32601, "message": "no"}))

    def release(self) -> None:
        for connection, id in self.held:
            connection.reply(reply_frame(id, "released"))
        self.held.clear()

    def rested(self, connection: Connection) -> None:
        pass

    def answered(self, connection: Connection, response: Response) -> None:
        self.answers.append(response)

    def cancelled(self, connection: Connection, id: RequestId) -> None:
        self.cancelled_ids.append(id)

    def gone(self, connection: Connection) -> None:
        self.gone_ids.append(connection.id)


def new_tail(address: Address = ADDRESS, **bounds: int) -> ThreadTail:
    tail = ThreadTail(address, **bounds)
    tail.adopt(1, 0)
    return tail


def publish(tail: ThreadTail, text: str = "hello", type: str = "notice") -> None:
    """Commit one event to a tail, as the journal would."""
    tail.publish(stored(tail.head + 1, text, type))
    tail.notify()


def stored(seq: int, text: str, type: str = "notice") -> StoredEvent:
    return StoredEvent(1, seq, type, 1.0, json.dumps({"message": text}).encode())


@dataclass
class Stage:
    """What a test has in hand."""

    desk: Desk
    listener: Listener
    bound: Bound
    port: int
    nursery: trio.Nursery
    late: Lateness
    socket: Path | None = None
    clients: list[RawClient] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    @property
    def connection(self) -> Connection:
        (only,) = self.listener.connections
        return only

    async def raw(self, *, receive_buffer: int | None = None) -> RawClient:
        """A TCP connection that has said nothing yet."""
        client = trio.socket.socket()
        if receive_buffer is not None:
            client.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, receive_buffer)
        try:
            await client.connect(("127.0.0.1", self.port))
        except OSError:
            client.close()
            raise
        return self.keep(RawClient(trio.SocketStream(client), self.port))

    def keep(self, client: RawClient) -> RawClient:
        """Have the client closed when the test is over."""
        self.clients.append(client)
        return client

    async def opened(self, *, receive_buffer: int | None = None, path: str = "/ws") -> RawClient:
        """A WebSocket that has read its first frame."""
        client = await self.raw(receive_buffer=receive_buffer)
        status, _ = await client.upgrade(path=path)
        assert status == 101
        assert (await client.message())["params"]["type"] == "gateway.ready"
        return client


@contextlib.asynccontextmanager
async def stage(
    desk: Desk | None = None,
    *,
    limits: Limits | None = None,
    unix: Path | None = None,
    uid: int | None = None,
    origins: tuple[str, ...] = (),
    hosts: tuple[str, ...] = (),
    compress: bool = False,
    ready: Callable[[], bool] = lambda: True,
    tls: Secure | None = None,
    proxies: Proxies = NO_PROXIES,
    peer: str | None = None,
) -> AsyncIterator[Stage]:
    desk = desk or Desk()
    bound = await listen_tcp("127.0.0.1", 0)
    known = None if peer is None else Peer(peer)
    bound = Bound(bound.listener, unix=False, compress=compress, tls=tls, known=known)
    entry = Entry(
        LaunchToken(TOKEN),
        hosts=host_names("127.0.0.1", bound.port, hosts),
        origins=origins,
        uid=uid,
        scheme="http" if tls is None else "https",
    )
    pages = Pages(
        ready=ready,
        openrpc=lambda: b'{"openrpc":"1.3.2"}',
        asyncapi=lambda: b'{"asyncapi":"3.0.0"}',
        files=static_files.read(),
    )
    late = Lateness()
    site = Site(
        entry,
        pages,
        limits or Limits(),
        late,
        own_name=lambda name: name if name == "work" else None,
        proxies=proxies,
    )
    listener = Listener(site, dispatcher=desk, welcome=welcome)
    async with trio.open_nursery() as nursery:
        every = [bound] if unix is None else [bound, listen_unix(unix)]
        await nursery.start(listener.run, every)
        on = Stage(desk, listener, bound, bound.port, nursery, late, unix)
        try:
            yield on
        finally:
            for client in on.clients:
                client.stream.socket.close()
            nursery.cancel_scope.cancel()


class HungUp(Exception):
    """The server closed the socket."""


class RawClient:
    """Bytes in, bytes out. Nothing is read that a test does not ask for."""

    def __init__(self, stream: trio.SocketStream, port: int) -> None:
        self.stream = stream
        self.port = port
        self.buffer = bytearray()

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def more(self) -> None:
        try:
            data = await self.stream.receive_some(65536)
        except trio.BrokenResourceError:
            raise HungUp("reset") from None
        if not data:
            raise HungUp("end")
        self.buffer += data

    async def exactly(self, count: int) -> bytes:
        while len(self.buffer) < count:
            await self.more()
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data

    async def until(self, mark: bytes) -> bytes:
        while mark not in self.buffer:
            await self.more()
        return await self.exactly(self.buffer.index(mark) + len(mark))

    async def to_the_end(self) -> bytes:
        with contextlib.suppress(HungUp):
            while True:
                await self.more()
        return bytes(self.buffer)

    # --- HTTP

    def head(self, path: str = "/ws", *, host: str | None = None, token: str | None = TOKEN, **headers: str) -> bytes:
        lines = [f"GET {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{self.port}'}"]
        if token is not None:
            lines.append(f"Authorization: Bearer {token}")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode()

    def upgrade_head(self, path: str = "/ws", **headers: Any) -> bytes:
        given = {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec_WebSocket_Key": base64.b64encode(os.urandom(16)).decode(),
            "Sec_WebSocket_Version": "13",
        }
        return self.head(path, **{**given, **headers})

    async def upgrade(self, path: str = "/ws", **headers: Any) -> tuple[int, dict[str, str]]:
        await self.send(self.upgrade_head(path, **headers))
        status, answered, _ = await self.response(body=False)
        return status, answered

    async def response(self, *, body: bool = True) -> tuple[int, dict[str, str], bytes]:
        lines = (await self.until(b"\r\n\r\n")).decode().split("\r\n")
        status = int(lines[0].split(" ")[1])
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        content = await self.exactly(int(headers.get("content-length", "0"))) if body and status != 101 else b""
        return status, headers, content

    # --- WebSocket

    @staticmethod
    def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, rsv: int = 0, masked: bool = True) -> bytes:
        first = (0x80 if fin else 0) | rsv << 4 | opcode
        mask_bit = 0x80 if masked else 0
        size = len(payload)
        if size < 126:
            head = struct.pack("!BB", first, mask_bit | size)
        elif size < 65536:
            head = struct.pack("!BBH", first, mask_bit | 126, size)
        else:
            head = struct.pack("!BBQ", first, mask_bit | 127, size)
        if not masked:
            return head + payload
        mask = os.urandom(4)
        return head + mask + apply_mask(payload, mask)

    async def call(self, id: int | str, method: str, **params: Any) -> None:
        await self.send(self.request(id, method, **params))

    def request(self, id: int | str, method: str, **params: Any) -> bytes:
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        return self.frame(1, json.dumps(message).encode())

    async def receive(self) -> tuple[int, bytes]:
        first, second = await self.exactly(2)
        assert not second & 0x80, "a server does not mask"
        assert first & 0x80, "the server sends whole messages"
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", await self.exactly(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", await self.exactly(8))
        return first & 0x7F, await self.exactly(size)

    async def message(self) -> Any:
        """The next text message, as a value; pings are passed over."""
        while True:
            opcode, payload = await self.receive()
            if opcode == 1:
                return json.loads(payload)
            assert opcode == 9, f"opcode {opcode}: {payload!r}"

    async def closed_with(self) -> int:
        """The code of the close frame that comes before the end; what comes before it is passed over."""
        while True:
            opcode, payload = await self.receive()
            if opcode == 8:
                return struct.unpack("!H", payload[:2])[0] if payload else 1005

    async def close(self) -> None:
        await self.stream.aclose()


BLOCK = 250_000
"""Bytes of one answer that fills a socket with a small receive buffer."""


async def fill_socket(desk: Desk, client: RawClient) -> None:
    """Fill the socket with more than it takes from a client that does not read."""
    before = len(desk.seen)
    for number in range(4):
        await client.call(f"block-{number}", "big", bytes=BLOCK)
    while len(desk.seen) < before + 4:
        await trio.lowlevel.checkpoint()


def some_frame() -> Frame:
    return notification_frame("event", {"type": "notice", "payload": {}})
