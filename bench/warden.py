"""What confinement costs: starting a confined command, warm, beside the same program started plainly; and memory.

Ours and the plain start take turns, command by command, so that what else the machine does falls on both alike. A round
gives the median of its commands; what is told is the round whose ratio lies in the middle.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from bench.figure import Figure
from bench.quiet import first_in_line
from hermes_ws.warden import descendants
from hermes_ws.warden.bubblewrap import Choice, find
from hermes_ws.warden.grants import Command, Grants
from hermes_ws.warden.hands import Warden

ROUNDS = 7
COMMANDS = 60
"""Commands per round and kind: each takes one or two milliseconds."""

STARTS = 5
"""Wardens that are started one after the other: each takes a twentieth of a second."""

PROGRAM = ("/bin/true",)
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def figures() -> list[Figure]:
    """One line for each way of confining, and one for what a warden weighs."""
    with first_in_line():
        return trio.run(_measured)


async def _measured() -> list[Figure]:
    rows: list[Figure] = []
    with tempfile.TemporaryDirectory() as directory:
        ways: tuple[tuple[str, Choice], ...] = (("", None), (" in namespaces", "auto"))
        for name, choice in ways:
            if choice == "auto" and find() is None:
                continue
            rows += await _of(Path(directory), name, choice)
    return rows


async def _of(directory: Path, name: str, choice: Choice) -> list[Figure]:
    grants = Grants(write=(directory,))
    starts: list[float] = []
    for _ in range(STARTS):
        begun = time.perf_counter()
        warden = await Warden.start(grants, namespaces=choice)
        starts.append(time.perf_counter() - begun)
        await warden.close()
    warden = await Warden.start(grants, namespaces=choice)
    command = Command(PROGRAM, directory, ENVIRONMENT, 60, 1000)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        await warden.run(command)
        rounds = [await _round(lambda: warden.run(command)) for _ in range(ROUNDS)]
        weight = sum(_resident(seen.pid) for seen in descendants.below(os.getpid()))
        await warden.close()
    ours, plain = sorted(rounds, key=lambda each: each[0] / each[1])[len(rounds) // 2]
    return [
        Figure(f"a confined command, warm{name}, beside posix_spawn", ours * 1000, plain * 1000, "ms"),
        Figure(f"starting a warden{name}", statistics.median(starts) * 1000, None, "ms"),
        Figure(f"memory of a warden{name}", weight / 2**20, None, "MiB"),
    ]


async def _round(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """The median seconds of a confined command and of a plain one, which took turns."""
    ours: list[float] = []
    plain: list[float] = []
    for _ in range(COMMANDS):
        begun = time.perf_counter()
        await work()
        between = time.perf_counter()
        _spawn()
        plain.append(time.perf_counter() - between)
        ours.append(between - begun)
    return statistics.median(ours), statistics.median(plain)


def _spawn() -> None:
    os.waitpid(os.posix_spawn(PROGRAM[0], PROGRAM, ENVIRONMENT), 0)


def _resident(pid: int) -> int:
    """What a process has for itself: memory shared with others is counted in its share."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))
