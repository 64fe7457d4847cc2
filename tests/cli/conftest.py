"""A home with a server of the tests in it, and the command run as a real process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.client.peer import Peer, home_with_peer

COMMAND = (sys.executable, "-m", "hermes_ws.cli.main")

PATIENCE = 60
"""Seconds after which a process that does not end is a failure; machines are slow at times."""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def environment(home: Path, **more: str) -> dict[str, str]:
    """What the command is started with: nothing of the tests' own surroundings but what Python needs."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")}
    return kept | {"HERMES_HOME": str(home), "HOME": str(home.parent), "PYTHONPATH": os.getcwd()} | more


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home."""
    made = tmp_path / "home"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def peer(home: Path) -> Iterator[Peer]:
    """A server of the tests that the home's clients find."""
    with home_with_peer(home) as running:
        yield running


@pytest.fixture
def run(home: Path) -> Run:
    """Run the command to its end."""

    def run(*arguments: str, text: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments],
            env=environment(home, **more),
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    return run
