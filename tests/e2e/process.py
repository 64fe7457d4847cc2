"""Real server processes over real homes, and what is left of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.e2e.gateway_client import PATIENCE, Client

HURRY = 5.0
"""Seconds after which a server that drains is asked again."""

SERVE = (sys.executable, "-m", "hermes_ws.cli.main", "serve")


class Server:
    """One `serve` process. `stop` asks it to end, `kill` does not ask."""

    def __init__(
        self, homes: Path, log: Path, env: dict[str, str], *args: str, program: tuple[str, ...] = SERVE
    ) -> None:
        self.homes = homes
        self.log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [*program, "--profiles-root", str(homes), "--port", "0", "--announce", "json", *args],
                stdout=subprocess.PIPE,
                stderr=errors,
                stdin=subprocess.DEVNULL,
                env=env,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.stdout.close()
            self.process.wait()
            raise AssertionError(f"the server said nothing:\n{log.read_text()}")
        self.announced: dict[str, Any] = json.loads(line)
        self.pid: int = self.announced["pid"]
        self.url: str = self.announced["url"]
        self.token = Path(self.announced["token_file"]).read_text().strip()

    def connect(self, **options: Any) -> Client:
        return Client(self.url, self.token, **options)

    def stop(self) -> int:
        """Ask it to end; after a while ask again, which leaves what runs no more time."""
        for patience in (HURRY, PATIENCE):
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)
                break
        else:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the server did not end:\n{self.log.read_text()}")
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.returncode

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()


def write_home(path: Path, *, env: dict[str, str], config: str) -> None:
    path.mkdir(parents=True)
    dotenv = path / ".env"
    dotenv.touch(mode=0o600)
    dotenv.write_text("".join(f"{name}={value}\n" for name, value in env.items()))
    (path / "config.yaml").write_text(config)


def environment_of(pid: int) -> bytes:
    """What a process was started with. Empty where the kernel keeps that to itself: a server may not be looked into,
    by nobody but root.
    """
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except PermissionError:
        return b""


def children(pid: int) -> dict[int, str]:
    """All descendants of a process with their start times: a pid alone names nobody for long."""
    parents: dict[int, list[int]] = {}
    starts: dict[int, str] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                fields = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
                parents.setdefault(int(fields[1]), []).append(int(entry))
                starts[int(entry)] = fields[19]
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        for child in parents.get(waiting.pop(), ()):
            found[child] = starts[child]
            waiting.append(child)
    return found


def all_gone(processes: dict[int, str]) -> bool:
    """Wait until none of these processes exists any more."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        alive = []
        for pid, start in processes.items():
            with suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                if fields[19] == start and fields[0] not in "ZX":
                    alive.append(pid)
        if not alive:
            return True
        time.sleep(0.05)
    return False
