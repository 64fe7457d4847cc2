"""Cases about two profiles that have the same thing under the same name: servers, secrets, searches, logs."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import trio

from hermes_ws.contract.methods.sessions import ListParams
from hermes_ws.hosting.host import Host
from hermes_ws.journal.search import search
from hermes_ws.scope.identity import ProfileName
from hermes_ws.scope.profile_scope import ProfileScope
from tests.session.house import House, eventually, new_session, say

A, B = ProfileName("default"), ProfileName("work")

SERVER = """
import json, os, sys

if os.environ["KEY"] == "broken":
    raise SystemExit(3)
whose = os.environ["KEY"][::-1] + " " + str(os.getpid())
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    said = {
        "initialize": {
            "protocolVersion": asked.get("params", {}).get("protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "same", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "who", "description": "Whose key.", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": whose}]},
    }.get(asked["method"], {})
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}), flush=True)
"""
"""A tool server in a few lines, which starts at once. It tells its key turned round, so that nothing hides it."""


@pytest.fixture
def house(house: House) -> House:
    house.home("work")
    return house


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    return path


def config(script: Path) -> str:
    server = {"command": sys.executable, "args": ["-I", "-S", str(script)], "env": {"KEY": "${KEY}"}}
    return json.dumps({"mcp_servers": {"same": server}, "terminal": {"read": [str(script)]}})


class Asking:
    """A session of a profile that calls the tool of the server called `same`."""

    def __init__(self, host: Host, name: ProfileName) -> None:
        self._host = host
        self._name = name
        self._said = 0

    async def begin(self) -> None:
        self.runtime = await self._host.open(self._name)
        self.session, self._thread, self._viewer = await new_session(self.runtime, yolo=True)

    async def who(self) -> list[str]:
        """What the tool answers, in words."""
        self._said += 1
        await say(self._thread, "/do tool same__who {}", f"input-{self._said}")
        told = (await self._viewer.until("tool.complete"))["payload"]["output"]
        await self._viewer.until("execution.finished")
        return str(told).split()

    @property
    def rows(self) -> list[tuple[str, str]]:
        listed = self.runtime.ongoing.servers.rows(self.session.session_id, self.runtime.scope)
        return [(row.name, row.state) for row in listed]


async def test_global_01_same_named_tool_servers_have_their_own_keys_and_03_are_reloaded_by_themselves(
    house: House, script: Path
) -> None:
    house.home("default", config=config(script), env="KEY=key-of-a-0001\n")
    house.home("work", config=config(script), env="KEY=key-of-b-0002\n")
    async with house.served() as host:
        a, b = Asking(host, A), Asking(host, B)
        await a.begin()
        await b.begin()
        first, of_a, again = await b.who(), await a.who(), await b.who()
        assert [each[0][::-1] for each in (first, of_a, again)] == ["key-of-b-0002", "key-of-a-0001", "key-of-b-0002"]
        assert first == again, "one process"
        house.home("default", config=config(script), env="KEY=key-of-a-0003\n")
        await a.runtime.reload()
        assert (await a.who())[0][::-1] == "key-of-a-0003"
        assert await b.who() == first, "its process was left alone"
        assert b.rows == [("same", "ready")]


async def test_global_02_a_server_that_fails_in_one_profile_works_in_the_other(house: House, script: Path) -> None:
    house.home("default", config=config(script), env="KEY=broken\n")
    house.home("work", config=config(script), env="KEY=key-of-b-0002\n")
    async with house.served() as host:
        a, b = Asking(host, A), Asking(host, B)
        await a.begin()
        await b.begin()
        for _ in range(3):
            assert "key-of" not in " ".join(await a.who())[::-1]
        assert a.rows[0][1] != "ready"
        assert (await b.who())[0][::-1] == "key-of-b-0002"
        assert b.rows == [("same", "ready")]


async def test_global_05_what_one_fetched_a_moment_ago_is_not_given_to_the_other(house: House) -> None:
    """A helper that prints a token, called the same way in both, one right after the other."""
    words = json.dumps(["sh", "-c", "echo TOKEN=token-of-$(basename $HERMES_HOME)"])
    source = f"secrets:\n  sources:\n    - kind: command\n      command: {words}\n"
    for name in ("default", "work"):
        house.home(name, config=source)
    async with house.served() as host:

        async def token(name: ProfileName) -> str | None:
            scope: ProfileScope = await (await host.open(name)).fresh_scope()
            return scope.secrets.get("TOKEN")

        assert [await token(each) for each in (A, B, A)] == ["token-of-default", "token-of-work", "token-of-default"]


async def test_global_10_what_a_tool_was_asked_is_in_no_file_of_another_profile(house: House) -> None:
    """No log, journal or cache: nothing in the other home holds the argument, and the own one does."""
    argument = "argument-4711-of-work"
    for name in ("default", "work"):
        house.home(name, config="approvals:\n  mode: auto\n")
    async with house.served() as host:
        await new_session(await host.open(A))
        _, thread, viewer = await new_session(await host.open(B))
        await say(thread, f"/do run echo {argument}", "one")
        await viewer.until("execution.finished")
    assert _files_with(house.root / "work", argument)
    assert _files_with(house.root / "default", argument) == []


async def test_scope_04_a_search_finds_what_the_named_profile_holds(house: House) -> None:
    async with house.served() as host:
        for name, word in ((A, "quince"), (B, "medlar")):
            _, thread, viewer = await new_session(await host.open(name))
            await say(thread, f"/do say {word}", "one")
            await viewer.until("execution.finished")
        for name, own, other in ((A, "quince", "medlar"), (B, "medlar", "quince"), (A, "quince", "medlar")):
            journal = (await host.open(name)).journal
            assert await journal.read(lambda connection, own=own: search(connection, own, 10))
            assert not await journal.read(lambda connection, other=other: search(connection, other, 10))


async def test_scope_06_where_a_log_is_said_to_be_is_the_profiles_own(house: House) -> None:
    async with house.served() as host:
        for name in (A, B, A):
            runtime = await host.open(name)
            runtime.log.write("info", "test.line", said="here")
            own = house.root / name.text
            assert runtime.home.logs == own / "logs"
            await eventually(lambda own=own: bool(_files_with(own / "logs", "test.line")))


async def test_scope_07_a_sessions_directory_is_kept_in_its_own_home(house: House, tmp_path: Path) -> None:
    """Also after the server was started again, and the other home's database has not heard of it."""
    place = tmp_path / "a-place-of-work"
    place.mkdir()
    async with house.served() as host:
        await new_session(await host.open(A))
        session, _, _ = await new_session(await host.open(B), cwd=str(place))
        session_id = session.session_id
    async with house.served() as host:
        await host.open(A)
        assert (await (await host.open(B)).sessions.get(session_id)).record.cwd == str(place)
    assert _files_with(house.root / "default", place.name) == []


async def test_scope_11_the_session_that_is_named_decides_and_nothing_else_does(house: House) -> None:
    """Whatever was opened, used or listed last: an input lands in the session whose id it bears."""
    async with house.served() as host:
        made = {name: await new_session(await host.open(name)) for name in (A, B)}
        for last, meant in ((B, A), (A, B), (B, B)):
            await (await host.open(last)).sessions.list(ListParams())
            _, thread, viewer = made[meant]
            await say(thread, f"/do say {last}-{meant}", f"{last}-{meant}")
            await viewer.until("execution.finished")
        assert await _words(host, A) == ["work-default"]
        assert await _words(host, B) == ["default-work", "work-work"]


async def test_res_07_sessions_in_many_directories_leave_nothing_running(house: House, tmp_path: Path) -> None:
    """Each directory has a warden of its own while it works, and none when it has not for a while."""
    house.home("default", config="approvals:\n  mode: auto\nwarden:\n  idle_s: 0.2\n")
    others = set(_children())  # of tests that ran before in this process
    async with house.served() as host:
        runtime = await host.open(A)
        pids: set[str] = set()
        for number in range(6):
            place = tmp_path / f"place-{number}"
            place.mkdir()
            _, thread, viewer = await new_session(runtime, cwd=str(place))
            await say(thread, "/do run pwd", "one")
            assert str(place) in (await viewer.until("tool.complete"))["payload"]["output"]
            await viewer.until("execution.finished")
            viewer.leave()
            pids |= set(_children()) - others
        assert pids
        await eventually(lambda: not pids & set(_children()))


async def test_reap_02_idle_time_is_not_that_of_the_clock_on_the_wall(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that slept, or whose clock was set: what is idle is counted while it is awake."""
    assert time.get_clock_info("perf_counter").implementation == "clock_gettime(CLOCK_MONOTONIC)"
    async with house.served() as host:
        runtime = await host.open(A)
        session, _, viewer = await new_session(runtime)
        viewer.leave()
        awake = time.time
        monkeypatch.setattr(time, "time", lambda: awake() + 86_400)
        await runtime.reaper.look()
        assert runtime.sessions.open == 1
        assert (await runtime.sessions.get(session.session_id)) is session


def _children() -> list[str]:
    return Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()


def _files_with(place: Path, text: str) -> list[str]:
    return [
        str(path.relative_to(place))
        for path in place.rglob("*")
        if path.is_file() and not path.is_symlink() and text.encode() in path.read_bytes()
    ]


async def _words(host: Host, name: ProfileName) -> list[str]:
    def said(connection: Any) -> list[str]:
        return [row[0] for row in connection.execute("SELECT input_id FROM admission ORDER BY rowid")]

    with trio.fail_after(30):
        return await (await host.open(name)).journal.read(said)
