"""Making a session, beside one durable row; and how late the loop is while fifty sessions run.

Lateness is what a timer sees that wants to run every few milliseconds: the time in which nobody else had a turn. The
reference is the same model, its pieces read by fifty loops that do nothing else.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

import trio

from bench.agent import Model, hosted
from bench.figure import Figure
from bench.load import Peer, serial
from bench.quiet import first_in_line
from bench.serve import started_bare, started_server
from hermes_ws.contract.methods.prompts import SubmitParams
from hermes_ws.contract.methods.sessions import CreateParams
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.scope.identity import ProfileName

ROUNDS: Final = 5
"""Odd, so that the median was measured."""

CREATED: Final = 200
"""Sessions of a round, one after the other."""

RUNNING: Final = 50
TURNS: Final = 2
"""Turns of each session in a round."""

GAP_S: Final = 0.02
"""Between two pieces of one model: fifty a second, two and a half thousand for all."""

TICK_S: Final = 0.002
"""Between two looks at the clock."""

_CREATE: Final = b'{"jsonrpc":"2.0","id":0,"method":"session.create","params":{"subscribe":false}}'
_ASK: Final = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"


def figures() -> list[Figure]:
    """Medians."""
    with first_in_line():
        return [*_creating(), *trio.run(_lateness)]


# --- session.create --------------------------------------------------------------------------------------------------


def _creating() -> list[Figure]:
    ours, row = list[float](), list[float]()
    with started_server() as served, started_bare() as bare, tempfile.TemporaryDirectory() as directory:
        connection = sqlite3.connect(Path(directory) / "one.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE t (x)")
        peer, plain = Peer(served.port, served.token), Peer(bare.port)
        if b'"error"' in peer.answer(_CREATE)[:60]:
            raise RuntimeError("no session was made")
        for _ in range(ROUNDS):
            ours.append(serial(peer, _CREATE, CREATED, served.pid).p50_us / 1000)
            row.append(serial(plain, _CREATE, CREATED, bare.pid).p50_us / 1000 + _durable_row(connection))
        connection.close()
        for each in (peer, plain):
            each.socket.close()
    return [Figure("session.create, p50 (bare and one durable row)", median(ours), median(row), "ms")]


def _durable_row(connection: sqlite3.Connection) -> float:
    """Milliseconds that one takes."""
    times: list[float] = []
    for _ in range(CREATED):
        began = perf_counter()
        connection.execute("INSERT INTO t VALUES (1)")
        times.append((perf_counter() - began) * 1000)
    return median(times)


# --- the loop with fifty sessions ------------------------------------------------------------------------------------


class _Clock:
    """Looks at the time again and again; `worst` is the longest that it had to wait beyond what it asked for."""

    def __init__(self) -> None:
        self.worst = 0.0

    async def run(self) -> None:
        while True:
            due = perf_counter() + TICK_S
            await trio.sleep(TICK_S)
            self.worst = max(self.worst, perf_counter() - due)


async def _lateness() -> list[Figure]:
    ours, raw = list[float](), list[float]()
    model = Model(GAP_S)
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=2 * RUNNING)
        nursery.start_soon(trio.serve_listeners, model.serve, listeners)
        port: int = listeners[0].socket.getsockname()[1]
        with tempfile.TemporaryDirectory() as directory:
            host = hosted(Path(directory), port)
            await nursery.start(host.run)
            runtime = await host.open(ProfileName("default"))
            await _all_sessions(runtime, "warm")
            for number in range(ROUNDS):
                ours.append(await _watched(lambda number=number: _all_sessions(runtime, str(number))))
                raw.append(await _watched(lambda: _all_readers(port)))
            await host.drain(0)
        nursery.cancel_scope.cancel()
    what = f"worst lateness of the loop, {RUNNING} running sessions ({RUNNING} plain readers)"
    return [Figure(what, median(ours), median(raw), "ms")]


async def _watched(work: Callable[[], Awaitable[None]]) -> float:
    """The worst lateness, in milliseconds, while something goes on."""
    clock = _Clock()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(clock.run)
        await work()
        nursery.cancel_scope.cancel()
    return clock.worst * 1000


async def _all_sessions(runtime: ProfileRuntime, round: str) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(RUNNING):
            nursery.start_soon(_session, runtime, f"{round}-{number}")


async def _session(runtime: ProfileRuntime, name: str) -> None:
    """One conversation, followed by somebody who takes each piece as it comes."""
    session, _ = await runtime.sessions.create(CreateParams(), "owner")
    thread = await session.thread("main")
    _, cursor, marks = await thread.subscription_start(None, messages=False)
    news = trio.Event()

    def wake() -> None:
        news.set()

    thread.tail.attach(wake)
    for turn in range(TURNS):
        params = SubmitParams(session_id=session.session_id, input_id=f"{name}-{turn}", text="hello")
        await thread.submit(params, "owner")
        finished = False
        while not finished:
            taken = thread.tail.take(cursor, marks, 1 << 20)
            cursor = taken.cursor
            finished = any(frame.type == "execution.finished" for frame in taken.frames)
            if not finished and not taken.more:
                await news.wait()
                news = trio.Event()
    thread.tail.detach(wake)


async def _all_readers(port: int) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(RUNNING):
            nursery.start_soon(_reader, port)


async def _reader(port: int) -> None:
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        for _ in range(TURNS):
            await stream.send_all(_ASK)
            held = b""
            while b"[DONE]" not in held:
                held = (held + await stream.receive_some(65_536))[-200:]
            await trio.sleep(GAP_S)


if __name__ == "__main__":
    for figure in figures():
        print(figure.row())
