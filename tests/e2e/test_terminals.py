"""Terminals over the wire: opened by one client, watched by another, closed; and background processes in a list."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.gateway_client import Client, Refused
from tests.e2e.process import Server


def shown(client: Client, terminal_id: str, words: str) -> str:
    """What a terminal has shown to a client, once the words are in it."""

    def text() -> str:
        return "".join(
            event["payload"]["text"]
            for event in client.events
            if event["type"] == "terminal.output" and event["payload"]["terminal_id"] == terminal_id
        )

    while words not in text():
        client.pump()
    return text()


def test_two_clients_look_at_one_terminal_and_both_see_its_end(shared_server: Server) -> None:
    one, two = shared_server.connect(), shared_server.connect()
    opened = one.call("terminal.open", profile="second", command=["/bin/sh"], rows=30, columns=90)
    name = opened["terminal_id"]
    one.call("terminal.input", terminal_id=name, data="stty size; echo $TERM; echo $ONLY_B; echo mark\n")
    first = shown(one, name, "\r\nmark")
    assert "30 90" in first
    assert "\nxterm-256color" in first
    assert "only-value-of-second" in first, "what a person's terminal shows is not redacted"
    two.call("terminal.attach", terminal_id=name)
    assert shown(two, name, "\r\nmark") == first
    (row,) = two.call("terminal.list", profile="second")["terminals"]
    assert (row["terminal_id"], row["viewers"], row["cwd"]) == (name, 2, opened["cwd"])
    assert two.call("terminal.list", profile="default")["terminals"] == []
    two.call("terminal.resize", terminal_id=name, rows=10, columns=40)
    two.call("terminal.input", terminal_id=name, data="stty size\n")
    shown(one, name, "10 40")
    one.call("terminal.close", terminal_id=name)
    for client in (one, two):
        exited = client.until(lambda event: event["type"] == "terminal.exited")
        assert exited["payload"]["terminal_id"] == name
    with pytest.raises(Refused) as caught:
        two.call("terminal.input", terminal_id=name, data="x")
    assert caught.value.type == "not_found"


@pytest.mark.parametrize(
    ("params", "type"),
    [
        ({"cwd": "/no/such/place"}, "directory_refused"),
        ({"cwd": "{home}/.."}, "directory_refused"),
        ({"rows": 0}, "invalid_params"),
        ({"command": []}, "invalid_params"),
        ({"profile": "nobody"}, "profile_unknown"),
    ],
)
def test_a_terminal_that_may_not_be_is_refused(shared_server: Server, params: dict[str, Any], type: str) -> None:
    client = shared_server.connect()
    home = client.call("terminal.open", command=["true"])["cwd"]
    said = {key: value.format(home=home) if key == "cwd" else value for key, value in params.items()}
    with pytest.raises(Refused) as caught:
        client.call("terminal.open", **said)
    assert caught.value.type == type


def test_a_terminal_of_one_profile_cannot_be_named_as_anothers(shared_server: Server) -> None:
    client = shared_server.connect()
    name = client.call("terminal.open", profile="second", command=["/bin/cat"])["terminal_id"]
    with pytest.raises(Refused):
        client.call("terminal.input", profile="default", terminal_id=name, data="x")
    client.call("terminal.close", terminal_id=name)


def started(client: Client, session_id: str, command: str) -> str:
    """Have the agent start a command in the background; its id."""
    arguments = json.dumps({"command": command, "background": True})
    admitted = client.submit(session_id, f"/do tool terminal {arguments}")
    client.answer(client.question(), choice="once")
    client.finished(admitted["admission_id"])
    (row,) = client.call("process.list", session_id=session_id)["processes"]
    name: str = row["process_id"]
    return name


def test_a_person_types_to_a_background_process_and_one_that_does_not_read_holds_nothing_up(
    shared_server: Server,
) -> None:
    client = shared_server.connect()
    session = client.call("session.create", profile="second")["session_id"]
    name = started(client, session, "read line; echo got $line; read more; sleep 1000")
    other = shared_server.connect()
    for each in (client, other):
        assert each.call("process.follow", process_id=name)["following"] is True
    client.call("process.input", process_id=name, text="these words\n")
    for each in (client, other):
        wrote = each.until(lambda event: "got these words" in event["payload"].get("text", ""))
        assert (wrote["type"], wrote["payload"]["process_id"]) == ("process.output", name)
    assert other.call("process.follow", process_id=name, follow=False)["following"] is False
    client.call("process.input", process_id=name, text="then nothing\n")
    with pytest.raises(Refused) as caught:
        for _ in range(20):
            client.call("process.input", process_id=name, text="x" * 65_536)
    assert caught.value.type == "limit_reached"
    with pytest.raises(Refused) as stranger:
        client.call("process.input", profile="default", process_id=name, text="x")
    assert stranger.value.type == "profile_mismatch"
    client.call("process.kill", process_id=name)
    ended = client.until(lambda event: event["type"] == "process.ended")
    assert ended["payload"]["signal"] is not None
    other.call("process.list", profile="second")
    assert "process.ended" not in {event["type"] for event in other.events}
    client.call("process.follow", process_id=name)
    client.until(lambda event: event["type"] == "process.ended" and event is not ended)
    with pytest.raises(Refused) as ended:
        client.call("process.input", process_id=name, text="x")
    assert ended.value.type == "not_found"


def test_a_connection_is_told_which_rights_it_has(shared_server: Server) -> None:
    owner = shared_server.connect()
    assert owner.ready["payload"]["rights"] == ["admin", "answer", "control", "observe", "submit", "terminal"]
    made = owner.call("token.create", name="narrow", profiles=["second"], rights=["observe", "answer"])
    narrow = Client(shared_server.url, made["token"])
    assert narrow.ready["payload"]["rights"] == ["answer", "observe"]
    with pytest.raises(Refused):
        narrow.call("terminal.open", profile="second")
