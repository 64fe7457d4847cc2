"""A client of the tests that keeps every frame, in order."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.e2e import declared

PATIENCE = 30.0
"""Seconds after which something that has not happened will not: generous, since test machines are shared."""


class Refused(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']} {error['message']}")
        self.code: int = error["code"]
        self.type: str = error["data"]["type"]
        self.data: dict[str, Any] = error["data"]


CLOSE_S = 1.0
"""Seconds for a goodbye: where more has come than was read, the library waits for it in vain."""


class Client:
    """A WebSocket that keeps what it received, in order: replies by id, events, and questions. What the contract does
    not declare it refuses."""

    def __init__(
        self, url: str, token: str, *, server_requests: bool | list[str] = True, negotiate: bool = True, **said: Any
    ) -> None:
        self.socket: ClientConnection = connect(
            url,
            additional_headers={"Authorization": f"Bearer {token}"},
            compression=None,
            proxy=None,
            legacy=True,
            ping_interval=None,
            close_timeout=CLOSE_S,
        )
        self.events: list[dict[str, Any]] = []
        self.questions: list[dict[str, Any]] = []
        self.replies: dict[Any, dict[str, Any]] = {}
        self._next = 0
        self._asked: dict[int, str] = {}
        self.ready = self._read()["params"]
        assert self.ready["type"] == "gateway.ready"
        if negotiate:
            capabilities = {"client": {"name": "tests"}, "protocol": {"major": 1, "minor": 0}, **said}
            self.call("client.capabilities", server_requests=server_requests, **capabilities)

    def _read(self, timeout: float = PATIENCE) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(self.socket.recv(timeout=timeout))
        return frame

    def pump(self, timeout: float = PATIENCE) -> dict[str, Any]:
        """Take one frame from the socket and put it where it belongs."""
        frame = self._read(timeout)
        declared.check(frame, self._asked.pop(frame.get("id", 0), None))
        if frame.get("method") == "event":
            self.events.append(frame["params"])
        elif "method" in frame:
            self.questions.append(frame)
        else:
            self.replies[frame["id"]] = frame
        return frame

    def send(self, method: str, **params: Any) -> int:
        self._next += 1
        self._asked[self._next] = method
        self.socket.send(json.dumps({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}))
        return self._next

    def wait(self, id: int) -> dict[str, Any]:
        while id not in self.replies:
            self.pump()
        frame = self.replies.pop(id)
        if "error" in frame:
            raise Refused(frame["error"])
        result: dict[str, Any] = frame["result"]
        return result

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.wait(self.send(method, **params))

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first event that is wanted; waits for it."""
        seen = 0
        while True:
            for event in self.events[seen:]:
                if wanted(event):
                    return event
            seen = len(self.events)
            self.pump()

    def question(self, index: int = 0) -> dict[str, Any]:
        while len(self.questions) <= index:
            self.pump()
        return self.questions[index]

    def submit(self, session_id: str, text: str, **options: Any) -> dict[str, Any]:
        return self.call("prompt.submit", session_id=session_id, input_id=uuid.uuid4().hex, text=text, **options)

    def finished(self, admission_id: str) -> dict[str, Any]:
        """The payload of the end of an execution."""
        event = self.until(lambda e: e["type"] == "execution.finished" and e["admission_id"] == admission_id)
        payload: dict[str, Any] = event["payload"]
        return payload

    def answer(self, question: dict[str, Any], **result: Any) -> None:
        self.socket.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": result}))

    def run(self, session_id: str, command: str) -> dict[str, Any]:
        """Let the agent run a command, allow it, and give the payload of its `tool.complete`."""
        before, done = len(self.questions), len(self.events)
        admitted = self.submit(session_id, f"/do run {command}")
        end = None
        while end is None:
            for event in self.events[done:]:
                if event["type"] == "execution.finished" and event["admission_id"] == admitted["admission_id"]:
                    end = event
            if len(self.questions) > before:
                self.answer(self.questions[before], choice="once")
                before += 1
            if end is None:
                self.pump()
        assert end["payload"]["outcome"] == "completed", end
        completed = [e["payload"] for e in self.events[done:] if e["type"] == "tool.complete"]
        assert len(completed) == 1, completed
        return completed[0]

    def close(self) -> None:
        with suppress(Exception):
            self.socket.close()

    def cut(self) -> None:
        """End the connection as a machine that vanishes does: no close frame, nothing read any more."""
        self.socket.socket.shutdown(socket.SHUT_RDWR)
        self.close()
