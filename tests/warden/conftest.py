"""Real wardens and real commands: two directories, one granted and one not, and a shell in the granted one."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from hermes_ws.warden.bubblewrap import Choice, find
from hermes_ws.warden.grants import Command, Finished, Grants
from hermes_ws.warden.hands import Warden

Shell = Callable[..., Awaitable[Finished]]


@dataclass(frozen=True)
class Place:
    """`inside` is granted for writing, `shelf` for reading, `outside` not at all; each holds a file `secret`."""

    inside: Path
    shelf: Path
    outside: Path

    @property
    def grants(self) -> Grants:
        return Grants(write=(self.inside,), read=(self.shelf,))

    def command(
        self,
        *argv: str,
        deadline_s: float = 30.0,
        output_bytes: int = 100_000,
        stdin: bytes = b"",
        env: dict[str, str] | None = None,
    ) -> Command:
        base = {"PATH": "/usr/bin:/bin", "HOME": str(self.inside), "LC_ALL": "C"}
        return Command(argv, self.inside, base if env is None else env, deadline_s, output_bytes, stdin)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    directories = [tmp_path / name for name in ("inside", "shelf", "outside")]
    for directory in directories:
        directory.mkdir()
        (directory / "secret").write_text(f"canary-{directory.name}")
    return Place(*directories)


@pytest.fixture
def grants(place: Place) -> Grants:
    """Override it in a module or a test class for other grants."""
    return place.grants


@pytest.fixture(params=["namespaces", "without"])
def namespaces(request: pytest.FixtureRequest) -> Choice:
    """Everything is tried with bubblewrap, where there is one, and without."""
    if request.param == "without":
        return None
    if find() is None:
        pytest.skip("bubblewrap is not installed")
    return "auto"


@pytest.fixture
async def warden(nursery: trio.Nursery, grants: Grants, namespaces: Choice) -> AsyncIterator[Warden]:
    warden = await Warden.start(grants, namespaces=namespaces)
    nursery.start_soon(warden.serve)
    yield warden
    await warden.close()


@pytest.fixture
def shell(warden: Warden, place: Place) -> Shell:
    async def run(script: str, **options: object) -> Finished:
        return await warden.run(place.command("bash", "-c", script, **options))  # type: ignore[arg-type]

    return run


@pytest.fixture
def python(warden: Warden, place: Place) -> Shell:
    """The interpreter of the tests, inside: its prefix is granted always."""

    async def run(script: str, *words: str, **options: object) -> Finished:
        return await warden.run(place.command(sys.executable, "-c", script, *words, **options))  # type: ignore[arg-type]

    return run
