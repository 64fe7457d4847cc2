"""The command, against a real server: what a newcomer types, and what a script relies on."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.gateway_client import PATIENCE
from tests.e2e.process import Server

COMMAND = (sys.executable, "-m", "hermes_ws.cli.main")


@pytest.fixture
def environment(shared_server: Server, base_environment: dict[str, str]) -> dict[str, str]:
    return {**base_environment, "HERMES_HOME": str(shared_server.homes / "default")}


def command(
    environment: dict[str, str], *args: str, typed: str | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *args],
        env=environment,
        cwd=cwd,
        input=typed,
        stdin=subprocess.DEVNULL if typed is None else None,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def session_of(errors: str) -> str:
    found = re.search(r"Session: (\S+)", errors)
    assert found is not None, errors
    return found[1]


def test_a_question_is_answered_on_stdout(environment: dict[str, str]) -> None:
    done = command(environment, "chat", "-q", "What can you do?")
    assert done.returncode == 0, done.stderr
    assert "What can you do?" in done.stdout
    assert "Resume this session with:" in done.stdout
    assert session_of(done.stderr) in done.stdout


def test_quiet_prints_the_reply_and_nothing_else(environment: dict[str, str]) -> None:
    done = command(environment, "chat", "-Q", "-q", "/do say the whole reply")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "the whole reply"


def test_another_profile_is_reached_through_the_same_socket(environment: dict[str, str]) -> None:
    done = command(environment, "chat", "--profile", "second", "-Q", "-q", 'say "$SHARED"')
    assert done.returncode == 0, done.stderr
    listed = json.loads(command(environment, "status", "--json").stdout)
    states = {row["name"]: row["state"] for row in listed["profiles"]}
    assert states["second"] == "open"


def test_what_needs_a_person_ends_with_three_and_can_be_answered_later(
    environment: dict[str, str], tmp_path: Path
) -> None:
    asked = command(environment, "chat", "-q", "/do run touch made-after-approval", cwd=tmp_path)
    assert asked.returncode == 3, asked.stderr
    session = session_of(asked.stderr)
    question = re.search(r"srq-[a-z0-9]+-[0-9]+", asked.stderr)
    assert question is not None, asked.stderr
    typed = f"/approve {question[0]} once\n/do run ls\n"
    resumed = command(environment, "chat", "--resume", session, typed=typed)
    assert resumed.returncode == 0, resumed.stderr
    again = command(environment, "chat", "-Q", "--resume", session, "-q", "/do run ls")
    assert "made-after-approval" in again.stdout


def test_status_says_what_is_served(environment: dict[str, str]) -> None:
    done = command(environment, "status")
    assert done.returncode == 0
    assert "default" in done.stdout
    assert "second" in done.stdout


def test_without_a_server_one_is_started_found_again_and_stopped(
    base_environment: dict[str, str], tmp_path: Path
) -> None:
    """PROC: one start serves all; `stop` waits until it is gone, and status tells so."""
    (tmp_path / "home").mkdir(mode=0o700)
    own = {**base_environment, "HERMES_HOME": str(tmp_path / "home")}
    try:
        done = command(own, "chat", "-Q", "-q", "/do say hello")
        assert (done.stdout, done.returncode) == ("hello\n", 0), done.stderr
        ensured = json.loads(command(own, "ensure", "--json").stdout)
        assert (ensured["state"], ensured["profile"]) == ("ready", None)
        assert "serving" in command(own, "logs").stdout
        link = command(own, "open").stdout.strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#ticket=\S+", link)
    finally:
        stopped = command(own, "stop", "--within", "0")
    assert stopped.returncode == 0, stopped.stderr
    told = command(own, "status", "--json")
    assert (told.returncode, json.loads(told.stdout)["state"]) == (1, "absent")
    assert command(own, "stop").returncode == 0


def test_an_unknown_profile_is_an_error_and_no_other_is_used_instead(environment: dict[str, str]) -> None:
    done = command(environment, "chat", "--profile", "nope", "-q", "hello")
    assert done.returncode == 1
    assert "nope" in done.stderr
    assert done.stdout == ""


def test_an_interrupted_command_detaches_and_the_work_goes_on(
    environment: dict[str, str], shared_server: Server
) -> None:
    process = subprocess.Popen(
        [*COMMAND, "chat", "-q", "/do stream 60 50"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    line = ""
    while "Session:" not in line:
        line = process.stderr.readline()
        assert line, "it ended before it had a session"
    client = shared_server.connect()
    snapshot = client.call("session.resume", session_id=session_of(line), after="1:0")
    client.until(lambda event: event["type"] == "message.start" and event["payload"]["role"] == "assistant")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, errors
    end = client.until(lambda event: event["type"] == "execution.finished")
    assert end["payload"]["outcome"] == "completed"
    assert snapshot["session_id"] == session_of(line)
    client.close()


def test_a_second_server_over_the_same_homes_is_refused(
    shared_server: Server, base_environment: dict[str, str]
) -> None:
    """STORE-06: one owner per home, and the one that is there is not disturbed."""
    token = Path(shared_server.announced["token_file"]).read_text()
    done = command(base_environment, "serve", "--profiles-root", str(shared_server.homes), "--port", "0")
    assert done.returncode == 1
    assert str(shared_server.pid) in done.stderr
    assert Path(shared_server.announced["token_file"]).read_text() == token
    assert shared_server.connect().call("gateway.ping") == {"ok": True}


def test_a_port_that_is_taken_is_said_and_leaves_nothing_behind(
    shared_server: Server, base_environment: dict[str, str], tmp_path: Path
) -> None:
    port = shared_server.url.rsplit(":", 1)[1].split("/")[0]
    (tmp_path / "homes" / "default").mkdir(parents=True)
    done = command(base_environment, "serve", "--profiles-root", str(tmp_path / "homes"), "--port", port)
    assert done.returncode == 1
    assert "--port 0" in done.stderr
    assert not (tmp_path / "homes" / "default" / "run" / "gateway.sock").exists()


def test_binding_to_the_world_is_refused(base_environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "default").mkdir()
    args = ("serve", "--profiles-root", str(tmp_path), "--host", "0.0.0.0", "--port", "0")
    done = command(base_environment, *args)
    assert done.returncode == 1
    assert "--tls-cert" in done.stderr


def test_help_costs_nothing_heavy(base_environment: dict[str, str]) -> None:
    script = (
        "import sys; from hermes_ws.cli.main import hermes_ws\n"
        "try:\n    hermes_ws(['--help'])\nfinally:\n    print(sorted(sys.modules))"
    )
    run = [sys.executable, "-c", script]
    modules = subprocess.run(run, env=base_environment, capture_output=True, text=True, check=False).stdout
    assert "'click'" in modules
    for heavy in ("'trio'", "'pydantic'", "'websockets'", "'sqlite3'"):
        assert heavy not in modules


def test_the_state_of_a_server_is_no_one_elses_to_read(shared_server: Server) -> None:
    for path in (shared_server.announced["token_file"], shared_server.announced["socket"]):
        assert os.stat(path).st_mode & 0o077 == 0
