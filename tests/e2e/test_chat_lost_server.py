"""The server is killed in the middle of a turn: what a person is told, and how they go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.gateway_client import PATIENCE
from tests.e2e.process import Server
from tests.e2e.terminal import COMMAND, Terminal
from tests.e2e.test_command_line import command, session_of

Serve = Callable[..., Server]
Open = Callable[..., Terminal]

RUNNING = "/do run touch begun; sleep 600"
"""A command with an effect: when the server dies over it, nobody can know how far it came."""


@pytest.fixture
def environment(homes: Path, base_environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    own = {"HERMES_HOME": str(homes / "default"), "XDG_STATE_HOME": str(tmp_path / "state"), "NO_COLOR": "1"}
    return {**base_environment, **own}


@pytest.fixture
def chat(environment: dict[str, str]) -> Iterator[Open]:
    opened: list[Terminal] = []

    def open_one(*arguments: str) -> Terminal:
        opened.append(Terminal(environment, "chat", *arguments))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


def test_a_turn_that_is_lost_is_told_and_given_up_by_its_id(serve: Serve, chat: Open, homes: Path) -> None:
    server = serve()
    terminal = chat("--yolo", "--in", str(place(homes)))
    terminal.ready()
    terminal.type(RUNNING)
    terminal.see(r"\* terminal: touch begun")
    wait_for_effect(homes)
    server.kill()
    terminal.see(r"The connection to the server ended\. Connecting again; what it accepted is kept there\.\n")
    serve()
    admission = terminal.see(r"An execution was lost when the server ended(.|\n)*\n/discard (\S+)\n").group(2)
    terminal.type("/discard nothing-of-that-name")
    terminal.see(r"No lost execution nothing-of-that-name was shown here\.\n")
    terminal.type("/do say behind it")
    terminal.type(f"/discard {admission}")
    terminal.see(rf"{admission} is given up; what waits behind it goes on\.\n")
    terminal.see(r"behind it\n> $")
    terminal.type(f"/discard {admission}")
    terminal.see(rf"No lost execution {admission} was shown here\.\n")
    terminal.type("/quit")
    assert terminal.end() == 0


def test_one_prompt_whose_turn_is_lost_ends_with_three_and_nothing_is_submitted_behind_it(
    serve: Serve, environment: dict[str, str], homes: Path, tmp_path: Path
) -> None:
    server = serve()
    usage = tmp_path / "usage.json"
    options = ("--yolo", "--in", str(place(homes)), "--usage-file", str(usage))
    with one_shot(environment, "-z", RUNNING, *options) as running:
        wait_for_effect(homes)
        server.kill()
        serve()
        out, errors = running.communicate(timeout=PATIENCE)
    assert (out, running.returncode) == ("", 3), errors
    session = session_of(errors)
    assert f"hermes-ws session discard {session} --yes" in errors
    told = json.loads(usage.read_text())
    assert (told["completed"], told["turn_exit_reason"], told["session_id"]) == (False, "unknown", session)
    behind = command(environment, "chat", "--resume", session, "-Q", "-q", "/do say never")
    assert (behind.stdout, behind.returncode) == ("", 3)
    assert "Nothing was submitted." in behind.stderr
    assert "hermes-ws session discard" in behind.stderr
    assert command(environment, "session", "discard", session).returncode == 2, "nobody is there to agree"
    given_up = command(environment, "session", "discard", session, "--yes")
    assert given_up.stdout.startswith("given up: ")
    after = command(environment, "chat", "--resume", session, "-Q", "-q", "/do say after it")
    assert (after.stdout, after.returncode) == ("after it\n", 0), after.stderr


def test_a_server_that_nobody_starts_again_is_started_by_what_is_typed_next(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """A home whose server the command started itself: the view says that it is gone, and a line brings it back."""
    home = tmp_path / "own"
    home.mkdir(mode=0o700)
    own = {**environment, "HERMES_HOME": str(home)}
    terminal = Terminal(own, "chat")
    try:
        session = terminal.session()
        terminal.ready()
        kill_the_server_of(own)
        terminal.see(r"The server ended\. What is typed next starts one again; /quit leaves\.\n> $")
        terminal.type("/do say back again")
        terminal.see(r"back again\n> $")
        terminal.type("/quit")
        assert terminal.end() == 0
        kept = command(own, "session", "show", session)
        assert "assistant: back again" in kept.stdout
        with one_shot(own, "-q", "/do wait 600") as running:
            assert running.stderr is not None
            while "Session: " not in (line := running.stderr.readline()):
                assert line
            while "running: " not in command(own, "session", "show", line.split()[1]).stdout:
                pass
            kill_the_server_of(own)
            _, errors = running.communicate(timeout=PATIENCE)
        assert running.returncode == 3, errors
        assert "none runs any more" in errors
        assert f"hermes-ws chat --resume {line.split()[1]}" in errors
    finally:
        terminal.close()
        command(own, "stop", "--within", "0")


@contextmanager
def one_shot(environment: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A run for a program, which is gone at the end."""
    with subprocess.Popen(
        [*COMMAND, "chat", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def place(homes: Path) -> Path:
    """Where the profile's commands may write."""
    made = homes / "default" / "home" / "place"
    made.mkdir(parents=True, exist_ok=True)
    return made


def kill_the_server_of(environment: dict[str, str]) -> None:
    """kill -9 of the process that serves the home of this test."""
    told = json.loads(command(environment, "status", "--json").stdout)
    os.kill(told["server"]["pid"], signal.SIGKILL)


def wait_for_effect(homes: Path) -> None:
    """Until the command runs."""
    until = time.monotonic() + PATIENCE
    while not (place(homes) / "begun").exists():
        assert time.monotonic() < until, "the command did not begin"
        time.sleep(0.02)
