"""Two homes, and servers over them that end with the test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.process import Server, write_home


@pytest.fixture(scope="session")
def base_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}


def two_homes(root: Path) -> Path:
    """Two homes that define one name each for themselves and one name with different values."""
    for name, only in (("default", "ONLY_A"), ("second", "ONLY_B")):
        write_home(
            root / name,
            env={"SHARED": f"shared-value-of-{name}-1234", only: f"only-value-of-{name}-5678"},
            config=f"terminal:\n  env: [SHARED, {only}]\n",
        )
    return root


@pytest.fixture
def homes(tmp_path: Path) -> Path:
    return two_homes(tmp_path / "homes")


@pytest.fixture
def serve(homes: Path, tmp_path: Path, base_environment: dict[str, str]) -> Iterator[Callable[..., Server]]:
    """Start servers over the homes; whatever still runs at the end is stopped."""
    started: list[Server] = []

    def start(*args: str, env: dict[str, str] | None = None, root: Path | None = None) -> Server:
        server = Server(root or homes, tmp_path / "server.log", {**base_environment, **(env or {})}, *args)
        started.append(server)
        return server

    yield start
    for server in started:
        if server.process.poll() is None:
            server.stop()


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory, base_environment: dict[str, str]) -> Iterator[Server]:
    """One server for the tests of a module that neither stop nor change it."""
    place = tmp_path_factory.mktemp("shared")
    server = Server(two_homes(place / "homes"), place / "server.log", base_environment)
    yield server
    assert server.stop() == 0
