"""Everything else that could tell: tools, events, logs, errors, children, the disk. One world, used by all of it."""

from __future__ import annotations

import http.client
import json
import os
import urllib.parse
from contextlib import suppress
from pathlib import Path

import pytest

from hermes_ws.agent.tools.registry import TOOLS
from hermes_ws.contract.events import EVENTS
from tests.e2e.gateway_client import Refused
from tests.e2e.process import children, environment_of, write_home
from tests.leak import examples
from tests.leak.world import MARK, PARENT, Side, World, mark
from tests.session.slashing import SIGN

SCRIPT = """/do think {mark}
/do stream 20 1
/do run echo "$SHARED"; env; pwd; cat notes.txt
/do ask Which one? | this | that"""


def test_the_search_finds_what_it_looks_for(world: World) -> None:
    first, second = world.sides[:2]
    for canary in second.canaries:
        assert world.leaked(first, f"before {canary} after"), canary
        assert world.leaked(None, f"before {canary} after"), canary
    for value in first.secrets.values():
        assert world.leaked(first, value), "a secret's own profile is not told its value either"
    assert not world.leaked(first, " ".join(first.shown))


def test_every_tool_and_event_has_an_example() -> None:
    missing = sorted(TOOLS.keys() - examples.TOOLS.keys())
    assert not missing, f"add an example of {missing} to tests/leak/examples.py, TOOLS (it says how)"
    missing = sorted(EVENTS.keys() - examples.EVENTS.keys())
    assert not missing, f"add {missing} to tests/leak/examples.py, EVENTS (it says how)"


ANSWERS = {"approval": {"choice": "once"}, "clarify": {"answers": {"q1": "a"}}, "connection": {"targets": {}}}
"""What each kind of question is answered with; values are not given."""


def use_tool(world: World, side: Side, name: str) -> str:
    """Have the side's agent call a tool, answer what it asks, and give all events of that turn."""
    client = side.client
    arguments = json.dumps(examples.TOOLS[name](world, side))
    session = client.call("session.create", agent="default")["session_id"]
    asked = len(client.questions)
    before = len(client.events)
    admitted = client.submit(session, f"/do tool {name} {arguments}")
    while True:
        if len(client.questions) > asked:
            question = client.questions[asked]
            asked += 1
            answer = ANSWERS.get(question["method"].partition(".")[0], {"value": None})
            client.answer(question, **answer)
        ended = [e for e in client.events[before:] if e["type"] == "execution.finished"]
        if any(e["admission_id"] == admitted["admission_id"] for e in ended):
            return json.dumps(client.events[before:], ensure_ascii=False)
        client.pump()


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_a_tool_in_the_order_a_b_a_shows_its_own_home_only(world: World, name: str) -> None:
    first, second = world.sides[:2]
    for side in (first, second, first):
        told = use_tool(world, side, name)
        assert '"tool.complete"' in told, told
        world.check(side, told, f"tool {name}")


def test_what_each_connection_received_is_of_its_own_profile(world: World) -> None:
    """All events of all sides, with every turn interleaved with all others."""
    admitted = []
    before = {side.name: len(side.client.questions) for side in world.sides}
    for side in world.sides:
        text = SCRIPT.format(mark=side.shown[-1])
        admitted.append(side.client.submit(side.session, text)["admission_id"])
        world.owner.call("thread.subscribe", session_id=side.session)
    for side, admission in zip(world.sides, admitted, strict=True):
        client, asked = side.client, before[side.name]
        while not any(e["type"] == "execution.finished" and e["admission_id"] == admission for e in client.events):
            if len(client.questions) > asked:
                client.answer(client.questions[asked], answers={"q1": "this"})
                asked += 1
            client.pump()
    world.owner.call("session.close", session_id=world.fresh_session(world.sides[0]))
    with suppress(Refused):
        world.sides[0].client.call("terminal.open", command=["/bin/echo", "hello"])
        world.sides[0].client.until(lambda e: e["type"] == "terminal.exited")
    world.fresh_profile()
    seen: set[str] = set()
    for side in world.sides:
        for event in side.client.events:
            assert event.get("profile", side.name) == side.name
            world.check(side, event, f"event {event['type']}")
            seen.add(event["type"])
        world.check(side, side.client.ready, "gateway.ready")
        world.check(side, side.client.questions, "questions")
    by_session = {side.session: side for side in world.everyone}
    for event in world.owner.events:
        world.check(by_session.get(event.get("session_id", "")), event, f"event {event['type']} to the owner")
        seen.add(event["type"])
    expected = {type for type, note in examples.EVENTS.items() if note == examples.SEEN} & EVENTS.keys()
    assert expected - {"terminal.output", "session.closed", "profiles.changed"} <= seen, sorted(expected - seen)


def test_children_hold_nothing_of_another_home(world: World) -> None:
    """Environment, command line, working directory and open descriptors, while a command of every side runs."""
    running = {}
    for side in world.sides:
        session = side.client.call("session.create")["session_id"]
        side.client.submit(session, "/do run sleep 61")
        side.client.until(lambda e, s=session: e["type"] == "tool.start" and e["session_id"] == s)
        state = side.client.call("thread.state", session_id=session)
        running[session] = (side, state["execution"]["execution_generation"])
    looked_at = 0
    for pid in children(world.server.pid):
        with suppress(OSError):
            place = Path(f"/proc/{pid}")
            texts = [(place / "environ").read_bytes().decode(), (place / "cmdline").read_bytes().decode()]
            texts += [os.readlink(place / "cwd"), *(os.readlink(entry) for entry in (place / "fd").iterdir())]
            text = "\n".join(texts)
            assert PARENT not in text
            touched = [side.name for side in world.everyone if any(canary in text for canary in side.canaries)]
            assert len(touched) <= 1, f"{texts[1]} holds something of {touched}"
            looked_at += 1
    assert looked_at >= len(world.sides)
    for session, (side, generation) in running.items():
        side.client.call("session.interrupt", session_id=session, execution_generation=generation)


def test_a_slash_worker_serves_one_profile_alone(world: World) -> None:
    """Same-named commands in the orders A, B, A and interleaved: each shows its own home, in what it prints and what
    its process holds, while the workers of all sides live."""
    first, second = world.sides[:2]
    sessions = {side.name: side.client.call("session.create")["session_id"] for side in world.sides}
    for side in (first, second, first):
        told = side.client.call("slash.exec", session_id=sessions[side.name], command="/shown")
        assert "SHARED=«secret:SHARED»" in told["output"]
        assert mark(side.name, "quick") in told["output"]
        world.check(side, told, "slash.exec")
    asked = {
        side.name: [side.client.send("slash.exec", session_id=sessions[side.name], command="/shown") for _ in range(2)]
        for side in world.sides
    }
    for side in world.sides:
        for id in asked[side.name]:
            world.check(side, side.client.wait(id), "slash.exec")
    found = 0
    for pid in children(world.server.pid):
        with suppress(OSError):
            place = Path(f"/proc/{pid}")
            line = (place / "cmdline").read_text()
            if SIGN.decode() not in line or "bwrap" in line:
                continue
            held = "\n".join(
                [line, (place / "environ").read_text(), os.readlink(place / "cwd")]
                + [os.readlink(entry) for entry in (place / "fd").iterdir()]
            )
            touched = [side.name for side in world.everyone if any(canary in held for canary in side.canaries)]
            assert len(touched) == 1, touched
            assert PARENT not in held
            found += 1
    assert found >= len(world.sides)
    for side in world.sides:
        side.client.call("session.close", session_id=sessions[side.name])


def test_the_server_process_shows_nothing(world: World) -> None:
    """ENV-09: neither environment nor command line; what it prints is nobody's content."""
    place = Path(f"/proc/{world.server.pid}")
    shown = environment_of(world.server.pid) + (place / "cmdline").read_bytes() + world.server.log.read_bytes()
    world.check(None, shown.decode(errors="replace"), "the server process")
    assert PARENT.encode() not in shown
    assert environment_of(world.server.pid) == world.environment


def test_the_launch_profile_alone_has_what_the_service_manager_passed(world: World) -> None:
    """ENV-05: a name that nobody declared."""
    assert "PARENT_KEY" in world.launch.client.call("profiles.describe")["secret_names"]
    for side in world.sides:
        assert "PARENT_KEY" not in side.client.call("profiles.describe")["secret_names"]


def test_pages_over_http_hold_nothing(world: World) -> None:
    address = urllib.parse.urlsplit(world.server.url)
    for page in ("/healthz", "/readyz", "/openrpc.json", "/metrics", "/", "/nowhere"):
        connection = http.client.HTTPConnection(address.hostname or "", address.port or 0, timeout=30)
        connection.request("GET", page)
        world.check(None, connection.getresponse().read().decode(errors="replace"), page)
        connection.close()


def test_a_profile_that_cannot_be_opened_tells_no_value(world: World) -> None:
    """Errors name file, line and key; values, its own among them, stay where they are."""
    secret = "broken-canary-9f3e1c77aa"
    write_home(
        world.launch.path.parent / f"broken{len(world.sides)}",
        env={"KEY": secret},
        config=f"model:\n  api_key: {secret}\n  name: ${{SHARED}}\n",
    )
    answer = world.outcome(world.owner, world.owner.send("profiles.describe", profile=f"broken{len(world.sides)}"))
    assert answer["type"] == "profile_unusable"
    assert secret not in json.dumps(answer)
    world.check(None, answer, "the error of a broken home")


def test_no_home_and_no_temporary_file_holds_a_canary_of_another(world: World) -> None:
    """After everything: each byte of each home on disk, and of what lies beside them."""
    owners = {side.path: side for side in world.everyone}
    secrets = {value for side in world.everyone for value in side.secrets.values()}
    for top in (world.launch.path.parent, world.temporary):
        for directory, _, files in os.walk(top):
            side = next((side for path, side in owners.items() if Path(directory).is_relative_to(path)), None)
            for file in files:
                path = Path(directory) / file
                with suppress(OSError):
                    if not path.is_file():
                        continue
                    content = path.read_bytes().decode(errors="replace")
                    own = set() if side is None else {*side.secrets.values(), *side.shown}
                    foreign = sorted(set(MARK.findall(content)) - own)
                    if side is None and path.is_relative_to(world.launch.path.parent):
                        # A clone that an example made holds what was asked for, and no secret.
                        foreign = [canary for canary in foreign if canary in secrets]
                    assert not foreign, f"{path} holds {foreign}"
