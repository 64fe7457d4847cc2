"""Safe mode: no key, no rule and no memory of the profile can reach the session, whatever its model or its tools do.

A profile has a canary in every place that there is. A session in safe mode is served by a model that is recorded and
calls every tool that it is offered; then everything that it was given, and everything that it told, is searched.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import trio
import trio.testing

from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal.address import ThreadKey
from hermes_ws.scope.config import ProfileConfig
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.secrets import Secrets
from hermes_ws.scope.terminal import load_policy
from hermes_ws.scope.terminal_sections import TerminalConfig
from hermes_ws.session.briefing import Ground, ground_of
from hermes_ws.session.hands import SessionHands
from hermes_ws.session.safe import emptied_policy
from tests.agent.chat_server import ChatServer, Wire
from tests.session.house import House, new_session, say
from tests.session.slashing import below

KEY = "sk-of-the-launch-request-1234"

MARK = "canary"
"""Stands in everything that is the profile's, and in nothing else."""

CONFIG = f"""model: {{name: {MARK}-model, provider: mine}}
providers:
  mine: {{kind: openai, base_url: 'http://127.0.0.1:9/{MARK}-url', api_key: '${{PLACED}}'}}
approvals: {{mode: auto, rules: [{{tool: terminal, command: '{MARK}-rule *', decision: allow}}]}}
hooks:
  session_start: [{{command: 'echo {MARK}-hook-start >> $HOME/hooked'}}]
  tool_before: [{{command: 'echo {MARK}-hook-tool >> $HOME/hooked'}}]
  turn_end: [{{command: 'echo {MARK}-hook-turn >> $HOME/hooked'}}]
  session_end: [{{command: 'echo {MARK}-hook-end >> $HOME/hooked'}}]
mcp_servers:
  theirs: {{command: /bin/echo, args: [{MARK}-server]}}
quick_commands:
  quick: {{type: exec, command: 'echo {MARK}-quick'}}
  asked: {{type: prompt, prompt: '{MARK}-prompt'}}
terminal:
  env: [TOKEN]
  cwd: {{outside}}
  read: [{{outside}}]
  write: [{{outside}}]
  ssh: [{{outside}}/{MARK}-ssh-key]
  unix_sockets: allow
  caches: shared
  home: user
"""

ENV = f"TOKEN={MARK}-token-0001\nPLACED={MARK}-placed-0002\nOPENAI_API_KEY={MARK}-openai-0003\n"


@pytest.fixture
async def server(nursery: trio.Nursery) -> ChatServer:
    running = ChatServer()
    listeners = await nursery.start(partial(trio.serve_tcp, running.handle, 0, host="127.0.0.1"))
    running.port = listeners[0].socket.getsockname()[1]
    return running


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    for name in ("AGENTS.md", f"{MARK}-ssh-key", "notes.txt"):
        (place / name).write_text(f"{MARK} in {name}\n")
    return place


@pytest.fixture
async def runtime(house: House, outside: Path) -> AsyncIterator[ProfileRuntime]:
    house.launch_secrets = {"LAUNCHED": f"{MARK}-launched-0004"}
    home = house.home("default", config=CONFIG.replace("{outside}", str(outside)), env=ENV)
    for place in ("SOUL.md", "agents/default.md", "agents/helper.md", "memories/MEMORY.md", "memories/USER.md",
                  "home/AGENTS.md", "home/.gitconfig", "home/.ssh/id_ed25519", "skills/brew/SKILL.md"):  # fmt: skip
        file = home / place
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = file.parent.name if file.name == "SKILL.md" else file.stem
        file.write_text(f"---\nname: {name}\ndescription: {MARK} about it\n---\n{MARK} in {place}\n")
    async with house.served():
        yield await house.runtime()


def strings(value: object, seen: set[int] | None = None) -> Iterator[str]:
    """Every text that can be reached from a value of ours, also what it does not show."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    match value:
        case str():
            yield value
        case Path():
            yield str(value)
        case Mapping():
            for pair in cast("Mapping[object, object]", value).items():
                yield from strings(pair, seen)
        case tuple() | list() | set() | frozenset():
            for item in cast("Iterable[object]", value):
                yield from strings(item, seen)
        case Secrets():
            for name in value.__slots__:
                yield from strings(getattr(value, name), seen)
        case ProfileConfig():
            yield value.model_dump_json()
        case _ if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                yield from strings(getattr(value, field.name), seen)
        case _:
            pass


async def ground(runtime: ProfileRuntime, **options: Any) -> Ground:
    session, thread, _ = await new_session(runtime, **options)
    return await ground_of(runtime, runtime.sessions.keys, session.record, thread.key)


async def test_the_scope_of_the_session_holds_nothing_of_the_profile(runtime: ProfileRuntime) -> None:
    """By construction: what acts for the session is given this one value, and no canary can be reached from it."""
    usual = "\n".join(strings((await ground(runtime)).scope))
    for name in ("model", "url", "rule", "hook-start", "server", "quick", "token-0001", "placed-0002", "launched-0004"):
        assert f"{MARK}-{name}" in usual, "the search finds what there is"
    found = await ground(runtime, safe_mode=True, api_key=KEY)
    held = "\n".join([*strings(found.scope), *strings(found.settings), *strings(found.agent)])
    assert MARK not in held
    assert KEY in held, "the key that came with the request is there, to be hidden"
    assert found.scope.home.path.is_relative_to(runtime.home.cache)
    assert sorted(os.listdir(found.scope.home.path)) == ["cache", "home"]
    assert os.listdir(found.cwd) == [".tmp"]


async def test_its_warden_is_its_own_and_grants_the_empty_directory_alone(runtime: ProfileRuntime) -> None:
    found = await ground(runtime, safe_mode=True, api_key=KEY)
    own = await runtime.warden_for(found.scope, found.cwd)
    usual = await runtime.warden_for(runtime.scope, runtime.home.user)
    assert own.warden is not usual.warden
    assert own.grants.read == ()
    assert own.grants.write == (found.scope.home.user,)
    assert own.grants.unix_sockets == "deny"
    assert own.grants.confine == "auto"
    other = await ground(runtime, safe_mode=True, api_key=KEY)
    assert (await runtime.warden_for(other.scope, other.cwd)).warden is not own.warden


def calls(wire: Wire, outside: Path, home: Path) -> list[dict[str, Any]]:
    """A call of every tool that was offered: looking for what is the profile's, where it can be looked for."""
    looking = f"env; cat {outside}/* {home}/SOUL.md {home}/.env {home}/memories/* ~/AGENTS.md; ls -a {home} {outside}"
    wanted: dict[str, dict[str, Any]] = {
        "terminal": {"command": looking},
        "read_file": {"path": f"{home}/SOUL.md"},
        "write_file": {"path": "mine.txt", "content": "mine"},
        "list_files": {"path": str(home)},
        "search_files": {"path": str(home), "expression": MARK[:4]},
        "patch": {"path": f"{outside}/notes.txt", "edits": [{"old": "in", "new": "out"}]},
    }
    offered = [tool["function"]["name"] for tool in wire.asked.body["tools"]]
    return [
        {"index": number, "id": f"call-{number}", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for number, (name, arguments) in enumerate(wanted.items())
        if name in offered
    ]


async def test_what_its_model_is_sent_and_what_its_tools_find_is_nothing_of_the_profile(
    runtime: ProfileRuntime, server: ChatServer, outside: Path
) -> None:
    async def call(wire: Wire) -> None:
        await wire.begin()
        await wire.delta(tool_calls=calls(wire, outside, runtime.home.path))
        await wire.delta(finish_reason="tool_calls")
        await wire.end()

    async def answer(wire: Wire) -> None:
        await wire.begin()
        await wire.delta(content="done", finish_reason="stop")
        await wire.end()

    server.answers += [call, answer, answer]  # the last one: a title for the session
    options = {"provider": "openai", "model": "m", "base_url": server.base_url, "api_key": KEY}
    session, thread, viewer = await new_session(
        runtime, safe_mode=True, yolo=True, accept_hooks=True, checkpoints=True, **options
    )
    await say(thread, "hello", "one")
    ended = await viewer.until("execution.finished")
    assert ended["payload"]["outcome"] == "completed", viewer.events
    first, second = server.asked[:2]
    assert first.headers["authorization"] == f"Bearer {KEY}"
    offered = {tool["function"]["name"] for tool in first.body["tools"]}
    assert offered == {
        *("terminal", "process", "read_file", "write_file", "patch", "list_files", "search_files", "clarify", "todo")
    }, "a tool that is new is thought about: what would it read of the profile, or leave in it?"
    assert len(second.body["messages"]) > len(first.body["messages"])
    await runtime.sessions.wait_until_idle()
    await runtime.sessions.close(session.session_id)
    # Paths that were asked about come back in errors; what stands in them does not.
    given = f"{MARK}-ssh-key"
    for asked in server.asked:
        told = json.dumps({"headers": dict(asked.headers), "body": asked.body}).replace(given, "")
        assert MARK not in told
    assert MARK not in json.dumps(viewer.events).replace(given, "")
    assert KEY not in json.dumps(viewer.events)
    for home in (runtime.home.user, runtime.home.cache):
        assert not list(home.rglob("hooked")), "no hook of the profile ran"


async def test_a_key_of_the_profile_is_not_used_when_the_request_brings_none(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime, safe_mode=True, provider="openai", model="m")
    await say(thread, "hello", "one")
    ended = (await viewer.until("execution.finished"))["payload"]
    assert (ended["outcome"], ended["error"]["type"]) == ("failed", "model_unauthorised")
    _, thread, viewer = await new_session(runtime, safe_mode=True, provider="mine", model="m")
    await say(thread, "hello", "one")
    ended = (await viewer.until("execution.finished"))["payload"]
    assert "no provider 'mine'" in ended["error"]["message"]


async def test_its_children_hold_nothing_of_the_profile(runtime: ProfileRuntime) -> None:
    """Environment, command line, working directory and descriptors, while one of them runs."""
    session, thread, _ = await new_session(runtime, safe_mode=True, api_key=KEY)
    found = await ground_of(runtime, runtime.sessions.keys, session.record, thread.key)
    hands = SessionHands(runtime, found.scope, found.cwd, ThreadKey(session.session_id, "main"))
    started = await hands.start("echo up; sleep 1000", cwd=None)
    with trio.fail_after(30):
        while "up" not in await hands.process_output(started.process_id, limit=10):  # noqa: ASYNC110
            await trio.sleep(0.02)
    own = await runtime.warden_for(found.scope, found.cwd)
    looked_at = 0
    for pid in below(own.warden.statistics().pid):
        held = _held(pid)
        assert MARK not in held
        assert KEY not in held
        looked_at += 1
    assert looked_at
    await runtime.reload()
    await trio.testing.wait_all_tasks_blocked(0.2)
    assert hands.processes()[0].running, "a load that changes nothing about the terminal ends nothing"
    await hands.process_kill(started.process_id)


def _held(pid: int) -> str:
    place = Path(f"/proc/{pid}")
    try:
        texts = [(place / "environ").read_text(), (place / "cmdline").read_text(), os.readlink(place / "cwd")]
        return "\n".join([*texts, *(os.readlink(entry) for entry in (place / "fd").iterdir())])
    except OSError:
        return ""


async def test_where_the_profile_works_elsewhere_a_safe_session_works_here(house: House) -> None:
    """What reaches the other machine is a key of the profile."""
    house.home("default", config="terminal:\n  backend: ssh\n  remote: {host: elsewhere.example}\n")
    async with house.served():
        runtime = await house.runtime()
        session, thread, _ = await new_session(runtime, safe_mode=True, api_key=KEY)
        found = await ground_of(runtime, runtime.sessions.keys, session.record, thread.key)
        hands = SessionHands(runtime, found.scope, found.cwd, thread.key)
        ran = await hands.run("pwd", cwd=None, deadline_s=30, on_output=lambda _text: None)
        assert ran.output.strip() == str(found.cwd)


def test_limits_and_refusals_of_the_policy_stay(tmp_path: Path) -> None:
    config = TerminalConfig.model_validate(
        {"network": "deny", "deadline_s": 7, "memory_bytes": 10**9, "processes": 9, "cpu_s": 3, "confine": "required"}
    )
    policy = load_policy(config, home=ProfileHome(tmp_path / "home"), homes=(), user_home=tmp_path)
    kept = emptied_policy(policy)
    for name in ("network", "deadline_s", "memory_bytes", "processes", "open_files", "file_bytes", "cpu_s", "confine"):
        assert getattr(kept, name) == getattr(policy, name), name
