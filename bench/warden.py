"""What confinement costs: starting a confined command, warm, beside the same program started plainly; and memory."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from bench.figure import Figure
from hermes_ws.warden import descendants
from hermes_ws.warden.bubblewrap import Choice, find
from hermes_ws.warden.grants import Command, Grants
from hermes_ws.warden.hands import Warden

ROUNDS = 5
COMMANDS = 60
"""Commands per round: each takes one or two milliseconds."""

PROGRAM = ("/bin/true",)
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def figures() -> list[Figure]:
    """One line for each way of confining, and one for what a warden weighs."""
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
    begun = time.perf_counter()
    warden = await Warden.start(Grants(write=(directory,)), namespaces=choice)
    started = time.perf_counter() - begun
    command = Command(PROGRAM, directory, ENVIRONMENT, 60, 1000)
    confined: list[float] = []
    plain: list[float] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        await warden.run(command)
        for _ in range(ROUNDS):
            confined.append(await _each(lambda: warden.run(command)))
            plain.append(_spawned())
        weight = sum(_resident(seen.pid) for seen in descendants.below(os.getpid()))
        await warden.close()
    spawned, ours = statistics.median(plain) * 1000, statistics.median(confined) * 1000
    return [
        Figure(f"a confined command, warm{name}, beside posix_spawn", ours, spawned, "ms"),
        Figure(f"starting a warden{name}", started * 1000, None, "ms"),
        Figure(f"memory of a warden{name}", weight / 2**20, None, "MiB"),
    ]


async def _each(work: Callable[[], Awaitable[object]]) -> float:
    begun = time.perf_counter()
    for _ in range(COMMANDS):
        await work()
    return (time.perf_counter() - begun) / COMMANDS


def _spawned() -> float:
    begun = time.perf_counter()
    for _ in range(COMMANDS):
        os.waitpid(os.posix_spawn(PROGRAM[0], PROGRAM, ENVIRONMENT), 0)
    return (time.perf_counter() - begun) / COMMANDS


def _resident(pid: int) -> int:
    """What a process has for itself: memory shared with others is counted in its share."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))
