"""From the command to the first answer, with one home and with a thousand on disk, beside the minimal server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from bench.figure import Figure
from bench.load import Peer
from bench.quiet import first_in_line
from bench.requests import request
from bench.serve import Served, resident, started_bare, started_server

ROUNDS: Final = 7
"""Odd, so that the median was measured."""

ON_DISK: Final = 1000


def _many(homes: Path) -> None:
    for number in range(ON_DISK - 1):
        home = homes / f"profile-{number:04}"
        home.mkdir(mode=0o700)
        (home / "config.yaml").write_text("model:\n  provider: loopback\n")


def _once(started: Callable[[], AbstractContextManager[Served]]) -> tuple[float, float]:
    """Milliseconds from the start to the first answer, and MiB then."""
    with started() as served:
        peer = Peer(served.port, served.token)
        answer = peer.answer(request(0))
        took = (perf_counter() - served.began) * 1000
        if b'"error"' in answer[:60]:
            raise RuntimeError(answer.decode())
        memory = resident(served.pid) / 1024 / 1024
        peer.socket.close()
        return took, memory


def figures() -> list[Figure]:
    """Medians of rounds that alternate."""
    one, many, bare = list[tuple[float, float]](), list[tuple[float, float]](), list[tuple[float, float]]()
    for _ in range(ROUNDS):
        with first_in_line():
            one.append(_once(started_server))
            bare.append(_once(started_bare))
            many.append(_once(lambda: started_server(_many)))
    return [
        Figure("start to the first answer (bare)", _time(one), _time(bare), "ms"),
        Figure("memory then (bare)", _memory(one), _memory(bare), "MiB"),
        Figure(f"start to the first answer with {ON_DISK:,} homes on disk (one)", _time(many), _time(one), "ms"),
        Figure(f"memory then with {ON_DISK:,} homes on disk (one)", _memory(many), _memory(one), "MiB"),
    ]


def _time(rounds: list[tuple[float, float]]) -> float:
    return median(took for took, _ in rounds)


def _memory(rounds: list[tuple[float, float]]) -> float:
    return median(memory for _, memory in rounds)


if __name__ == "__main__":
    for figure in figures():
        print(figure.row())
