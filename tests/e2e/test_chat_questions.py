"""Approvals and questions on a terminal: what is shown, what counts as an answer, and what it does on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.process import Server
from tests.e2e.terminal import Terminal
from tests.e2e.test_command_line import command, session_of

Open = Callable[..., Terminal]


@pytest.fixture
def place(shared_server: Server, tmp_path: Path) -> Path:
    """A directory that the profile's commands may write to."""
    made = shared_server.homes / "default" / "home" / tmp_path.name
    made.mkdir(parents=True)
    return made


@pytest.fixture
def environment(shared_server: Server, base_environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    own = {"HERMES_HOME": str(shared_server.homes / "default"), "XDG_STATE_HOME": str(tmp_path / "state")}
    return {**base_environment, **own, "NO_COLOR": "1"}


@pytest.fixture
def chat(environment: dict[str, str], place: Path) -> Iterator[Open]:
    opened: list[Terminal] = []

    def open_one(*arguments: str) -> Terminal:
        opened.append(Terminal(environment, "chat", "--in", str(place), *arguments))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


def asked(terminal: Terminal, line: str) -> str:
    """Have the agent do something that needs a yes; the id of the question."""
    terminal.ready()
    terminal.type(line)
    id = str(terminal.see(r"/approve (\S+) once\n").group(1))
    terminal.see(rf"/approve {id} deny\n> $")
    return id


def test_what_is_granted_is_done_and_what_is_denied_is_not(chat: Open, place: Path) -> None:
    terminal = chat()
    id = asked(terminal, "/do run touch denied")
    terminal.type(f"/approve {id} deny not today")
    terminal.see(r"not today(.|\n)*\n> $")
    assert list(place.iterdir()) == []
    id = asked_again(terminal, "/do run touch granted")
    terminal.type(f"/approve {id} once")
    terminal.ready()
    assert [each.name for each in place.iterdir()] == ["granted"]
    terminal.type("/quit")
    assert terminal.end() == 0


def asked_again(terminal: Terminal, line: str) -> str:
    """As `asked`, where the view is ready already."""
    terminal.type(line)
    id = str(terminal.see(r"/approve (\S+) once\n").group(1))
    terminal.see(rf"/approve {id} deny\n> $")
    return id


@pytest.mark.parametrize("typed", ["/approve {id} yes", "/approve {id}", "/answer {id} once", "/approve {id}x once"])
def test_what_is_no_answer_answers_nothing(chat: Open, place: Path, typed: str) -> None:
    """An invalid choice leaves the question open; it is asked again after leaving, and a yes has its effect."""
    terminal = chat()
    session = terminal.session()
    id = asked(terminal, "/do run touch made")
    terminal.type(typed.format(id=id))
    terminal.see(r"(no choice; there are|Type /approve ID CHOICE|is an approval; type|is open here)[^\n]*\n> $")
    assert list(place.iterdir()) == []
    terminal.type("/quit")
    assert terminal.end() == 0
    again = chat("--resume", session)
    again.see(rf"May the agent use terminal\?\n(.|\n)*/approve {id} deny\n> $")
    again.type(f"/approve {id} once")
    again.see(r"touch made(.|\n)*\n> $")
    assert [each.name for each in place.iterdir()] == ["made"]


def test_a_control_of_an_earlier_execution_does_nothing(chat: Open, place: Path) -> None:
    """The question of an execution that was stopped stays unanswered, also when the same is asked again."""
    terminal = chat()
    old = asked(terminal, "/do run touch stale")
    terminal.type("/stop")
    terminal.see(r"\(interrupted\)\n> $")
    terminal.type(f"/approve {old} once")
    terminal.see(rf"No question {old} is open here\.\n> $")
    new = asked_again(terminal, "/do run touch stale")
    assert new != old
    terminal.type(f"/approve {old} once")
    terminal.see(rf"No question {old} is open here\.\n> $")
    assert list(place.iterdir()) == []
    terminal.type(f"/approve {new} once")
    terminal.see(r"\n> $")
    assert [each.name for each in place.iterdir()] == ["stale"]


def test_an_answer_of_another_viewer_closes_the_question_here(chat: Open, place: Path) -> None:
    first = chat()
    session = first.session()
    id = asked(first, "/do run touch once-only")
    second = chat("--resume", session)
    second.see(rf"/approve {id} deny\n> $")
    second.type(f"/approve {id} deny")
    second.ready()
    first.see(rf"{id} was settled: deny\.\n")
    first.see(r"\n> $")
    first.type(f"/approve {id} once")
    first.see(rf"No question {id} is open here\.\n> $")
    assert list(place.iterdir()) == []


def test_a_question_is_answered_in_words(chat: Open) -> None:
    terminal = chat()
    terminal.ready()
    terminal.type("/do ask Which colour shall it be?")
    id = terminal.see(r"The agent asks:\n  Which colour shall it be\?\n/answer (\S+) TEXT\n> $").group(1)
    terminal.type(f"/answer {id}")
    terminal.see(r"Type /answer ID TEXT\.\n> $")
    terminal.type(f"/answer {id} sea green, or 海の緑")
    terminal.see(r"sea green, or 海の緑(.|\n)*sea green, or 海の緑(.|\n)*\n> $")


def test_one_prompt_that_needs_a_person_says_how_to_answer(
    environment: dict[str, str], chat: Open, place: Path
) -> None:
    """One-shot: nothing is answered, nothing is cancelled, exit 3; the printed line leads to where it is granted."""
    done = command(environment, "chat", "-q", "/do run touch later", "--in", str(place))
    assert (done.stdout, done.returncode) == ("", 3), done.stderr
    session = session_of(done.stderr)
    assert f"\nhermes-ws chat --resume {session}\n" in done.stderr
    quiet = command(environment, "chat", "-Q", "-q", "/do ask Why?", "--in", str(place))
    assert (quiet.stdout, quiet.returncode) == ("", 3)
    assert "Why?" in quiet.stderr
    terminal = chat("--resume", session)
    id = str(terminal.see(r"/approve (\S+) once\n").group(1))
    terminal.ready()
    terminal.type(f"/approve {id} once")
    terminal.see(r"later(.|\n)*\n> $")
    assert [each.name for each in place.iterdir()] == ["later"]
