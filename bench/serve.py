"""Servers as processes of their own, for as long as something is measured."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import orjson

END = 15.0
"""Seconds that a server has to end by itself."""


@dataclass(frozen=True, slots=True)
class Served:
    """A server that answers. `began` is when it was started, on `time.perf_counter`."""

    port: int
    token: str
    pid: int
    began: float


@contextlib.contextmanager
def started_server(prepare: Callable[[Path], None] = lambda homes: None) -> Iterator[Served]:
    """The whole server, over one home in a directory of its own, and what `prepare` puts there besides."""
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as directory:
        homes = Path(directory) / "homes"
        home = homes / "default"
        home.mkdir(parents=True, mode=0o700)
        (home / "config.yaml").write_text("model:\n  provider: loopback\n")
        prepare(homes)
        with server_over(homes) as served:
            yield served


@contextlib.contextmanager
def server_over(homes: Path) -> Iterator[Served]:
    """The whole server, over homes of which one is called default."""
    command = ("hermes_ws.cli.main", "serve", "--profiles-root", str(homes), "--port", "0", "--announce", "json")
    with _process(*command, HERMES_HOME=str(homes / "default")) as (line, pid, began):
        told = orjson.loads(line)
        token = Path(told["token_file"]).read_text().strip()
        port = urlsplit(told["url"]).port
        assert port is not None
        yield Served(port, token, told.get("pid", pid), began)


@contextlib.contextmanager
def started_bare() -> Iterator[Served]:
    """The minimal server."""
    with _process("bench.bare") as (line, pid, began):
        yield Served(int(line), "", pid, began)


def resident(pid: int) -> int:
    """Bytes of memory that a process has in use."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} is gone")


@contextlib.contextmanager
def _process(module: str, *arguments: str, **environment: str) -> Iterator[tuple[str, int, float]]:
    """Run a module; what its first line says, its pid, and when it was started."""
    given = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), **environment}
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, env=given, text=True
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"{module} ended before it said anything, with {process.wait(END)}")
            yield line, process.pid, began
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(END)
            except subprocess.TimeoutExpired:
                process.kill()
