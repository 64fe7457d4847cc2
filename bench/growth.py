"""Whether things cost the same when there is much: requests beside many profiles, a thread with a long past."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

import trio

from bench import homes
from bench.figure import Figure
from bench.load import Peer, serial
from bench.requests import request
from bench.serve import Served, started_server
from hermes_ws.journal import events
from hermes_ws.journal.address import ThreadKey
from hermes_ws.wire.cursor import Cursor

PROFILES = (10, 100, 1000)
"""Homes on disk; up to `HOSTED` of them are open."""

HOSTED = 20

CALLS = 2000
ROUNDS = 5
"""Odd, so that the median was measured."""

LENGTHS = (10_000, 100_000, 1_000_000)
"""Events in a home."""

APPENDS = 2000
LATEST = 100
"""Events that a client missed which was away for a moment."""

_KEY = ThreadKey(homes.SESSION, "main")


def _many_homes(root: Path, count: int) -> None:
    for number in range(count - 1):
        home = root / f"profile-{number:04}"
        home.mkdir(mode=0o700)
        (home / "config.yaml").write_text("model:\n  provider: loopback\n")


def _open_some(served: Served, count: int) -> Peer:
    peer = Peer(served.port, served.token)
    for number in range(min(count - 1, HOSTED)):
        answer = peer.answer(
            b'{"jsonrpc":"2.0","id":%d,"method":"session.list","params":{"profile":"profile-%04d"}}' % (number, number)
        )
        if b'"error"' in answer[:60]:
            raise RuntimeError(answer.decode())
    return peer


def _requests() -> list[Figure]:
    """CPU of a request, the server being one of `PROFILES` sizes; each beside the smallest."""
    found: dict[int, float] = {}
    for count in PROFILES:
        with started_server(lambda root, count=count: _many_homes(root, count)) as served:
            peer = _open_some(served, count)
            peer.answer(request(0))
            loads = [serial(peer, request(0), CALLS, served.pid) for _ in range(ROUNDS)]
            found[count] = median(load.cpu_us for load in loads)
    least = found[PROFILES[0]]
    return [Figure(f"request, CPU per call, {count:,} profiles", found[count], least, "µs") for count in PROFILES]


async def _journal(home: Path) -> tuple[float, float]:
    """Committed appends a second of one producer after the other, and milliseconds for the latest events."""
    database = await homes.database(home)
    try:
        began = time.perf_counter()
        async with trio.open_nursery() as nursery:

            async def append() -> None:
                for _ in range(APPENDS // 8):
                    await database.transact(lambda tx: tx.append(_KEY, "notice", homes.NOTICE))

            for _ in range(8):
                nursery.start_soon(append)
        rate = APPENDS / (time.perf_counter() - began)
        tail = await database.open_tail(_KEY)
        after = Cursor(1, tail.head - LATEST)
        taken: list[float] = []
        for _ in range(51):
            began = time.perf_counter()
            found, _ = await database.read(lambda connection: events.since(connection, _KEY, after))
            taken.append((time.perf_counter() - began) * 1000)
            assert len(found) == LATEST
        return rate, median(taken)
    finally:
        await database.close()


def _lengths() -> list[Figure]:
    results: dict[int, list[tuple[float, float]]] = {length: [] for length in LENGTHS}
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as place:
        for length in LENGTHS:
            homes.write(Path(place) / str(length), length)
        for _ in range(ROUNDS):
            for length in LENGTHS:
                results[length].append(trio.run(_journal, Path(place) / str(length)))
    rates = {length: median(rate for rate, _ in found) for length, found in results.items()}
    reads = {length: median(read for _, read in found) for length, found in results.items()}
    shortest = LENGTHS[0]
    return [
        *(Figure(f"committed appends, {n:,} events before", rates[n], rates[shortest], "/s") for n in LENGTHS),
        *(Figure(f"the latest {LATEST} of {n:,} events", reads[n], reads[shortest], "ms") for n in LENGTHS),
    ]


def figures() -> list[Figure]:
    """Both; the reference is the smallest of each."""
    return [*_requests(), *_lengths()]


if __name__ == "__main__":
    for figure in figures():
        print(figure.row())
