"""What somebody meets who has nothing yet, and what they are told where it cannot work."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hermes_ws.cli.locating import TYPED, as_typed
from hermes_ws.cli.main import hermes_ws
from hermes_ws.contract.catalog import METHODS
from hermes_ws.contract.methods.sessions import SessionList
from tests.cli.conftest import Run, environment
from tests.client.peer import Peer
from tests.e2e.terminal import Terminal


def test_the_first_profile_needs_nothing_before_it(run: Run, home: Path) -> None:
    home.rmdir()
    made = run("profile", "create", "work")
    assert made.returncode == 0, made.stderr
    assert home.stat().st_mode & 0o777 == 0o700
    listed = run("profile", "list")
    assert (listed.stdout.splitlines()[0].split(":")[0], listed.returncode) == ("default", 0), listed.stderr
    assert "work: closed" in listed.stdout


@pytest.mark.parametrize(
    "arguments", [["profile", "create", "work"], ["profile", "list"], ["ensure"], ["chat", "-q", "x"]]
)
def test_a_home_that_cannot_be_made_is_told_by_its_path(run: Run, home: Path, arguments: list[str]) -> None:
    """Where a directory should be there is a file: it cannot be made whoever one is."""
    home.rmdir()
    home.write_text("no directory")
    told = run(*arguments)
    assert (told.stdout, told.returncode) == ("", 1)
    assert str(home) in told.stderr
    assert "Traceback" not in told.stderr


def test_nothing_there_is_told_with_what_to_type(run: Run, home: Path) -> None:
    told = run("status")
    assert (told.stdout, told.returncode) == ("", 1)
    assert told.stderr.startswith(f"Error: No server runs for {home}.\nhermes-ws ensure starts one")
    assert list(home.iterdir()) == [], "looking makes nothing"


@pytest.mark.parametrize(("method", "typed"), TYPED)
def test_what_a_server_hints_at_is_said_as_it_is_typed(method: str, typed: str) -> None:
    assert method in METHODS
    _, group, command, *_ = typed.split()
    found = hermes_ws.commands[group]
    assert command in found.commands  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    assert as_typed(f"{method} shows them.") == f"{typed} shows them."


def test_what_takes_its_time_is_told_to_a_person_and_to_no_program(peer: Peer, run: Run, home: Path) -> None:
    """Once, on a terminal alone; the answer comes below it."""
    told = threading.Event()
    peer.answers["session.list"] = SessionList(sessions=[])

    def slow(method: str, result: dict[str, object]) -> dict[str, object]:
        if method == "session.list":
            told.wait(20)
        return result

    peer.doctor = slow
    terminal = Terminal(environment(home, NO_COLOR="1"), "session", "list")
    try:
        terminal.see(r"This takes a moment \.\.\.\n")
        told.set()
        assert terminal.end() == 0
    finally:
        told.set()
        terminal.close()
    assert terminal.text == "This takes a moment ...\n"
    program = run("session", "list")
    assert (program.stdout, program.stderr, program.returncode) == ("", "", 0)
