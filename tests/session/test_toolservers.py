"""Tool servers of a session: a small real one, written with the SDK, that lives, dies and misbehaves."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hermes_ws.contract.methods.connection import ClientTool
from hermes_ws.contract.methods.questions import AnswerParams
from hermes_ws.contract.questions import ClientToolResult
from hermes_ws.hosting.runtime import ProfileRuntime
from tests.session.house import OWNER, House, People, Viewer, eventually, new_session, say

SERVER = '''
import os, sys, time
from mcp.server import MCPServer

server = MCPServer("small")

@server.tool()
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return f"{a + b}"

@server.tool()
def environment(name: str) -> str:
    """A variable of the environment."""
    return os.environ.get(name, "(not set)")

@server.tool()
def die() -> str:
    """End at once."""
    print("I die now", file=sys.stderr, flush=True)
    os._exit(3)

@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("it went wrong")

@server.tool(name="sleep-well.")
def sleep(seconds: float) -> str:
    """Take a while."""
    time.sleep(seconds)
    return "awake"

print("this line is no message", flush=True)
server.run()
'''


def do(tool: str, **arguments: Any) -> str:
    return f"/do tool {tool} {json.dumps(arguments)}"


def config(script: Path, **more: Any) -> str:
    server = {"command": sys.executable, "args": ["-I", str(script)], "env": {"TOKEN": "${MY_TOKEN}"}, **more}
    return json.dumps({"mcp_servers": {"small": server}, "terminal": {"read": [str(script)]}})


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    return path


@pytest.fixture
async def served(house: House, script: Path) -> AsyncIterator[ProfileRuntime]:
    house.home("default", config=config(script), env="MY_TOKEN=token-4711-abcdef\nOTHER=secret-of-the-terminal\n")
    async with house.served():
        yield await house.runtime()


async def output(viewer: Viewer) -> str:
    return (await viewer.until("tool.complete"))["payload"]["output"]


async def test_tools_of_a_server_are_called_by_their_own_names(served: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(served, yolo=True)
    stopped = served.ongoing.servers.rows(session.session_id, served.scope)
    assert [(row.name, row.transport, row.state) for row in stopped] == [("small", "stdio", "stopped")]
    await say(thread, do("small__add", a=2, b=3), "one")
    assert await output(viewer) == "5"
    [row] = served.ongoing.servers.rows(session.session_id, served.scope)
    assert (row.state, row.restarts, row.problem) == ("ready", 0, "")
    assert [name.rpartition("_")[0] if "sleep" in name else name for name in row.tools] == [
        "small__add",
        "small__environment",
        "small__die",
        "small__fail",
        "small__sleep-well_",
    ]


async def test_a_call_is_asked_by_the_tools_name(served: ProfileRuntime, people: People) -> None:
    _, thread, viewer = await new_session(served)
    await say(thread, f"{do('small__add', a=2, b=3)}\n\n{do('small__add', a=1, b=1)}", "one")
    question = await people.question()
    assert question.params["tool"] == "small__add"
    assert "every call of small__add" in str(question.params["description"])
    params = AnswerParams.model_validate({"id": question.id, "result": {"choice": "always"}})
    await served.sessions.answer(params, OWNER)
    assert [await output(viewer), await output(viewer)] == ["5", "2"]
    assert "small__add" in served.scope.home.config.read_text()


async def test_a_server_finds_its_own_secret_and_no_other(served: ProfileRuntime) -> None:
    """ENV: what a tool server is given is what its settings name."""
    _, thread, viewer = await new_session(served, yolo=True)
    await say(thread, "\n\n".join(do("small__environment", name=each) for each in ("TOKEN", "OTHER", "HOME")), "one")
    assert await output(viewer) == "«secret:MY_TOKEN»"
    assert await output(viewer) == "(not set)"
    assert await output(viewer) == str(served.scope.home.user)


async def test_a_server_that_dies_is_started_again_and_the_call_is_told(served: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(served, yolo=True)
    await say(thread, f"{do('small__die')}\n\n{do('small__add', a=2, b=2)}", "one")
    assert "ended during the call" in await output(viewer)
    assert await output(viewer) == "4"
    [row] = served.ongoing.servers.rows(session.session_id, served.scope)
    assert (row.state, row.restarts) == ("ready", 1)
    assert "I die now" in row.problem or row.problem == ""


async def test_a_failure_of_a_tool_is_the_models_to_read(served: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(served, yolo=True)
    await say(thread, f"{do('small__fail')}\n\n{do('small__add', a='x')}", "one")
    assert await output(viewer) == "Error executing tool fail"
    told = await viewer.until("tool.complete")
    assert told["payload"]["is_error"]


async def test_a_server_is_restarted_when_asked_and_ends_with_its_session(served: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(served, yolo=True)
    await say(thread, do("small__add", a=1, b=2), "one")
    await viewer.until("execution.finished", outcome="completed")
    servers = served.ongoing.servers
    assert servers.restart(session.session_id, "small") == 1
    assert servers.restart(session.session_id, "unknown") == 0
    await eventually(lambda: [row.restarts for row in servers.rows(session.session_id, served.scope)] == [1])
    await say(thread, do("small__add", a=3, b=4), "two")
    assert await output(viewer) == "7"
    await viewer.until("execution.finished", outcome="completed")
    viewer.leave()
    await eventually(lambda: not session.busy)
    await served.sessions.close(session.session_id)
    assert servers.count == 0


async def test_an_interrupt_ends_a_call_and_leaves_the_server(served: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(served, yolo=True)
    await say(thread, do("small__add", a=1, b=1), "zero")
    await viewer.until("execution.finished", outcome="completed")
    [name] = [each for row in served.ongoing.servers.rows(session.session_id, served.scope) for each in row.tools[4:]]
    await say(thread, do(name, seconds=60), "one")
    await viewer.until("tool.start", name=name)
    assert thread.active is not None
    assert thread.active.interrupt()
    await viewer.until("execution.finished", outcome="interrupted")


async def test_a_server_that_cannot_be_started_is_said_and_the_turn_goes_on(house: House, script: Path) -> None:
    broken = "import sys\nprint('no such thing', file=sys.stderr)\nsys.exit(1)\n"
    house.home("default", config=config(write(script, broken), env={}, connect_timeout=3), env="")
    async with house.served():
        runtime = await house.runtime()
        session, thread, viewer = await new_session(runtime)
        await say(thread, "/do say hello", "one")
        notice = await viewer.until("notice")
        assert "small" in notice["payload"]["message"]
        assert "no such thing" in notice["payload"]["message"]
        await viewer.until("execution.finished", outcome="completed")
        [row] = runtime.ongoing.servers.rows(session.session_id, runtime.scope)
        assert row.state in ("starting", "failed")


async def test_a_secret_that_is_missing_is_named(house: House, script: Path) -> None:
    house.home("default", config=config(script), env="")
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do say hello", "one")
        notice = await viewer.until("notice")
        assert "MY_TOKEN" in notice["payload"]["message"]
        await viewer.until("execution.finished", outcome="completed")
        # Once: not again with every turn.
        await say(thread, "/do say hello", "two")
        await viewer.until("execution.finished", outcome="completed")
        assert viewer.types().count("notice") == 1


async def test_a_session_that_wants_none_starts_none(served: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(served, toolsets=["ask"])
    await say(thread, "/do say hello", "one")
    await viewer.until("execution.finished", outcome="completed")
    assert served.ongoing.servers.count == 0


# --- tools of clients ----------------------------------------------------------------------------------------------


async def test_a_tool_of_a_client_is_answered_by_it(runtime: ProfileRuntime, people: People) -> None:
    people.tools = (ClientTool(name="clipboard", description="Reads the clipboard.", parameters={"type": "object"}),)
    _, thread, viewer = await new_session(runtime)
    await say(thread, do("clipboard", which="main"), "one")
    question = await people.question()
    assert (question.kind, question.params["tool"], question.params["arguments"]) == (
        "client_tool",
        "clipboard",
        {"which": "main"},
    )
    result = ClientToolResult(output="copied words").model_dump()
    params = AnswerParams.model_validate({"id": question.id, "result": result})
    await runtime.sessions.answer(params, OWNER)
    assert await output(viewer) == "copied words"


async def test_a_tool_that_no_client_offers_any_more_is_not_there(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime)
    await say(thread, do("clipboard"), "one")
    assert "There is no tool clipboard" in await output(viewer)
