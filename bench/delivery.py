"""One event to many subscribers, against the same bytes written to the same sockets.

The listener, the connections and the thread's tail are ours, in this process; the subscribers are another process that
reads and forgets. The reference writes prebuilt frames to the very same sockets, in turns with ours.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
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

ROUNDS = 5
"""Odd, so that the median was measured."""

SUBSCRIBERS = (1, 10, 100, 1000, 5000)

DELIVERIES = 20_000
"""Deliveries of a round, together: some hundred milliseconds."""

EVENTS = 20
"""Events in a row, one by one: what they weigh fits into every socket, so that reading is not what is measured."""

BREATHS = 20
"""Times at most that a round stops for the subscribers to read what is there."""

BURST = 16
"""Events that one write carries, where they come together."""

PAUSE = 0.2
"""Seconds between two rounds, in which the subscribers read what is there."""

BREATH = 0.01
"""The same within a round, for few subscribers."""

TOKEN = "bench"
_PAYLOAD = b'{"level":"info","type":"bench","message":"' + b"x" * 60 + b'"}'


class Desk:
    """Answers `listen` with a subscription, and nothing else. What is older than memory it still has."""

    def __init__(self, payload: bytes = _PAYLOAD) -> None:
        self.tail = ThreadTail(Address("bench", "ses-1", "main"))
        self.tail.adopt(1, 0)
        self._payload = payload

    def commit(self, count: int) -> None:
        """Publish so many events, without telling anybody yet."""
        for _ in range(count):
            self.tail.publish(self._event(self.tail.head + 1))

    def accept(self, connection: Connection, request: Request, size: int) -> None:
        connection.reply(reply_frame(request.id, {}))
        connection.subscribe(self.tail, Cursor(1, self.tail.head), LiveMarks(), self._older)

    def rested(self, connection: Connection) -> None: ...
    def answered(self, connection: Connection, response: Response) -> None: ...
    def cancelled(self, connection: Connection, id: RequestId) -> None: ...
    def gone(self, connection: Connection) -> None: ...

    def _event(self, seq: int) -> StoredEvent:
        return StoredEvent(1, seq, "notice", 1.0, self._payload)

    async def _older(self, after: Cursor, budget: int) -> Page:
        await trio.lowlevel.checkpoint()
        last = min(self.tail.head, after.seq + 50)
        frames = tuple(self._event(seq).frame(self.tail.address) for seq in range(after.seq + 1, last + 1))
        return Page(frames, Cursor(1, last))


def _welcome(connection: Connection) -> Frame:
    return event_frame({"type": "gateway.ready", "ts": 0.0, "payload": {}})


def _ours(desk: Desk, events: int, burst: int) -> float:
    """Seconds from the first commit to the last socket."""
    began = time.perf_counter()
    for _ in range(events):
        desk.commit(burst)
        desk.tail.notify()
    return time.perf_counter() - began


def _raw(fds: Sequence[int], data: bytes, events: int, burst: int) -> float:
    together = data * burst
    began = time.perf_counter()
    for _ in range(events):
        for fd in fds:
            os.write(fd, together)
    return time.perf_counter() - began


async def _rate(deliver: Callable[[int, int], float], count: int, burst: int) -> float:
    """Deliveries a second of one round."""
    events = max(2, EVENTS // burst)
    breaths = max(1, min(BREATHS, DELIVERIES // (events * burst * count)))
    took = 0.0
    for _ in range(breaths):
        took += deliver(events, burst)
        await trio.sleep(BREATH if count < 1000 else PAUSE)
    return breaths * events * burst * count / took


@contextlib.asynccontextmanager
async def served(payload: bytes = _PAYLOAD) -> AsyncIterator[tuple[Desk, int, Listener]]:
    """A desk behind a listener on loopback, its port, and the listener."""
    desk = Desk(payload)
    bound = await listen_tcp("127.0.0.1", 0)
    entry = Entry(LaunchToken(TOKEN), hosts=host_names("127.0.0.1", bound.port))
    pages = Pages(ready=lambda: True, openrpc=lambda: b"{}", asyncapi=lambda: b"{}", files={})
    # The subscribers answer no pings: what they cost is not to be measured.
    site = Site(entry, pages, Limits(ping_every=600), Lateness(), lambda name: False)
    listener = Listener(site, dispatcher=desk, welcome=_welcome)
    async with trio.open_nursery() as nursery:
        await nursery.start(listener.run, [bound])
        yield desk, bound.port, listener
        nursery.cancel_scope.cancel()


async def _measure(subscribers: int) -> list[Figure]:
    async with served() as (desk, port, listener):
        with _readers(port, subscribers) as said:
            if await trio.to_thread.run_sync(said) != b"ready\n":
                raise RuntimeError("the subscribers could not connect")
            return await _rounds(desk, listener)


@contextlib.contextmanager
def _readers(port: int, subscribers: int) -> Iterator[Callable[[], bytes]]:
    """The subscribers, as a process; what is given waits for its next line. They end when their stdin does."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    command = [sys.executable, "-m", "bench.load", str(port), str(subscribers), TOKEN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline
        finally:
            process.stdin.close()


async def _rounds(desk: Desk, listener: Listener) -> list[Figure]:
    fds = [connection.fileno() for connection in listener.connections]
    data = StoredEvent(1, 1, "notice", 1.0, _PAYLOAD).frame(desk.tail.address).ws
    count = len(fds)
    singly: tuple[list[float], list[float]] = ([], [])
    bursts: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for results, burst in ((singly, 1), (bursts, BURST)):
            await trio.sleep(PAUSE)
            results[0].append(await _rate(lambda events, burst: _ours(desk, events, burst), count, burst))
            await trio.sleep(PAUSE)
            results[1].append(await _rate(lambda events, burst: _raw(fds, data, events, burst), count, burst))
    behind = sum(connection.statistics().delivery.ready for connection in listener.connections)
    if behind:
        raise RuntimeError(f"{behind} subscribers are behind; the figure would mean nothing")
    whom = f"{count:,} subscribers" if count > 1 else "one subscriber"
    return [
        Figure(f"one event to {whom}", median(singly[0]), median(singly[1]), "/s"),
        Figure(f"{BURST} events at once to {whom}", median(bursts[0]), median(bursts[1]), "/s"),
    ]


def figures() -> list[Figure]:
    """Deliveries a second, one by one and in bursts, to few and to many."""
    return [figure for count in SUBSCRIBERS for figure in trio.run(_measure, count)]


if __name__ == "__main__":
    for figure in figures():
        print(figure.row())
