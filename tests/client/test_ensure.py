"""Finding the server of a home or starting one: real processes, one lock, no trust in leftovers."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from hermes_ws.client.connect import Abilities, connect_to
from hermes_ws.client.discovery import Endpoint
from hermes_ws.client.ensure import Found, State, ensure, find, held, places
from hermes_ws.contract.methods.runtime import RUNTIME_DESCRIBE
from hermes_ws.contract.model import Empty
from tests.e2e.process import environment_of

PATIENCE = 30.0


@pytest.fixture
def environ() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "SECRET_OF_THE_TERMINAL": "value-of-terminal-1"}


class Root:
    """A root of homes, and the end of whatever serves it."""

    def __init__(self, path: Path, environ: dict[str, str]) -> None:
        self.path = path
        self.environ = environ
        self.pids: set[int] = set()

    def ensure(self, home: Path | None = None) -> Found:
        found = anyio.run(ensure, home or self.path, self.environ, backend="trio")
        if found.endpoint is not None:
            self.pids.add(pid_of(found.endpoint))
        return found

    def find(self, home: Path | None = None) -> Found:
        return anyio.run(find, home or self.path, backend="trio")

    def end(self, number: int = signal.SIGTERM) -> None:
        lock = self.path / "run" / "owner.lock"
        until = time.monotonic() + PATIENCE
        told: set[int] = set()
        while True:
            for pid in self.pids - told:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            told |= self.pids
            if not held(lock):
                break
            assert time.monotonic() < until, "the server did not end"
            time.sleep(0.02)
            # One that began late finds the home free, and takes it.
            with suppress(OSError, ValueError, KeyError):
                self.pids.add(json.loads(lock.read_text())["pid"])
        self.pids.clear()


def pid_of(endpoint: Endpoint) -> int:
    async def ask() -> int:
        async with connect_to(endpoint, Abilities("tests", live="none")) as gateway:
            return (await gateway.call(RUNTIME_DESCRIBE, Empty())).pid

    return anyio.run(ask, backend="trio")


@pytest.fixture
def root(tmp_path: Path, environ: dict[str, str]) -> Iterator[Root]:
    made = Root(tmp_path / "root", environ)
    yield made
    made.end()


def test_a_home_without_a_server_gets_one_and_the_next_finds_it(root: Root) -> None:
    assert root.find().state is State.ABSENT
    assert not root.path.exists(), "looking makes nothing"
    first = root.ensure()
    assert first.state is State.READY, first.detail
    again = root.ensure()
    assert again.state is State.READY
    assert len(root.pids) == 1
    environment = environment_of(next(iter(root.pids)))
    assert b"SECRET_OF_THE_TERMINAL" not in environment


def test_several_starters_end_with_one_server(root: Root) -> None:
    async def race() -> list[Found]:
        results: list[Found] = []

        async def one() -> None:
            results.append(await ensure(root.path, root.environ))

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(one)
        return results

    found = anyio.run(race, backend="trio")
    assert [each.state for each in found] == [State.READY] * 3
    root.pids |= {pid_of(each.endpoint) for each in found if each.endpoint is not None}
    assert len(root.pids) == 1


def test_what_a_killed_server_leaves_is_not_taken_for_one(root: Root) -> None:
    """PROC-01, PROC-02: the lock decides; socket, token and pid are only information."""
    root.ensure()
    before = set(root.pids)
    root.end(signal.SIGKILL)
    assert (root.path / "run" / "gateway.sock").exists()
    assert root.find().state is State.ABSENT
    assert root.ensure().state is State.READY
    assert root.pids.isdisjoint(before)


def test_a_profile_is_served_by_its_roots_server(root: Root) -> None:
    root.ensure()
    home = root.path / "profiles" / "work"
    home.mkdir(parents=True)
    found = root.ensure(home)
    assert (found.state, found.profile) == (State.READY, "work")
    assert len(root.pids) == 1
    other = root.find(root.path / "profiles" / "nobody")
    assert other.state is State.CONFLICT


def test_a_home_that_others_may_write_is_refused(root: Root) -> None:
    (root.path / "run").mkdir(parents=True)
    root.path.chmod(0o777)
    found = root.ensure()
    assert found.state is State.INACCESSIBLE
    assert "chmod" in found.detail
    root.path.chmod(0o700)


def test_a_server_that_cannot_start_says_why(root: Root) -> None:
    root.path.mkdir()
    (root.path / "config.yaml").write_text("terminal:\n  netwrok: deny\n")
    found = root.ensure()
    assert found.state is State.ABSENT
    assert "network" in found.detail
    assert "serve.log" in found.detail


def test_the_lock_of_an_owner_is_seen_without_being_tried(root: Root) -> None:
    assert not held(root.path / "run" / "owner.lock")
    root.ensure()
    assert held(root.path / "run" / "owner.lock")


def test_places_begin_at_the_root() -> None:
    assert places(Path("/r/profiles/work")) == ((Path("/r"), "work"), (Path("/r/profiles/work"), None))
    assert places(Path("/r")) == ((Path("/r"), None),)
