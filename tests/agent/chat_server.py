"""A small OpenAI-compatible server on loopback that behaves, or misbehaves, as it is told."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import h11
import trio

Answer = Callable[["Wire"], Awaitable[None]]


@dataclass
class Asked:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: Any


class Wire:
    """The server's end of one request."""

    def __init__(self, stream: trio.SocketStream, http: h11.Connection, asked: Asked) -> None:
        self.stream = stream
        self.asked = asked
        self._http = http

    async def send(self, event: Any) -> None:
        data = self._http.send(event)
        if data:
            await self.stream.send_all(data)

    async def refuse(self, status: int, body: object = "", **headers: str) -> None:
        content = (body if isinstance(body, str) else json.dumps(body)).encode()
        lines = [(name.replace("_", "-"), value) for name, value in headers.items()]
        await self.send(
            h11.Response(status_code=status, headers=[*lines, ("content-length", str(len(content))), *JSON])
        )
        await self.send(h11.Data(data=content))
        await self.send(h11.EndOfMessage())

    async def begin(self, content_type: str = "text/event-stream") -> None:
        headers = [("content-type", content_type), ("transfer-encoding", "chunked")]
        await self.send(h11.Response(status_code=200, headers=headers))

    async def raw(self, data: bytes) -> None:
        await self.send(h11.Data(data=data))

    async def chunk(self, chunk: object) -> None:
        await self.raw(b"data: " + json.dumps(chunk).encode() + b"\n\n")

    async def delta(self, finish_reason: str | None = None, **delta: object) -> None:
        await self.chunk({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})

    async def end(self) -> None:
        await self.raw(b"data: [DONE]\n\n")
        await self.send(h11.EndOfMessage())

    async def gone(self) -> None:
        """Say nothing until the client has left."""
        while await self.stream.receive_some(65_536):
            pass

    async def cut(self) -> None:
        await self.stream.aclose()


JSON = [("content-type", "application/json")]


class ChatServer:
    """Answers each request with the next answer; `asked` keeps the requests, `open` counts live connections."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answers: list[Answer] = []
        self.connections = 0
        self.open = 0
        self.idle = trio.Event()
        self.port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def handle(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        self.open += 1
        http = h11.Connection(h11.SERVER)
        try:
            while True:
                asked = await self._read(stream, http)
                if asked is None:
                    return
                self.asked.append(asked)
                await self.answers.pop(0)(Wire(stream, http, asked))
                if http.our_state is not h11.DONE:
                    return
                http.start_next_cycle()
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.ProtocolError):
            pass
        finally:
            await trio.aclose_forcefully(stream)
            self.open -= 1
            if not self.open:
                self.idle.set()

    async def _read(self, stream: trio.SocketStream, http: h11.Connection) -> Asked | None:
        request: h11.Request | None = None
        body = b""
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(await stream.receive_some(65_536))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                headers = {name.decode(): value.decode() for name, value in request.headers}
                return Asked(request.target.decode(), headers, json.loads(body))
            else:
                return None
