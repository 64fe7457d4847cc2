"""One client face over every transport, so that one suite can run over all of them."""

from __future__ import annotations

import http.client
import json
import queue
import socket
import ssl
import subprocess
import sys
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from websockets.sync.client import ClientConnection, connect, unix_connect

from tests.e2e.gateway_client import CLOSE_S, PATIENCE, Refused

CAPABILITIES = {"client": {"name": "tests"}, "protocol": {"major": 1, "minor": 0}, "server_requests": True}


class TransportClient(ABC):
    """Keeps what it received, in order: replies by id, events, and questions."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.questions: list[dict[str, Any]] = []

    @abstractmethod
    def raw(self, request: str) -> dict[str, Any]:
        """Send a text and give the response that it gets."""

    @abstractmethod
    def pump(self) -> None:
        """Take one message that nobody asked for, or one answer, and put it where it belongs."""

    @abstractmethod
    def listen(self, session_id: str, after: str, **more: Any) -> None:
        """Follow the main thread of a session from a cursor on."""

    @abstractmethod
    def answer(self, question: dict[str, Any], **result: Any) -> None:
        """Answer a question."""

    @abstractmethod
    def close(self) -> None: ...

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        frame = self.raw(json.dumps({"jsonrpc": "2.0", "id": uuid.uuid4().hex, "method": method, "params": params}))
        if "error" in frame:
            raise Refused(frame["error"])
        result: dict[str, Any] = frame["result"]
        return result

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        seen = 0
        while True:
            for event in self.events[seen:]:
                if wanted(event):
                    return event
            seen = len(self.events)
            self.pump()

    def question(self) -> dict[str, Any]:
        while not self.questions:
            self.pump()
        return self.questions.pop(0)

    def session(self, **options: Any) -> dict[str, Any]:
        """A new session, followed from its beginning."""
        created = self.call("session.create", subscribe=False, **options)
        self.listen(created["session_id"], created["cursor"])
        return created

    def submit(self, session_id: str, text: str) -> dict[str, Any]:
        return self.call("prompt.submit", session_id=session_id, input_id=uuid.uuid4().hex, text=text)

    def finished(self, admission_id: str) -> dict[str, Any]:
        end = self.until(lambda e: e["type"] == "execution.finished" and e["admission_id"] == admission_id)
        payload: dict[str, Any] = end["payload"]
        return payload

    def take(self, frame: dict[str, Any]) -> None:
        if frame.get("method") == "event":
            self.events.append(frame["params"])
        elif "method" in frame:
            self.questions.append(frame)


class FramesClient(TransportClient):
    """Frames both ways: WebSockets and pipes."""

    def __init__(self) -> None:
        super().__init__()
        self.replies: list[dict[str, Any]] = []
        first = self.receive()
        assert first["params"]["type"] == "gateway.ready"
        self.ready = first["params"]["payload"]
        self.call("client.capabilities", **CAPABILITIES)

    @abstractmethod
    def send(self, text: str) -> None: ...

    @abstractmethod
    def receive(self) -> dict[str, Any]: ...

    def raw(self, request: str) -> dict[str, Any]:
        self.send(request)
        while not self.replies:
            self.pump()
        return self.replies.pop(0)

    def pump(self) -> None:
        frame = self.receive()
        if "method" in frame:
            self.take(frame)
        else:
            self.replies.append(frame)

    def listen(self, session_id: str, after: str, **more: Any) -> None:
        self.call("thread.subscribe", session_id=session_id, after=after, **more)

    def answer(self, question: dict[str, Any], **result: Any) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": result}))


class WebSocketClient(FramesClient):
    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        super().__init__()

    def send(self, text: str) -> None:
        self.socket.send(text)

    def receive(self) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(self.socket.recv(timeout=PATIENCE))
        return frame

    def close(self) -> None:
        with suppress(Exception):
            self.socket.close()


def websocket(url: str, token: str, *, profile: str | None = None, trusted: Path | None = None) -> WebSocketClient:
    headers = {"Authorization": f"Bearer {token}"}
    context = None if trusted is None else ssl.create_default_context(cafile=str(trusted))
    return WebSocketClient(
        connect(
            _bound(url, profile),
            additional_headers=headers,
            ssl=context,
            proxy=None,
            close_timeout=CLOSE_S,
            legacy=True,
        )
    )


def unix_websocket(path: str, token: str, *, profile: str | None = None) -> WebSocketClient:
    headers = {"Authorization": f"Bearer {token}"}
    url = _bound("ws://localhost/ws", profile)
    return WebSocketClient(
        unix_connect(path, url, additional_headers=headers, compression=None, close_timeout=CLOSE_S, legacy=True)
    )


def _bound(url: str, profile: str | None) -> str:
    return url if profile is None else url.removesuffix("/ws") + f"/p/{quote(profile)}/ws"


class StdioClient(FramesClient):
    """`hermes-ws stdio` as a process; its error output goes to a file."""

    def __init__(self, arguments: list[str], env: dict[str, str], log: Path) -> None:
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "hermes_ws.cli.main", "stdio", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=env,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        super().__init__()

    def send(self, text: str) -> None:
        self._in.write(text.encode() + b"\n")
        self._in.flush()

    def receive(self) -> dict[str, Any]:
        line = self._out.readline()
        assert line, "the process hung up"
        frame: dict[str, Any] = json.loads(line)
        return frame

    def close(self) -> None:
        self._in.close()
        rest = self._out.read()
        assert not rest or all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())
        self._out.close()
        assert self.process.wait(PATIENCE) == 0


class HttpClient(TransportClient):
    """`POST /rpc` for requests, `GET /events` for what follows; questions are answered by `question.answer`."""

    def __init__(self, url: str, token: str, *, profile: str | None = None) -> None:
        super().__init__()
        self._address = urlsplit(url)
        self._token = token
        self._prefix = "" if profile is None else f"/p/{quote(profile)}"
        self._connection = http.client.HTTPConnection(self._address.netloc, timeout=PATIENCE)
        self._arrived: queue.Queue[dict[str, Any]] = queue.Queue()
        self._streams: list[EventSource] = []

    def raw(self, request: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}"}
        self._connection.request("POST", f"{self._prefix}/rpc", request.encode("utf-8", "surrogatepass"), headers)
        response = self._connection.getresponse()
        body = response.read()
        assert response.status == 200, (response.status, body)
        frame: dict[str, Any] = json.loads(body)
        return frame

    def pump(self) -> None:
        self.take(self._arrived.get(timeout=PATIENCE))

    def listen(self, session_id: str, after: str, **more: Any) -> None:
        query = {"session_id": session_id, "after": after, "server_requests": "true", **more}
        self._streams.append(
            EventSource(self._address.netloc, f"{self._prefix}/events?{urlencode(query)}", self._token, self._arrived)
        )

    def answer(self, question: dict[str, Any], **result: Any) -> None:
        self.call("question.answer", id=question["id"], result=result)

    def close(self) -> None:
        self._connection.close()
        for stream in self._streams:
            stream.close()


class EventSource:
    """Server-Sent Events, read by a thread; `ids` are what a browser would say with Last-Event-ID."""

    def __init__(
        self, netloc: str, path: str, token: str, arrived: queue.Queue[dict[str, Any]], last: str | None = None
    ) -> None:
        self.ids: list[str] = []
        self.comments: list[str] = []
        self.closed: dict[str, Any] | None = None
        self._connection = http.client.HTTPConnection(netloc, timeout=PATIENCE)
        headers = {"Authorization": f"Bearer {token}"} | ({} if last is None else {"Last-Event-ID": last})
        self._connection.request("GET", path, headers=headers)
        self._socket: socket.socket | None = self._connection.sock
        self.response = self._connection.getresponse()
        self._arrived = arrived
        if self.response.status == 200:
            # The first block is the stream's opening: once it is here, nothing that happens is missed.
            self._block()
            self._thread = threading.Thread(target=self._read, daemon=True)
            self._thread.start()

    def _read(self) -> None:
        with suppress(OSError, ValueError, http.client.HTTPException, AttributeError):
            while self._block():
                pass

    def _block(self) -> bool:
        data, kind = "", "message"
        while line := self.response.readline().decode():
            if line == "\n":
                if data and kind == "closed":
                    self.closed = json.loads(data)
                elif data:
                    self._arrived.put(json.loads(data))
                return True
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "id":
                self.ids.append(value)
            elif name == "data":
                data += value
            elif name == "event":
                kind = value
            elif name == "":
                self.comments.append(value)
        return False

    def join(self) -> None:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def close(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        if self.response.status == 200:
            self.join()
        self.response.close()
        self._connection.close()
        if self._socket is not None:
            self._socket.close()
