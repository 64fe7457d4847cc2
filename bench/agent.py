"""What a turn adds to a model: from the input to the request that reaches it, and from each of its pieces to a viewer.

The model is a server of a few lines in this process that stamps each piece with the time at which it leaves. The
reference is a socket on which the same pieces are read by nothing but a loop.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

import h11
import orjson
import trio

from bench.figure import Figure
from hermes_ws.contract.methods.connection import ClientTool
from hermes_ws.contract.methods.prompts import SubmitParams
from hermes_ws.contract.methods.sessions import CreateParams
from hermes_ws.contract.questions import OpenQuestion
from hermes_ws.hosting.host import Host
from hermes_ws.scope.environment import StartEnvironment
from hermes_ws.scope.home import HomesRoot
from hermes_ws.scope.identity import ProfileName
from hermes_ws.session.ports import Counted

TURNS: Final = 12
"""Turns that are measured, after two that warm up."""

PIECES: Final = 60
GAP_S: Final = 0.005
"""Between two pieces: a fast model says two hundred a second."""

_STAMP: Final = re.compile(r"<(\d+)>")


class Nobody:
    """An audience without people."""

    def ask(self, question: OpenQuestion, profile: str) -> Counted:
        return Counted(0, 0)

    def client_tools(self, profile: str) -> tuple[ClientTool, ...]:
        return ()

    def settled(self, question_id: str, reason: str, profile: str) -> None:
        return None

    def sessions_changed(self, profile: str, session_id: str | None) -> None:
        return None


class Model:
    """Answers each request with stamped pieces, `gap_s` between two; `arrived` is when the last request came."""

    def __init__(self, gap_s: float = GAP_S) -> None:
        self.arrived = 0.0
        self._gap_s = gap_s

    async def serve(self, stream: trio.SocketStream) -> None:
        """One connection."""
        http = h11.Connection(h11.SERVER)
        async with stream:
            while await self._asked(stream, http):
                self.arrived = time.perf_counter()
                head = [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]
                await stream.send_all(http.send(h11.Response(status_code=200, headers=head)) or b"")
                for _ in range(PIECES):
                    await trio.sleep(self._gap_s)
                    await self._say(stream, http, {"content": f"<{time.perf_counter_ns()}>"}, None)
                await self._say(stream, http, {}, "stop")
                await stream.send_all(
                    (http.send(h11.Data(data=b"data: [DONE]\n\n")) or b"") + (http.send(h11.EndOfMessage()) or b"")
                )
                http.start_next_cycle()

    async def _asked(self, stream: trio.SocketStream, http: h11.Connection) -> bool:
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(await stream.receive_some(65_536))
            elif isinstance(event, h11.EndOfMessage):
                return True
            elif isinstance(event, h11.ConnectionClosed):
                return False

    async def _say(
        self, stream: trio.SocketStream, http: h11.Connection, delta: dict[str, str], reason: str | None
    ) -> None:
        chunk = orjson.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
        await stream.send_all(http.send(h11.Data(data=b"data: " + chunk + b"\n\n")) or b"")


def figures() -> list[Figure]:
    """Medians, and the 99th of a hundred."""
    return trio.run(_measured)


async def _measured() -> list[Figure]:
    model = Model()
    async with trio.open_nursery() as nursery:
        serve: Callable[..., Awaitable[object]] = partial(trio.serve_tcp, model.serve, 0, host="127.0.0.1")
        listeners = await nursery.start(serve)
        port: int = listeners[0].socket.getsockname()[1]
        with tempfile.TemporaryDirectory() as directory:
            submitted, added = await _turns(Path(directory), model, port)
        raw = await _raw(port)
        nursery.cancel_scope.cancel()
    cut = statistics.quantiles(added, n=100)[98]
    return [
        Figure("submit to request at the model, warm", statistics.median(submitted) * 1000, None, "ms"),
        Figure(
            "added to a piece, model to viewer, p50",
            statistics.median(added) * 1000,
            statistics.median(raw) * 1000,
            "ms",
        ),
        Figure("added to a piece, model to viewer, p99", cut * 1000, statistics.quantiles(raw, n=100)[98] * 1000, "ms"),
    ]


def hosted(root: Path, port: int) -> Host:
    """A host over one home whose model listens on `port`."""
    home = root / "homes" / "default"
    home.mkdir(parents=True, mode=0o700)
    home.parent.chmod(0o700)
    provider = f'{{kind: openai, base_url: "http://127.0.0.1:{port}/v1", api_key: x}}'
    settings = f"agent: {{titles: words}}\nmodel: {{provider: mine, name: m}}\nproviders: {{mine: {provider}}}\n"
    (home / "config.yaml").write_text(settings)
    start = StartEnvironment(base={"PATH": "/usr/bin:/bin"}, parameters={}, launch_secrets={})
    return Host(HomesRoot.directory(home.parent), start, instance_id="bench", audience=Nobody())


async def _turns(root: Path, model: Model, port: int) -> tuple[list[float], list[float]]:
    host = hosted(root, port)
    submitted: list[float] = []
    added: list[float] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(host.run)
        runtime = await host.open(ProfileName.parse("default"))
        session, _ = await runtime.sessions.create(CreateParams(), "owner")
        thread = await session.thread("main")
        _, cursor, marks = await thread.subscription_start(None, messages=False)
        news = trio.Event()

        def wake() -> None:
            news.set()

        thread.tail.attach(wake)
        for number in range(TURNS + 2):
            begun = time.perf_counter()
            params = SubmitParams(session_id=session.session_id, input_id=f"input-{number}", text="hello")
            await thread.submit(params, "owner")
            finished = False
            while not finished:
                taken = thread.tail.take(cursor, marks, 1 << 20)
                cursor = taken.cursor
                now = time.perf_counter_ns()
                for frame in taken.frames:
                    kind = orjson.loads(frame.json)["params"]["type"]
                    finished = finished or kind == "execution.finished"
                    if kind == "message.delta" and number >= 2:
                        text = orjson.loads(frame.json)["params"]["payload"]["text"]
                        added += [(now - int(stamp)) / 1e9 for stamp in _STAMP.findall(text)]
                if not finished and not taken.more:
                    await news.wait()
                    news = trio.Event()
            if number >= 2:
                submitted.append(model.arrived - begun)
        thread.tail.detach(wake)
        await host.drain(0)
        nursery.cancel_scope.cancel()
    return submitted, added


async def _raw(port: int) -> list[float]:
    """The same pieces, read from the socket by a loop."""
    added: list[float] = []
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream:
        for _ in range(TURNS):
            await stream.send_all(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
            held = b""
            while b"[DONE]" not in held:
                data = await stream.receive_some(65_536)
                now = time.perf_counter_ns()
                held = (held + data)[-200:]
                added += [(now - int(stamp)) / 1e9 for stamp in _STAMP.findall(data.decode())]
            await trio.sleep(0.01)
            with trio.move_on_after(0.05):
                await stream.receive_some(65_536)
    return added
