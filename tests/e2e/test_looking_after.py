"""Profiles, sessions, tokens and settings looked after, and the commands of the view, against a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.process import Server
from tests.e2e.test_command_line import command, session_of


@pytest.fixture
def environment(shared_server: Server, base_environment: dict[str, str]) -> dict[str, str]:
    return {**base_environment, "HERMES_HOME": str(shared_server.homes / "default")}


def test_a_conversation_is_edited_from_the_view(environment: dict[str, str]) -> None:
    typed = (
        "/do say first\n/title A title\n/yolo on\n/yolo\n/tools\n/usage\n/retry\n/retry\n/undo\n/undo\n"
        "/do say second\n/branch Aside\n/title\n/new Fresh\n/title\n/nonsense\n/aprove x once\n"
    )
    done = command(environment, "chat", typed=typed)
    assert done.returncode == 0, done.stderr
    for told in (
        "The session is called A title.",
        "This session asks for no approvals.",
        "This session asks for approvals again.",
        "toolsets: ",
        "Last turn: ",
        "Taken back. It was:\n/do say first\n",
        "\nAside\n",
        "\nFresh\n",
    ):
        assert told in done.stdout, done.stdout
    assert done.stdout.count("first\n") >= 2, "it was answered anew"
    assert "Type the same once more to agree." in done.stderr
    assert "Error: What was said" not in done.stderr, "to be asked is no error"
    assert "There is no command /nonsense." in done.stderr
    assert "There is no command /aprove. Did you mean /approve?" in done.stderr
    assert done.stderr.count("/help shows the commands of this view") == 2


def test_sessions_are_listed_found_shown_exported_and_removed(environment: dict[str, str]) -> None:
    begun = command(environment, "chat", "-q", "/do say marmalade", "-c", "Kept", "--create-if-missing")
    assert begun.returncode == 0, begun.stderr
    session = session_of(begun.stderr)
    again = command(environment, "chat", "-Q", "-q", "/do say more", "-c", "Kept", "--create-if-missing")
    assert session_of(again.stderr) == session
    rows = json.loads(command(environment, "session", "list", "--json").stdout)["sessions"]
    assert session in {row["session_id"] for row in rows}
    assert session in command(environment, "sessions", "search", "marmalade").stdout
    assert "user: /do say marmalade" in command(environment, "session", "show", "Kept").stdout
    assert "marmalade" in command(environment, "session", "export", session).stdout
    assert command(environment, "session", "discard", session, "--yes").stdout == "Nothing was lost there.\n"
    assert command(environment, "session", "delete", session).returncode == 2
    assert command(environment, "session", "delete", session, "--yes").returncode == 0
    gone = command(environment, "session", "show", session)
    assert (gone.stdout, gone.returncode) == ("", 1)


def test_a_resume_refuses_to_change_what_the_session_was_made_with(environment: dict[str, str]) -> None:
    begun = command(environment, "chat", "-Q", "-q", "/do say hi", "--max-turns", "9", "--checkpoints")
    session = session_of(begun.stderr)
    same = command(environment, "chat", "-Q", "-q", "/do say hi", "--max-turns", "9", "--resume", session)
    assert (same.stdout, same.returncode) == ("hi\n", 0), same.stderr
    other = command(environment, "chat", "-Q", "-q", "/do say hi", "--max-turns", "8", "--resume", session)
    assert (other.stdout, other.returncode) == ("", 2)
    assert "--max-turns on a resume is unsupported" in other.stderr


def test_a_directory_is_given_by_in_and_has_a_real_effect(environment: dict[str, str], shared_server: Server) -> None:
    place = shared_server.homes / "default" / "home" / "given"
    place.mkdir(parents=True)
    done = command(environment, "chat", "-Q", "-q", "/do run pwd > receipt", "--in", str(place), "--yolo")
    assert done.returncode == 0, done.stderr
    assert (place / "receipt").read_text().strip() == str(place)
    refused = command(environment, "chat", "-Q", "-q", "/do run pwd", "--in", "/proc/nowhere")
    assert (refused.stdout, refused.returncode) == ("", 1)


def test_tokens_and_settings_are_looked_after(environment: dict[str, str]) -> None:
    made = json.loads(command(environment, "token", "create", "ci", "--right", "observe", "--json").stdout)
    assert made["token"] not in command(environment, "token", "list").stdout
    assert command(environment, "token", "revoke", made["token_id"]).returncode == 0
    assert command(environment, "token", "revoke", made["token_id"]).returncode == 1
    assert command(environment, "config", "set", "agent.max_turns", "33").stdout == "agent.max_turns: 33\n"
    assert command(environment, "config", "get", "agent.max_turns").stdout == "33\n"
    assert command(environment, "config", "check").returncode == 0


def test_profiles_are_made_without_a_server_and_none_is_left(base_environment: dict[str, str], tmp_path: Path) -> None:
    home = tmp_path / "root"
    home.mkdir(mode=0o700)
    own = {**base_environment, "HERMES_HOME": str(home)}
    made = command(own, "profile", "create", "work", "--json")
    assert made.returncode == 0, made.stderr
    assert Path(json.loads(made.stdout)["home"]) == home / "profiles" / "work"
    twice = command(own, "profile", "create", "work")
    assert (twice.stdout, twice.returncode) == ("", 1)
    assert json.loads(command(own, "status", "--json").stdout)["state"] == "absent"


def test_the_doctor_tells_which_clients_are_connected_and_which_are_old(
    environment: dict[str, str], shared_server: Server
) -> None:
    kinds = ({"name": "an-app", "version": "7.1"}, {"name": "hermes-ws chat", "version": "0.0.1"}, {"name": "an-app"})
    clients = [shared_server.connect(client=kind) for kind in (*kinds, kinds[0])]
    try:
        report = json.loads(command(environment, "doctor", "--json").stdout)
    finally:
        for client in clients:
            client.close()
    told = {each["subject"]: each for each in report["findings"] if each["check"] == "client"}
    assert told["an-app 7.1"]["message"] == "an-app 7.1 is connected (2 connections)."
    assert told["an-app"]["level"] == "ok"
    assert told["hermes-ws chat 0.0.1"]["level"] == "warning"
    assert told["hermes-ws chat 0.0.1"]["remedy"]
    assert not [subject for subject in told if "doctor" in subject]
