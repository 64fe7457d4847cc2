"""The whole thing as real processes: two homes, two clients, one server, and nothing crosses."""

from __future__ import annotations

import hashlib
import signal
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gateway_client import Client
from tests.e2e.process import Server, all_gone, children, environment_of

BASE = {"PATH", "HOME", "LANG", "TZ", "TERM", "TMPDIR", "USER", "SHELL"}

Serve = Callable[..., Server]


def digest(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


def names(environ: bytes) -> set[str]:
    return {each.split(b"=", 1)[0].decode() for each in environ.split(b"\0") if each}


@pytest.fixture
def pair(serve: Serve) -> tuple[Server, Client, Client, str, str]:
    """A server, a client in each home, and a session each."""
    server = serve()
    first, second = server.connect(), server.connect()
    one = first.call("session.create", profile="default")
    two = second.call("session.create", profile="second")
    assert one["profile"] == "default"
    assert two["profile"] == "second"
    return server, first, second, one["session_id"], two["session_id"]


def test_each_session_has_its_own_value_of_a_shared_name(pair: tuple[Server, Client, Client, str, str]) -> None:
    _, first, second, one, two = pair
    for client, session, name in ((first, one, "default"), (second, two, "second"), (first, one, "default")):
        done = client.run(session, 'printf %s "$SHARED" | sha256sum')
        assert done["output"].split()[0] == digest(f"shared-value-of-{name}-1234")


def test_no_name_of_the_other_home_is_in_a_command(pair: tuple[Server, Client, Client, str, str]) -> None:
    _, first, second, one, two = pair
    mine = set(first.run(one, "env | cut -d= -f1 | sort")["output"].split())
    other = set(second.run(two, "env | cut -d= -f1 | sort")["output"].split())
    assert {"SHARED", "ONLY_A"} <= mine
    assert {"SHARED", "ONLY_B"} <= other
    assert "ONLY_B" not in mine
    assert "ONLY_A" not in other


def test_the_other_home_and_the_server_are_out_of_reach(
    pair: tuple[Server, Client, Client, str, str], homes: Path
) -> None:
    server, first, second, one, two = pair
    for client, session, foreign in ((first, one, homes / "second"), (second, two, homes / "default")):
        for what in (f"{foreign}/.env", f"{foreign}/config.yaml", f"/proc/{server.pid}/environ"):
            done = client.run(session, f"cat {what}; echo status=$?")
            assert "status=1" in done["output"], done
            assert "value-of" not in done["output"]
        listed = client.run(session, f"ls {foreign}; echo status=$?")
        assert "status=2" in listed["output"]


def test_a_secret_of_the_own_home_is_shown_by_name_only(pair: tuple[Server, Client, Client, str, str]) -> None:
    _, first, _, one, _ = pair
    done = first.run(one, 'echo "$SHARED"')
    assert done["output"].strip() == "«secret:SHARED»"
    assert not any("shared-value-of" in str(event) for event in first.events)


def test_the_process_environment_holds_base_names_and_does_not_change(serve: Serve) -> None:
    server = serve(env={"PARENT_KEY": "parent-value-999999", "OPENAI_API_KEY": "sk-parent-0000"})
    before = environment_of(server.pid)
    assert names(before) <= BASE
    assert b"parent-value" not in before
    client = server.connect()
    session = client.call("session.create", profile="second")["session_id"]
    assert "PARENT_KEY" not in client.run(session, "env | cut -d= -f1")["output"]
    for pid in children(server.pid):
        assert b"parent-value" not in environment_of(pid)
    assert environment_of(server.pid) == before


def folded(events: list[dict[str, Any]], message_id: str, already: str = "") -> str:
    """The text of a message as a client puts it together."""
    text = already
    for event in events:
        payload = event["payload"]
        if event["type"] == "message.delta" and payload["message_id"] == message_id:
            assert payload["offset"] == len(text), "a gap or a repetition"
            text += payload["text"]
    return text


def test_a_cut_connection_resumes_in_the_middle_of_an_answer(pair: tuple[Server, Client, Client, str, str]) -> None:
    server, first, _, one, _ = pair
    admitted = first.submit(one, "/do stream 300 5 8")
    first.until(lambda e: e["type"] == "message.delta" and e["payload"]["offset"] > 200)
    committed = [event for event in first.events if "cursor" in event]
    first.cut()
    time.sleep(0.1)

    again = server.connect()
    snapshot = again.call("session.resume", session_id=one, after=committed[-1]["cursor"])
    assert snapshot["position"] == "ok"
    progress = snapshot["in_progress"]
    assert progress is not None
    assert len(progress["text"]) > 200
    assert again.finished(admitted["admission_id"])["outcome"] == "completed"
    whole = again.until(
        lambda e: e["type"] == "message.complete" and e["payload"]["message_id"] == progress["message_id"]
    )
    assert folded(again.events, progress["message_id"], progress["text"]) == whole["payload"]["text"]
    later = [event["seq"] for event in again.events if "seq" in event]
    start = committed[-1]["seq"]
    assert later == list(range(start + 1, start + 1 + len(later)))


def committed(client: Client) -> list[dict[str, Any]]:
    return [event for event in client.events if "cursor" in event]


def assert_kept(client: Client, session: str, events: list[dict[str, Any]]) -> None:
    """Every event that was delivered is there again, the same to the letter."""
    page = client.call("session.events.since", session_id=session, after="1:0", limit=2000)
    replayed = {event["cursor"]: event for event in page["events"]}
    for event in events:
        assert replayed[event["cursor"]] == event


def test_nothing_acknowledged_is_missing_after_a_kill(serve: Serve, homes: Path) -> None:
    with (homes / "second" / "config.yaml").open("a") as file:
        file.write("agent:\n  after_crash: unknown\n")
    server = serve()
    first, second = server.connect(), server.connect()
    one = first.call("session.create", profile="default")["session_id"]
    two = second.call("session.create", profile="second")["session_id"]
    done = first.submit(one, "remember the blue door")
    first.finished(done["admission_id"])
    running = second.submit(two, "/do stream 5000 10")
    second.until(lambda e: e["type"] == "message.delta")
    waiting = [second.submit(two, f"queued number {number}") for number in range(3)]
    left = children(server.pid)

    server.kill()
    assert all_gone(left), "a child outlived its server"
    client = serve().connect()
    assert_kept(client, one, committed(first))
    assert_kept(client, two, committed(second))
    receipt = client.call("prompt.receipt", session_id=one, admission_id=done["admission_id"])
    assert receipt["outcome"] == "completed"
    lost = client.call("prompt.receipt", session_id=two, admission_id=running["admission_id"])
    assert lost["status"] == "unknown"
    for each in waiting:
        receipt = client.call("prompt.receipt", session_id=two, admission_id=each["admission_id"])
        assert receipt["status"] == "queued"
    resumed = client.call("session.resume", session_id=two, after=committed(second)[-1]["cursor"])
    assert resumed["execution"] is None
    assert [row["status"] for row in resumed["pending"]] == ["unknown", "queued", "queued", "queued"]
    event = client.until(lambda e: e["type"] == "execution.lost")
    assert event["admission_id"] == running["admission_id"]
    generation = event["payload"]["execution_generation"]
    said = {"admission_id": running["admission_id"], "execution_generation": generation}
    client.call("prompt.resolve_unknown", session_id=two, **said)
    for each in waiting:
        assert client.finished(each["admission_id"])["outcome"] == "completed"


def test_an_execution_that_was_killed_at_a_safe_point_goes_on_once(
    pair: tuple[Server, Client, Client, str, str], serve: Serve
) -> None:
    server, first, _, one, _ = pair
    running = first.submit(one, "/do stream 120 10")
    first.until(lambda e: e["type"] == "message.delta")
    server.kill()
    client = serve().connect()
    client.call("session.resume", session_id=one, after="1:0")
    assert client.finished(running["admission_id"])["outcome"] == "completed"
    assert_kept(client, one, committed(first))
    inputs = [e for e in client.events if e["type"] == "message.complete" and e["payload"]["role"] == "user"]
    assert len(inputs) == 1, "the input was taken twice"
    started = [e["payload"]["execution_generation"] for e in client.events if e["type"] == "execution.started"]
    assert started == [1, 2]


def test_a_command_that_was_running_does_not_outlive_a_killed_server(
    pair: tuple[Server, Client, Client, str, str],
) -> None:
    server, first, _, one, _ = pair
    first.submit(one, "/do run sleep 600 & setsid sleep 601; wait")
    first.answer(first.question(), choice="once")
    first.until(lambda e: e["type"] == "tool.start")
    until = time.monotonic() + 20
    while time.monotonic() < until:
        running = children(server.pid)
        commands = [Path(f"/proc/{pid}/comm").read_text().strip() for pid in running if Path(f"/proc/{pid}").exists()]
        if commands.count("sleep") == 2:
            break
        time.sleep(0.05)
    else:
        raise AssertionError(f"the command did not start: {commands}")
    server.kill()
    assert all_gone(running)


def test_a_repeated_input_is_admitted_once(pair: tuple[Server, Client, Client, str, str]) -> None:
    """TURN-07: after a lost reply the same input_id finds what became of the first."""
    _, first, _, one, _ = pair
    input_id = uuid.uuid4().hex
    receipts = [first.call("prompt.submit", session_id=one, input_id=input_id, text="once") for _ in range(3)]
    assert len({each["admission_id"] for each in receipts}) == 1
    first.finished(receipts[0]["admission_id"])
    started = [e for e in first.events if e["type"] == "execution.started"]
    assert len(started) == 1


def test_a_drained_server_ends_with_status_zero_and_keeps_what_it_took(
    pair: tuple[Server, Client, Client, str, str], serve: Serve
) -> None:
    server, first, _, one, _ = pair
    admitted = first.submit(one, "before the end")
    first.finished(admitted["admission_id"])
    assert server.stop() == 0
    client = serve().connect()
    state = client.call("session.resume", session_id=one)
    texts = [message["text"] for message in state["messages"]]
    assert "before the end" in texts[0]


def test_who_asks_again_and_again_does_not_change_how_it_ends(serve: Serve) -> None:
    server = serve()
    while server.process.poll() is None:
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.002)
    assert server.stop() == 0
