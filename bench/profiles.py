"""What it costs to act for a profile: binding, opening a home, keeping one open, and homes that only lie on disk.

References: a plain context variable for the binding, opening and writing one SQLite file for opening a home, and the
same server over one home for the thousand. Each takes turns with its reference.
"""

from __future__ import annotations

import contextvars
import os
import sqlite3
import statistics
import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path

import trio

from bench.figure import Figure
from bench.quiet import first_in_line
from hermes_ws.hosting.host import Host
from hermes_ws.scope.current import Bound, bind, bound
from hermes_ws.scope.environment import StartEnvironment
from hermes_ws.scope.home import HomesRoot
from hermes_ws.scope.identity import ProfileName
from hermes_ws.scope.profile_scope import load_scope
from tests.session.house import People

TIMES = 20_000
ROUNDS = 25
"""Many short rounds: on a busy machine some of them are undisturbed."""

STARTS = 7
HOMES = 40
"""Homes that are opened for the memory of one; with fewer, what the first costs hides the rest."""

WARM = 10
"""Homes that are opened before memory is looked at: what only the first ones cost is none of the others'."""

ON_DISK = 1000


def binding(place: Path) -> list[Figure]:
    """Binding and reading, beside a variable without any meaning."""
    (place / "one").mkdir()
    root = HomesRoot.directory(place)
    name = ProfileName("one")
    scope = load_scope(name, root.find(name), launch_secrets=None, loaded=1, homes=root.homes_paths())
    value = Bound(scope)
    plain: contextvars.ContextVar[object] = contextvars.ContextVar("plain")

    def ours() -> None:
        with bind(value):
            pass

    def theirs() -> None:
        plain.reset(plain.set(value))

    def beside(what: str, function: Callable[[], object], other: Callable[[], object]) -> Figure:
        """Short rounds that take turns; the fastest of each is the one that nothing else disturbed."""
        times = [(timeit.timeit(function, number=TIMES), timeit.timeit(other, number=TIMES)) for _ in range(ROUNDS)]
        one, another = (min(each) / TIMES * 1e6 for each in zip(*times, strict=True))
        return Figure(what, one, another, "µs")

    plain.set(value)
    found = [beside("binding a scope", ours, theirs)]
    with bind(value):
        found.append(beside("reading what is bound", bound, plain.get))
    return found


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def host_of(root: Path) -> Host:
    start = StartEnvironment(base={"PATH": "/usr/bin:/bin"}, parameters={}, launch_secrets={})
    return Host(HomesRoot.directory(root), start, instance_id="bench", audience=People())


async def opening(root: Path) -> tuple[list[float], list[float], float]:
    """Milliseconds of each first opening and of a plain file after it, and KiB that each open home keeps."""
    times: list[float] = []
    files: list[float] = []
    before = 0
    async with trio.open_nursery() as nursery:
        host = host_of(root)
        await nursery.start(host.run)
        await host.open(host.launch)
        for number in range(HOMES):
            if number == WARM:
                before = resident()
            began = time.perf_counter()
            await host.open(ProfileName(f"h{number:04}"))
            times.append((time.perf_counter() - began) * 1000)
            files.append(database(root.parent / f"file{number}.db"))
        kept = (resident() - before) / (HOMES - WARM) / 1024
        await host.drain(0)
        nursery.cancel_scope.cancel()
    return times, files, kept


async def first_answer(root: Path) -> float:
    """Milliseconds until a host over these homes has opened its launch profile and can list the others."""
    began = time.perf_counter()
    async with trio.open_nursery() as nursery:
        host = host_of(root)
        await nursery.start(host.run)
        await host.open(host.launch)
        host.listing()
        took = (time.perf_counter() - began) * 1000
        await host.drain(0)
        nursery.cancel_scope.cancel()
    return took


def database(place: Path) -> float:
    """Milliseconds for one new SQLite file with a durable row in it."""
    began = time.perf_counter()
    connection = sqlite3.connect(place, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (x)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.close()
    return (time.perf_counter() - began) * 1000


def homes(root: Path, count: int) -> Path:
    root.mkdir(mode=0o700)
    for name in ("default", *(f"h{number:04}" for number in range(count))):
        (root / name).mkdir(mode=0o700)
    return root


def figures() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory, first_in_line():
        place = Path(directory).resolve()
        found = binding(homes(place / "binding", 0))
        opened, files, kept = trio.run(opening, homes(place / "opened", HOMES))
        found.append(
            Figure("opening a home for the first time", statistics.median(opened), statistics.median(files), "ms")
        )
        found.append(Figure("memory of an open home without work", kept, None, "KiB"))
        many, one = homes(place / "many", ON_DISK), homes(place / "one", 1)
        took = [(trio.run(first_answer, many), trio.run(first_answer, one)) for _ in range(STARTS)]
        found.append(
            Figure(
                f"start with {ON_DISK:,} homes on disk (one)",
                statistics.median(each[0] for each in took),
                statistics.median(each[1] for each in took),
                "ms",
            )
        )
        return found
