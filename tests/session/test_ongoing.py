"""Background processes and terminals: they outlive a turn, and neither their session nor their policy nor the home."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trio.testing

from hermes_ws.contract import errors
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.tail import LiveMarks
from hermes_ws.session import backend, processes, terminals
from hermes_ws.session.backends import backend_for
from hermes_ws.session.hands import SessionHands
from hermes_ws.session.terminals import Terminal
from hermes_ws.warden.grants import Size
from hermes_ws.wire.cursor import Cursor
from tests.session.house import House, eventually, new_session

CONFIG = "terminal:\n  env: [TOKEN]\n"


@pytest.fixture
async def runtime(house: House) -> AsyncIterator[ProfileRuntime]:
    house.home("default", config=CONFIG, env="TOKEN=value-of-the-token\n")
    async with house.served():
        yield await house.runtime()


async def hands_of(runtime: ProfileRuntime) -> tuple[SessionHands, str]:
    session, _, _ = await new_session(runtime)
    key = ThreadKey(session.session_id, "main")
    return SessionHands(runtime, runtime.scope, runtime.home.user, key), session.session_id


async def said(hands: SessionHands, process_id: str, words: str) -> None:
    with trio.fail_after(30):
        while words not in await hands.process_output(process_id, limit=1000):  # noqa: ASYNC110 - as a tool polls
            await trio.sleep(0.01)


async def test_a_process_outlives_its_turn_and_its_end_is_told_where_it_began(runtime: ProfileRuntime) -> None:
    """REAP-05, and OWNER-04: the thread that started it is told, durably, and no other."""
    session, _, viewer = await new_session(runtime)
    other, _, bystander = await new_session(runtime)
    hands = SessionHands(runtime, runtime.scope, runtime.home.user, ThreadKey(session.session_id, "main"))
    started = await hands.start("echo $TOKEN; read line; echo got $line; exit 3", cwd=None)
    assert runtime.in_use
    await said(hands, started.process_id, "«secret:TOKEN»")
    await hands.process_write(started.process_id, "words\n")
    told = (await viewer.until("process.exited"))["payload"]
    assert (told["process_id"], told["exit_code"]) == (started.process_id, 3)
    assert told["tail"] == "«secret:TOKEN»\ngot words\n"
    await bystander.pull()
    assert "process.exited" not in bystander.types()
    (ended,) = hands.processes()
    assert (ended.running, ended.exit_code) == (False, 3)
    with pytest.raises(errors.NotFound):
        await hands.process_write(started.process_id, "more")
    strangers = SessionHands(runtime, runtime.scope, runtime.home.user, ThreadKey(other.session_id, "main"))
    with pytest.raises(errors.NotFound):
        await strangers.process_output(started.process_id, limit=10)


async def test_killing_ends_what_it_started_as_well(runtime: ProfileRuntime) -> None:
    hands, _ = await hands_of(runtime)
    started = await hands.start("setsid sleep 1000 & trap '' TERM; echo up; while :; do sleep 1; done", cwd=None)
    await said(hands, started.process_id, "up")
    ended = await hands.process_kill(started.process_id)
    assert not ended.running
    granted = await runtime.warden_for(runtime.scope, runtime.home.user)
    await eventually(lambda: granted.warden.statistics().running == 0)


async def test_a_closed_or_deleted_session_takes_its_processes_along(runtime: ProfileRuntime) -> None:
    """OWNER, REAP-18: unless the profile keeps them."""
    hands, session_id = await hands_of(runtime)
    started = await hands.start("sleep 1000", cwd=None)
    await runtime.sessions.close(session_id)
    await eventually(lambda: not runtime.ongoing.processes.count)
    assert started.process_id in [row.process_id for row in runtime.ongoing.processes.rows(None)]


async def test_a_process_does_not_outlive_the_policy_under_which_it_was_started(
    house: House, runtime: ProfileRuntime
) -> None:
    hands, _ = await hands_of(runtime)
    await hands.start("sleep 1000", cwd=None)
    house.home("default", config=CONFIG + "sessions:\n  idle_s: 200\n")
    await runtime.reload()
    await trio.testing.wait_all_tasks_blocked()
    assert runtime.ongoing.processes.count == 1, "a reload that changes nothing about the terminal ends nothing"
    house.home("default", config=CONFIG + "  network: deny\n")
    await runtime.reload()
    await eventually(lambda: not runtime.ongoing.processes.count)


async def test_there_are_bounds_and_the_one_too_many_is_ended(
    runtime: ProfileRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "RUNNING", 2)
    monkeypatch.setattr(processes, "ENDED_KEPT", 1)
    hands, _ = await hands_of(runtime)
    for _ in range(2):
        await hands.start("sleep 1000", cwd=None)
    with pytest.raises(errors.LimitReached):
        await hands.start("sleep 1000", cwd=None)
    for background in hands.processes():
        await hands.process_kill(background.process_id)
    await eventually(lambda: len(hands.processes()) == 1)


async def open_terminal(runtime: ProfileRuntime, *command: str, session_id: str | None = None) -> Terminal:
    scope, cwd, size = runtime.scope, runtime.home.user, Size(24, 80)
    place = backend_for(runtime, scope, cwd)
    running = await place.open(command or place.shell(""), cwd, terminal=size)
    return await runtime.ongoing.terminals.add(scope, session_id, command, cwd, size, running)


class Looker:
    """A viewer of a terminal, as a connection is one."""

    def __init__(self, terminal: Terminal) -> None:
        self.text = ""
        self.sizes: list[tuple[int, int]] = []
        self._tail = terminal.tail
        self._marks = LiveMarks()
        self._news = trio.Event()
        self._tail.attach(self._wake)

    def _wake(self) -> None:
        self._news.set()

    async def until(self, words: str) -> None:
        with trio.fail_after(30):
            while True:
                self._news = trio.Event()
                taken = self._tail.take(Cursor(0, 0), self._marks, 1 << 20)
                told = [json.loads(each.json)["params"]["payload"] for each in taken.frames]
                self.text += "".join(each.get("text", "") for each in told)
                self.sizes += [(each["rows"], each["columns"]) for each in told if "rows" in each]
                if words in self.text:
                    return
                await self._news.wait()


async def test_a_terminal_shows_the_same_to_all_who_look_and_takes_keys_and_sizes(runtime: ProfileRuntime) -> None:
    """Neither redacted nor stored: a person typed into it."""
    terminal = await open_terminal(runtime, "/bin/bash", "--norc")
    name = terminal.terminal_id
    first = Looker(terminal)
    await runtime.ongoing.terminals.input(name, "tty; stty size; echo $TOKEN; echo mark-1\n")
    await first.until("\r\nmark-1")
    second = Looker(terminal)
    await second.until("\r\nmark-1")
    assert first.text == second.text
    assert "/dev/pts/" in first.text
    assert "24 80" in first.text
    assert "value-of-the-token" in first.text
    await runtime.ongoing.terminals.resize(name, Size(40, 120))
    await runtime.ongoing.terminals.input(
        name, 'until [ "$(stty size)" = "40 120" ]; do sleep 0.05; done; stty size; echo mark-2\n'
    )
    await second.until("\r\nmark-2")
    assert "40 120" in second.text
    assert runtime.ongoing.terminals.rows()[0].columns == 120
    await runtime.ongoing.terminals.input(name, "sleep 1000 & exit 5\n")
    with trio.fail_after(30):
        await terminal.gone.wait()
    assert terminal.tail.farewell is not None
    assert b'"exit_code":5' in terminal.tail.farewell.json.replace(b" ", b"")
    with pytest.raises(errors.NotFound):
        await runtime.ongoing.terminals.input(name, "more")


async def test_who_last_worked_in_a_terminal_decides_its_size(runtime: ProfileRuntime) -> None:
    """However many look, and in whatever order their windows change: nobody who only looks moves who types."""
    terminals = runtime.ongoing.terminals
    terminal = await open_terminal(runtime, "/bin/cat")
    name = terminal.terminal_id
    lookers = [Looker(terminal), Looker(terminal)]

    def size() -> tuple[int, int]:
        (row,) = terminals.rows()
        return row.rows, row.columns

    await terminals.resize(name, Size(30, 100), viewer="one")
    await terminals.resize(name, Size(20, 60), viewer="two", working=False)
    assert size() == (30, 100)
    await terminals.input(name, "x", viewer="two")
    assert size() == (20, 60)
    await terminals.resize(name, Size(31, 101), viewer="one", working=False)
    assert size() == (20, 60)
    await terminals.resize(name, Size(21, 61), viewer="two", working=False)
    assert size() == (21, 61)
    async with trio.open_nursery() as nursery:
        for turn in range(10):
            nursery.start_soon(lambda turn=turn: terminals.input(name, "x", viewer=("one", "two")[turn % 2]))
    assert size() == ({"one": (31, 101), "two": (21, 61)}[terminal.works or ""])
    await terminals.input(name, "end of it\n", viewer="one")
    assert size() == (31, 101)
    for looker in lookers:
        await looker.until("end of it")
        assert looker.sizes[-1] == (31, 101)
    await terminals.close(name)


async def test_control_keys_reach_the_foreground_job_and_closing_ends_a_stubborn_shell(runtime: ProfileRuntime) -> None:
    terminal = await open_terminal(runtime, "/bin/bash", "--norc", "-i")
    looker = Looker(terminal)
    # A signal before the shell has set itself up would end it.
    await runtime.ongoing.terminals.input(terminal.terminal_id, "echo ready-$((1+1))\n")
    await looker.until("ready-2")
    await runtime.ongoing.terminals.input(terminal.terminal_id, "sh -c 'echo in-$((2+2)); exec sleep 1000'\n")
    await looker.until("in-4")
    await runtime.ongoing.terminals.input(terminal.terminal_id, "\x03")
    await runtime.ongoing.terminals.input(terminal.terminal_id, "trap '' HUP TERM; echo mark\n")
    await looker.until("\r\nmark")
    await runtime.ongoing.terminals.close(terminal.terminal_id)
    assert runtime.ongoing.terminals.count == 0
    granted = await runtime.warden_for(runtime.scope, runtime.home.user)
    assert granted.warden.statistics().running == 0


async def test_a_program_that_prints_much_stalls_nobody_and_keeps_the_end(runtime: ProfileRuntime) -> None:
    terminal = await open_terminal(runtime, "/bin/sh", "-c", "seq 200000; echo the end")
    with trio.fail_after(60):
        await terminal.gone.wait()
    looker = Looker(terminal)
    await looker.until("the end")
    assert len(looker.text) < 200_000


async def test_terminals_have_a_bound(runtime: ProfileRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminals, "OPEN", 1)
    await open_terminal(runtime, "/bin/sh")
    with pytest.raises(errors.LimitReached):
        runtime.ongoing.terminals.check_room()


async def test_a_pipe_to_a_tool_server_has_its_own_secrets_and_ends_with_its_owner(runtime: ProfileRuntime) -> None:
    """REAP-11: one child, and none once it is closed. Standard error has a pipe of its own."""
    hands, _ = await hands_of(runtime)
    script = "echo $KEY-$TOKEN; echo problem >&2; while read line; do echo heard $line; done; echo end"
    pipe = await hands.open_pipe(["/bin/sh", "-c", script], env={"KEY": "k"})
    assert await pipe.receive() == b"k-\n"
    assert await pipe.receive_problems() == b"problem\n"
    await pipe.send(b"one\n")
    assert await pipe.receive() == b"heard one\n"
    await pipe.close_input()
    assert await pipe.receive() == b"end\n"
    assert await pipe.receive() == b""
    assert (await pipe.wait()).exit_code == 0
    await pipe.aclose()
    second = await hands.open_pipe(["/bin/sh", "-c", "sleep 1000"], env={})
    await second.aclose()
    granted = await runtime.warden_for(runtime.scope, runtime.home.user)
    assert granted.warden.statistics().running == 0


async def test_paths_are_completed_where_the_session_works(runtime: ProfileRuntime) -> None:
    hands, _ = await hands_of(runtime)
    await hands.write(Path("docs/a[1].txt"), "x")
    await hands.write(Path("data.txt"), "x")
    assert await hands.complete("d") == ("data.txt", "docs/")
    assert await hands.complete("docs/a[") == ("docs/a[1].txt",)
    assert set(await hands.complete("../")) <= {"../home/"}, "in a namespace its own way down may be seen, and no more"
    assert await hands.complete("missing/x") == ()


@pytest.mark.parametrize("program", [backend.RIPGREP, "/no/ripgrep"])
async def test_a_search_finds_the_same_with_ripgrep_and_without(
    program: str, runtime: ProfileRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    if program == backend.RIPGREP and not os.access(program, os.X_OK):
        pytest.skip("ripgrep is not installed")
    monkeypatch.setattr(backend, "RIPGREP", program)
    hands, _ = await hands_of(runtime)
    for name, text in (
        ("b/one.py", "x\nneedle value-of-the-token\n"),
        ("a.txt", "needle\r\nNEEDLE\n"),
        ("node_modules/x.js", "needle\n"),
        (".gitignore", "*.txt\n"),
        ("b/data", "\0needle"),
    ):
        await hands.write(Path(name), text)
    found = await hands.search_files(Path("."), "need.e")
    assert [(match.name, match.line, match.text) for match in found.matches] == [
        ("a.txt", 1, "needle"),
        ("b/one.py", 2, "needle «secret:TOKEN»"),
    ]
    assert not found.more
    assert len((await hands.search_files(Path("."), "needle", ignore_case=True, pattern="*.txt")).matches) == 2
    assert (await hands.search_files(Path("."), "needle", limit=1)).more
    assert [match.name for match in (await hands.search_files(Path("a.txt"), "needle")).matches] == ["a.txt"]
    assert (await hands.search_files(Path("."), "need.e", literal=True)).matches == []
    with pytest.raises(errors.InvalidParams):
        await hands.search_files(Path("."), "(")
    with pytest.raises(errors.NotFound):
        await hands.search_files(Path("missing"), "x")


async def test_what_two_write_to_one_process_at_once_stays_apart(runtime: ProfileRuntime) -> None:
    """Both wait for a program that does not read yet; neither is refused, and no line is torn."""
    hands, _ = await hands_of(runtime)
    waits = "until [ -e gate ]; do sleep 0.05; done; while read line; do echo ${#line} ${line%${line#?}}; done"
    started = await hands.start(waits, cwd=None)
    async with trio.open_nursery() as nursery:
        for letter in "ab":
            nursery.start_soon(hands.process_write, started.process_id, f"{letter * 99}\n" * 2000)
        await trio.testing.wait_all_tasks_blocked()
        (runtime.home.user / "gate").touch()
    with trio.fail_after(30):
        output = ""
        while output.count("\n") < 4000:
            output = await hands.process_output(started.process_id, limit=100_000)
            await trio.sleep(0.01)
    assert sorted(set(output.split("\n"))) == ["", "99 a", "99 b"]
