"""A server of an earlier version: this one, behind a door that offers less and knows less.

It speaks for a version whose `session.create` had only some of today's parameters: it does not advertise the others,
and refuses a request that has one, as a strict server does. What it lets through has its real effect.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from tests.e2e.gateway_client import PATIENCE
from tests.e2e.process import Server


class Older:
    """The door. `asked` are the requests that came, in order."""

    def __init__(self, server: Server, without: frozenset[str], together: int) -> None:
        self._server = server
        self._without = without
        self._together = threading.Barrier(together)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.url = ""

    def serve(self, client: ServerConnection) -> None:
        describing: set[int] = set()
        headers = {"Authorization": client.request.headers["Authorization"]} if client.request else {}
        with (
            suppress(ConnectionClosed),
            connect(self._server.url, additional_headers=headers, subprotocols=["hermes.v1"], proxy=None) as behind,  # pyright: ignore[reportArgumentType]
        ):
            back = threading.Thread(target=self._back, args=(behind, client, describing), daemon=True)
            back.start()
            for message in client:
                frame = json.loads(message)
                if frame.get("method") == "runtime.describe":
                    describing.add(frame["id"])
                refusal = self._refusal(frame)
                if refusal is None:
                    if frame.get("method") == "session.create":
                        self._together.wait(PATIENCE)
                    behind.send(message, text=True)
                else:
                    client.send(json.dumps(refusal))

    def _refusal(self, frame: dict[str, Any]) -> dict[str, Any] | None:
        method, params = frame.get("method"), frame.get("params", {})
        if method is None:
            return None
        self.asked.append((method, params))
        unknown = sorted(self._without & params.keys()) if method == "session.create" else []
        if not unknown:
            return None
        error = {"code": 4000, "message": f"{unknown[0]} is unknown.", "data": {"type": "invalid_params"}}
        return {"jsonrpc": "2.0", "id": frame["id"], "error": error}

    def _back(self, behind: Any, client: ServerConnection, describing: set[int]) -> None:
        with suppress(ConnectionClosed):
            for message in behind:
                frame = json.loads(message)
                if frame.get("id") in describing and "result" in frame:
                    offered = frame["result"]["session_create"]["parameters"]
                    frame["result"]["session_create"]["parameters"] = [
                        each for each in offered if each not in self._without
                    ]
                client.send(json.dumps(frame))
        client.close()


@contextmanager
def older_server(server: Server, *without: str, together: int = 1) -> Generator[Older]:
    """An earlier version, on a port of loopback, over the homes of this server.

    Sessions are made so many at once: whoever asks for one waits at the door until all have.
    """
    older = Older(server, frozenset(without), together)
    with serve(older.serve, "127.0.0.1", 0, subprotocols=["hermes.v1"], compression=None) as listener:  # pyright: ignore[reportArgumentType]
        older.url = f"ws://127.0.0.1:{listener.socket.getsockname()[1]}/ws"
        thread = threading.Thread(target=listener.serve_forever)
        thread.start()
        yield older
        listener.shutdown()
        thread.join()
