"""Acting on the machine: for the bound profile, within its grants, and without telling its secrets."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import pytest

from hermes_ws.scope.redaction import Patterns, Redactor
from hermes_ws.session.text_stream import TextStream
from tests.session.house import House, eventually, new_session, say

AUTO = "approvals:\n  mode: auto\n"


def two_homes(house: House) -> None:
    for name, only in (("default", "ONLY_A"), ("work", "ONLY_B")):
        house.home(
            name,
            config=f"{AUTO}terminal:\n  env: [SHARED, {only}]\n",
            env=f"SHARED=shared-value-of-{name}\n{only}=only-value-1234\n",
        )


async def test_a_command_sees_its_own_profile_and_no_other_in_the_order_a_b_a(house: House) -> None:
    two_homes(house)
    async with house.served():
        for turn, name in enumerate(("default", "work", "default")):
            runtime = await house.runtime(name)
            _, thread, viewer = await new_session(runtime)
            await say(thread, "/do run printf %s $SHARED | sha256sum; env | cut -d= -f1 | sort; pwd", f"t{turn}")
            complete = await viewer.until("tool.complete", is_error=False)
            output = complete["payload"]["output"]
            assert hashlib.sha256(f"shared-value-of-{name}".encode()).hexdigest() in output
            assert ("ONLY_A" in output, "ONLY_B" in output) == (name == "default", name == "work")
            assert str(house.root / name / "home") in output
            await viewer.until("execution.finished", outcome="completed")


async def test_a_command_cannot_look_into_the_home_of_another_profile(house: House) -> None:
    two_homes(house)
    async with house.served():
        runtime = await house.runtime("default")
        if runtime.confinement.level != "kernel":
            pytest.skip("nothing confines commands on this machine")
        _, thread, viewer = await new_session(runtime)
        await say(thread, f"/do run cat {house.root}/work/config.yaml {house.root}/default/config.yaml", "one")
        complete = await viewer.until("tool.complete")
        assert "ONLY" not in complete["payload"]["output"]
        assert "terminal.read" in complete["payload"]["output"]


async def test_what_a_command_prints_of_a_secret_is_replaced_everywhere(house: House) -> None:
    two_homes(house)
    async with house.served():
        runtime = await house.runtime("work")
        _, thread, viewer = await new_session(runtime)
        await say(
            thread, '/do run for c in "$SHARED" shared-value "-of-work"; do printf "%s" "$c"; sleep 0.05; done', "1"
        )
        complete = await viewer.until("tool.complete", is_error=False)
        assert "«secret:SHARED»" in complete["payload"]["output"]
        await viewer.until("execution.finished")
        told = "".join(event["payload"].get("text", "") for event in viewer.events if event["type"] == "tool.progress")
        assert told == "«secret:SHARED»«secret:SHARED»"
        user_free = [event for event in viewer.events if event["payload"].get("role") != "user"]
        assert "shared-value-of-work" not in str(user_free)


async def test_files_are_written_and_read_in_the_sessions_directory(house: House) -> None:
    two_homes(house)
    async with house.served():
        runtime = await house.runtime("work")
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do write notes/a.txt some words\n\n/do read notes/a.txt\n\n/do read missing.txt", "one")
        await viewer.until("tool.complete", name="write_file", is_error=False)
        read = await viewer.until("tool.complete", name="read_file")
        assert "some words" in read["payload"]["output"]
        missing = await viewer.until("tool.complete", name="read_file")
        assert missing["payload"]["is_error"]
        assert (house.root / "work" / "home" / "notes" / "a.txt").read_text().startswith("some words")


async def test_a_command_runs_nowhere_but_in_the_granted_directories(house: House) -> None:
    two_homes(house)
    async with house.served():
        runtime = await house.runtime("work")
        _, thread, viewer = await new_session(runtime)
        for number, (cwd, works) in enumerate((("deep/../", True), ("/etc", False), ("../state", False))):
            await say(thread, f'/do tool terminal {{"command": "pwd", "cwd": "{cwd}"}}', f"c{number}")
            complete = await viewer.until("tool.complete")
            assert complete["payload"]["is_error"] is not works


async def test_an_interrupt_ends_the_commands_whole_process_group_and_arms_nothing(house: House) -> None:
    """TURN-04. One of the group would rather stay, and one holds the output open."""
    two_homes(house)
    async with house.served():
        runtime = await house.runtime("work")
        _, thread, viewer = await new_session(runtime)
        mark = f"1000.{os.getpid()}"
        stubborn = f"sh -c \"trap '' TERM INT HUP; sleep {mark}\""
        await say(thread, f"/do run {stubborn} & sleep {mark} & echo begun; sleep {mark}; echo over > over.txt", "one")
        await viewer.until("tool.progress")
        await eventually(lambda: len(running(mark)) >= 4)
        assert thread.interrupt(1).outcome == "accepted"
        complete = await viewer.until("tool.complete")
        assert complete["payload"]["is_error"]
        await viewer.until("execution.finished", outcome="interrupted")
        assert running(mark) == []
        granted = await runtime.warden_for(runtime.scope, runtime.home.user)
        assert granted.warden.statistics().running == 0
        assert thread.interrupt(1).outcome == "no_active_execution"
        await say(thread, "/do run echo all of it", "two")
        complete = await viewer.until("tool.complete", is_error=False)
        assert "all of it" in complete["payload"]["output"]
        await viewer.until("execution.finished", outcome="completed")
        assert not (house.root / "work" / "home" / "over.txt").exists()


def running(mark: str) -> list[str]:
    """The command lines of this machine that have the mark in them, and the processes behind them are no zombies."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if mark in line:
                found.append(line)
    return found


def test_output_splits_no_character_and_tells_no_secret_in_two_halves() -> None:
    told: list[str] = []
    stream = TextStream(Redactor(Patterns.of({"TOKEN": "s3cret-välue"}, plain=frozenset())), told.append)
    for byte in "before s3cret-välue äfter \xff".encode() + b"\xff":
        stream.feed(bytes([byte]))
    stream.flush()
    assert "".join(told) == "before «secret:TOKEN» äfter \xff\ufffd"
    assert "" not in told
