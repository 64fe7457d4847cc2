"""Counting what runs below, where the kernel does not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from hermes_ws.warden import counting, descendants
from hermes_ws.warden.counting import Counting

ROOMY = 1_000_000


@pytest.fixture
def sleepers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def start(stack: ExitStack) -> None:
    process = stack.enter_context(subprocess.Popen(["/bin/sleep", "1000"]))
    stack.callback(process.kill)


def at_once(count: Counting) -> int:
    """What it says when it is time."""
    count.due = 0.0
    return len(count.over())


def test_the_one_above_the_limit_is_seen_at_the_next_glance(
    monkeypatch: pytest.MonkeyPatch, sleepers: ExitStack
) -> None:
    monkeypatch.setattr(counting, "_threads", lambda: len(descendants.below(os.getpid())))
    count = Counting(len(descendants.below(os.getpid())) + 2)
    for _ in range(2):
        start(sleepers)
        assert at_once(count) == 0
    start(sleepers)
    assert at_once(count) >= 3


def test_all_processes_are_looked_at_seldom_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def below(*roots: int) -> list[descendants.Seen]:
        looks.extend(roots)
        return []

    monkeypatch.setattr(descendants, "below", below)
    monkeypatch.setattr(counting, "LOOK_S", 1000.0)
    count = Counting(ROOMY)
    assert [at_once(count) for _ in range(50)] == [0] * 50
    assert looks == [os.getpid()]
    assert count.over() == []
    assert count.due > 0


def test_what_the_number_of_threads_does_not_tell_is_looked_up(
    monkeypatch: pytest.MonkeyPatch, sleepers: ExitStack
) -> None:
    """Where it cannot be read, and where others end meanwhile: then the time decides."""
    count = Counting(len(descendants.below(os.getpid())))
    monkeypatch.setattr(counting, "_threads", lambda: None)
    assert at_once(count) == 0
    start(sleepers)
    assert at_once(count) >= 1
    monkeypatch.setattr(counting, "_threads", lambda: 0)
    monkeypatch.setattr(counting, "LOOK_S", 0.0)
    assert at_once(count) >= 1


def test_the_machine_tells_how_many_threads_it_has() -> None:
    threads = counting._threads()  # pyright: ignore[reportPrivateUsage]
    assert threads is not None
    assert threads >= len(descendants.below(1))
