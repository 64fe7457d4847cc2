"""Attackers who know the kernel, and races between a look and a use: against a real warden of another profile."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from hermes_ws.contract import errors
from hermes_ws.session.hands import SessionHands
from hermes_ws.warden import descendants
from tests.escape.conftest import CANARY, Cell
from tests.session.house import new_session

PROGRAM = Path(__file__).with_name("attacker.py")


@dataclass(frozen=True)
class Outside:
    """What programs of the same user keep where files have no say: System V's memory, semaphores, messages, a queue."""

    key: int
    queue: str


@pytest.fixture
def outside() -> Iterator[Outside]:
    libc = ctypes.CDLL(None, use_errno=True)
    key = 0x48000000 + os.getpid()
    made = (libc.shmget(key, 64, 0o1600), libc.semget(key, 1, 0o1600), libc.msgget(key, 0o1600))
    queue = f"/hermes-escape-{os.getpid()}"
    opened = libc.mq_open(queue.encode(), os.O_RDWR | os.O_CREAT, 0o600, None)
    assert min(*made, opened) >= 0, "the machine has none of it to try"
    shared = Path("/dev/shm/hermes-canary")
    shared.touch()
    try:
        yield Outside(key, queue)
        assert libc.mq_unlink(queue.encode()) == 0, "it was removed from inside"
    finally:
        shared.unlink()
        libc.shmctl(made[0], 0, None)
        libc.semctl(made[1], 0, 0)
        libc.msgctl(made[2], 0, None)
        libc.mq_unlink(queue.encode())
        os.close(opened)


async def test_no_call_of_the_kernel_leads_into_another_profile(cell: Cell, outside: Outside) -> None:
    work = await cell.house.runtime("work")
    session, _, _ = await new_session(work)
    hands = SessionHands(work, work.scope, work.home.user)
    del session
    async with await hands.open_pipe(["/bin/sh", "-c", "echo up; exec sleep 1000"], env={"KEY": CANARY}) as victim:
        assert await victim.receive() == b"up\n"
        warden = (await work.warden_for(work.scope, work.home.user)).warden.statistics().pid
        child = descendants.below(warden)[-1].pid
        places = (os.sched_getaffinity(child), os.sched_getaffinity(warden), os.sched_getscheduler(child))
        shutil.copy(PROGRAM, cell.home / "attacker.py")
        words = [cell.other, outside.key, outside.queue, os.getpid(), warden, child]
        ran = await cell.run(f"{sys.executable} attacker.py {' '.join(map(str, words))}")
        told = ran.output.splitlines()
        assert [line for line in told if not line.endswith("refused")] == ["through"]
        assert len(told) > 100
        assert CANARY not in ran.output
        assert not victim.ended
        assert places == (os.sched_getaffinity(child), os.sched_getaffinity(warden), os.sched_getscheduler(child))
        alive = await hands.run("echo alive", cwd=None, deadline_s=30, on_output=lambda _text: None)
        assert alive.output == "alive\n"


FLIP = (
    "while :; do mkdir door; echo mine > door/SOUL.md; rm -rf door; ln -s {other} door; rm door;"
    " echo mine > file; rm file; ln -s {other}/SOUL.md file; rm file; done 2>/dev/null"
)
"""A directory and a file that are links to another home half of the time, for whoever looks first and uses then."""


async def test_file_tools_are_not_fooled_by_what_changes_between_a_look_and_a_use(cell: Cell) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in cell.other.iterdir() if path.is_file()}
    flipping = await cell.hands.start(FLIP.format(other=cell.other), cwd=None)
    seen: list[object] = []
    outcomes: set[str] = set()
    for _ in range(12):
        for name in ("door/SOUL.md", "file"):
            with suppress(errors.HermesError):
                seen.append(await cell.hands.read(cell.home / name, limit=1000))
                outcomes.add("read")
            with suppress(errors.HermesError):
                await cell.hands.write(cell.home / name, "from inside")
                outcomes.add("written")
        with suppress(errors.HermesError):
            seen.append(await cell.hands.list_files(cell.home / "door", depth=2, limit=100, hidden=True))
            seen.append(await cell.hands.search_files(cell.home / "door", "canary"))
    assert cell.hands.processes()[0].running
    await cell.hands.process_kill(flipping.process_id)
    assert CANARY not in repr(seen)
    assert "config.yaml" not in repr(seen)
    assert "written" in outcomes
    assert (cell.other / "SOUL.md").read_text() == CANARY
    assert before == {path.name: path.stat().st_mtime_ns for path in cell.other.iterdir() if path.is_file()}


async def test_what_is_no_file_of_the_profile_is_not_read_as_one(cell: Cell) -> None:
    """Pipes and devices neither hold up a tool nor answer; what a link or `/proc` names is judged by what it is."""
    await cell.run(f"mkfifo pipe; ln -s /dev/zero zero; ln -s {cell.other}/SOUL.md soft; ln -s /proc/self/environ own")
    for name in ("pipe", "zero", "/dev/zero", "/dev/tty", f"/proc/{os.getpid()}/environ"):
        with pytest.raises(errors.HermesError):
            await cell.hands.read(cell.home / name, limit=100)
        with pytest.raises(errors.HermesError):
            await cell.hands.write(cell.home / name, "x")
    with pytest.raises(errors.HermesError):
        await cell.hands.read(cell.home / "soft", limit=100)
    with suppress(errors.HermesError):
        # In namespaces, below `/tmp`, this makes a file that is there for this profile alone.
        await cell.hands.write(cell.home / "soft", "x")
    assert (cell.other / "SOUL.md").read_text() == CANARY
    # A reader is given an empty environment, so that there is nothing of anybody in its own.
    for name in ("own", "/proc/self/environ", "/proc/1/environ"):
        with suppress(errors.HermesError):
            assert (await cell.hands.read(cell.home / name, limit=1000)).text == ""
