"""A fast client beside clients that read nothing, against the same client alone."""

from __future__ import annotations

import json
import socket
import threading
import time
from statistics import median

import trio

from bench.delivery import TOKEN, Desk, served
from bench.figure import Figure
from bench.load import Peer

ROUNDS = 7
"""Odd, so that the median was measured."""

STALLED = 10
"""Clients that read nothing."""

EVENTS = 4000
"""Events of a round, of a kilobyte each: far more than a socket takes of a client that does not read."""

_LISTEN = b'{"jsonrpc":"2.0","id":1,"method":"listen"}'


class _Fast(threading.Thread):
    """Reads until it has the last event of the round, and keeps when that was."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.peer = Peer(port, TOKEN)
        self.peer.answer(_LISTEN)
        self.wanted = 0
        self.begin = threading.Event()
        self.done = threading.Event()

    def run(self) -> None:
        while True:
            self.begin.wait()
            self.begin.clear()
            if not self.wanted:
                return
            last = b'"seq":%d,' % self.wanted
            while not any(last in frame for frame in self.peer.read()):
                pass
            self.done.set()


async def _round(desk: Desk, fast: _Fast) -> float:
    """Events a second, from the first commit to the last one read."""
    fast.wanted = desk.tail.head + EVENTS
    fast.done.clear()
    fast.begin.set()
    began = time.perf_counter()
    for _ in range(EVENTS // 20):
        desk.commit(20)
        desk.tail.notify()
        await trio.lowlevel.checkpoint()
    await trio.to_thread.run_sync(fast.done.wait, 60)
    return EVENTS / (time.perf_counter() - began)


def _stalled(port: int) -> Peer:
    peer = Peer(port, TOKEN)
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    peer.answer(_LISTEN)
    return peer


async def _measure() -> list[Figure]:
    alone, beside = list[float](), list[float]()
    for results, others in ((alone, 0), (beside, STALLED)) * ROUNDS:
        async with served(json.dumps({"message": "x" * 1000}).encode()) as (desk, port, _):
            fast = await trio.to_thread.run_sync(_Fast, port)
            fast.start()
            kept = [await trio.to_thread.run_sync(_stalled, port) for _ in range(others)]
            results.append(await _round(desk, fast))
            fast.wanted = 0
            fast.begin.set()
            for peer in (*kept, fast.peer):
                peer.socket.close()
    return [
        Figure(f"events to a fast client beside {STALLED} stalled ones (alone)", median(beside), median(alone), "/s")
    ]


def figures() -> list[Figure]:
    """What the fast one gets."""
    return trio.run(_measure)


if __name__ == "__main__":
    for figure in figures():
        print(figure.row())
