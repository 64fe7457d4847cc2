"""One event to a thousand subscribers, against the same bytes written to the same sockets.

The listener, the connections and the thread's tail are ours, in this process; the subscribers are another process that
reads and forgets. The reference writes prebuilt frames to the very same sockets, in turns with ours.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

import trio

from bench.figure import Figure
from hermes_ws.journal.address import Address
from hermes_ws.journal.stored_event import StoredEvent
from hermes_ws.journal.tail import LiveMarks, ThreadTail
from hermes_ws.server.connection import Connection
from hermes_ws.server.entry import Entry, host_names
from hermes_ws.server.lateness import Lateness
from hermes_ws.server.limits import Limits
from hermes_ws.server.listener import Listener
from hermes_ws.server.ports import Page, Pages
from hermes_ws.server.sockets import listen_tcp
from hermes_ws.server.token import LaunchToken
from hermes_ws.server.visitor import Site
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import Frame, RequestId, event_frame, reply_frame
from hermes_ws.wire.peer import Request, Response

ROUNDS = 7
"""Odd, so that the median was measured."""

SUBSCRIBERS = 1000

EVENTS = 20
"""Events of a round, one by one: what they weigh fits into every socket, so that reading is not what is measured."""

BURST = 16
"""Events that one write carries, where they come together."""

PAUSE = 0.3
"""Seconds between two rounds, in which the subscribers read what is there."""

TOKEN = "bench"
_PAYLOAD = b'{"level":"info","type":"bench","message":"' + b"x" * 60 + b'"}'


class _Desk:
    """Answers `listen` with a subscription, and nothing else."""

    def __init__(self) -> None:
        self.tail = ThreadTail(Address("bench", "ses-1", "main"))
        self.tail.adopt(1, 0)

    def accept(self, connection: Connection, request: Request, size: int) -> None:
        connection.reply(reply_frame(request.id, {}))
        connection.subscribe(self.tail, Cursor(1, self.tail.head), LiveMarks(), _nothing_older)

    def answered(self, connection: Connection, response: Response) -> None: ...
    def cancelled(self, connection: Connection, id: RequestId) -> None: ...
    def gone(self, connection: Connection) -> None: ...


async def _nothing_older(after: Cursor, budget: int) -> Page:
    raise RuntimeError("a subscriber fell behind what is in memory; the figure would mean nothing")


def _welcome(connection: Connection) -> Frame:
    return event_frame({"type": "gateway.ready", "ts": 0.0, "payload": {}})


def _commit(tail: ThreadTail, count: int) -> None:
    for _ in range(count):
        tail.publish(StoredEvent(1, tail.head + 1, "notice", 1.0, _PAYLOAD))


def _ours(tail: ThreadTail, events: int, burst: int) -> float:
    """Deliveries a second, from the commit to the last socket."""
    began = time.perf_counter()
    for _ in range(events):
        _commit(tail, burst)
        tail.notify()
    return events * burst * SUBSCRIBERS / (time.perf_counter() - began)


def _raw(fds: Sequence[int], data: bytes, events: int, burst: int) -> float:
    together = data * burst
    began = time.perf_counter()
    for _ in range(events):
        for fd in fds:
            os.write(fd, together)
    return events * burst * SUBSCRIBERS / (time.perf_counter() - began)


async def _measure() -> list[Figure]:
    desk = _Desk()
    bound = await listen_tcp("127.0.0.1", 0)
    entry = Entry(LaunchToken(TOKEN), hosts=host_names("127.0.0.1", bound.port))
    site = Site(
        entry,
        Pages(ready=lambda: True, openrpc=lambda: b"{}", asyncapi=lambda: b"{}"),
        Limits(),
        Lateness(),
        lambda name: False,
    )
    listener = Listener(site, dispatcher=desk, welcome=_welcome)
    async with trio.open_nursery() as nursery:
        await nursery.start(listener.run, [bound])
        with _readers(bound.port) as said:
            if await trio.to_thread.run_sync(said) != b"ready\n":
                raise RuntimeError("the subscribers could not connect")
            measured = await _rounds(desk.tail, listener)
        nursery.cancel_scope.cancel()
    return measured


@contextlib.contextmanager
def _readers(port: int) -> Iterator[Callable[[], bytes]]:
    """The subscribers, as a process; what is given waits for its next line. They end when their stdin does."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    command = [sys.executable, "-m", "bench.load", str(port), str(SUBSCRIBERS), TOKEN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline
        finally:
            process.stdin.close()


async def _rounds(tail: ThreadTail, listener: Listener) -> list[Figure]:
    fds = [connection.fileno() for connection in listener.connections]
    data = StoredEvent(1, 1, "notice", 1.0, _PAYLOAD).frame(tail.address).ws
    singly: tuple[list[float], list[float]] = ([], [])
    bursts: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for results, events, burst in ((singly, EVENTS, 1), (bursts, EVENTS // 4, BURST)):
            await trio.sleep(PAUSE)
            results[0].append(_ours(tail, events, burst))
            await trio.sleep(PAUSE)
            results[1].append(_raw(fds, data, events, burst))
    behind = sum(connection.statistics().delivery.ready for connection in listener.connections)
    if behind:
        raise RuntimeError(f"{behind} subscribers are behind; the figure would mean nothing")
    return [
        Figure("one event to 1,000 subscribers", median(singly[0]), median(singly[1]), "/s"),
        Figure(f"{BURST} events at once to 1,000 subscribers", median(bursts[0]), median(bursts[1]), "/s"),
    ]


def figures() -> list[Figure]:
    """Deliveries a second, one by one and in bursts."""
    return trio.run(_measure)


if __name__ == "__main__":
    for figure in figures():
        print(figure.row())
