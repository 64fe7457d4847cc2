"""A client that was away for ten thousand events: over a socket of the server, against reading them from SQLite."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from pathlib import Path
from statistics import median

from bench import homes
from bench.figure import Figure
from bench.load import Peer, masked
from bench.serve import started_server

ROUNDS = 7
"""Odd, so that the median was measured."""

EVENTS = 10_000

_SUBSCRIBE = b'{"jsonrpc":"2.0","id":%d,"method":"thread.subscribe","params":{"session_id":"%s","after":"1:0"}}'


def _over_a_socket(peer: Peer, number: int) -> float:
    """Milliseconds from the request to the last event."""
    last = b'"cursor":"1:%d"' % EVENTS
    began = time.perf_counter()
    peer.socket.sendall(masked(_SUBSCRIBE % (number, homes.SESSION.encode())))
    count = 0
    while count < EVENTS:
        frames = peer.read()
        count += sum(1 for frame in frames if b'"type":"notice"' in frame[:80])
    took = time.perf_counter() - began
    assert last in frames[-1]
    return took * 1000


def _from_sqlite(file: Path) -> float:
    """Milliseconds of reading the same rows at once."""
    connection = sqlite3.connect(file)
    began = time.perf_counter()
    rows = connection.execute("SELECT * FROM event WHERE thread = 1 ORDER BY generation, seq").fetchall()
    took = time.perf_counter() - began
    connection.close()
    assert len(rows) == EVENTS
    return took * 1000


def figures() -> list[Figure]:
    """Both, in turns."""
    ours, raw = list[float](), list[float]()
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as place:
        homes.write(Path(place), EVENTS)
        with started_server(lambda root: homes.write(root / "default", EVENTS)) as served:
            peer = Peer(served.port, served.token)
            peer.frames()
            for number in range(ROUNDS):
                ours.append(_over_a_socket(peer, number))
                raw.append(_from_sqlite(Path(place) / "state" / "sessions.db"))
    return [Figure(f"catching up {EVENTS:,} events over a socket", median(ours), median(raw), "ms")]


if __name__ == "__main__":
    for figure in figures():
        print(figure.row())
