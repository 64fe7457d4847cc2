"""A conversation on a real terminal with a real server: begun, left in every way, and come back to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.process import Server
from tests.e2e.terminal import CONTROL_C, CONTROL_D, CONTROL_U, ESCAPE, Terminal
from tests.e2e.test_command_line import command

Open = Callable[..., Terminal]

LONG = "/do stream 60 50"
"""Three seconds of text: long enough to leave in the middle of it, whatever the machine."""


@pytest.fixture
def environment(shared_server: Server, base_environment: dict[str, str]) -> dict[str, str]:
    return {**base_environment, "HERMES_HOME": str(shared_server.homes / "default"), "NO_COLOR": "1"}


@pytest.fixture
def chat(environment: dict[str, str]) -> Iterator[Open]:
    """Open conversations; whatever is still on a terminal at the end is closed."""
    opened: list[Terminal] = []

    def open_one(*arguments: str, columns: int = 80, **more: str) -> Terminal:
        opened.append(Terminal({**environment, **more}, "chat", *arguments, columns=columns))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


def test_fresh_input_is_answered_below_it(chat: Open) -> None:
    terminal = chat()
    session = terminal.session()
    terminal.ready()
    terminal.type("/do say good morning")
    terminal.see(r"/do say good morning\ngood morning\n> $")
    terminal.type("")
    terminal.type("  /do say twice  ")
    terminal.see(r"\ntwice\n> $")
    terminal.type("/quit")
    assert terminal.end() == 0
    assert f"Detached. To come back: hermes-ws chat --resume {session}\n" in terminal.text
    assert ESCAPE not in terminal.text


LEAVING: list[tuple[str, Callable[[Terminal], None], int]] = [
    ("quit", lambda terminal: terminal.type("/quit"), 0),
    ("exit", lambda terminal: terminal.type("/exit"), 0),
    ("detach", lambda terminal: terminal.type("/detach"), 0),
    ("the end of the input", lambda terminal: terminal.press(CONTROL_D), 0),
]


@pytest.mark.parametrize(("leave", "status"), [each[1:] for each in LEAVING], ids=[each[0] for each in LEAVING])
def test_leaving_detaches_and_what_runs_goes_on(
    chat: Open, shared_server: Server, leave: Callable[[Terminal], None], status: int
) -> None:
    terminal = chat()
    session = terminal.session()
    terminal.ready()
    terminal.type(LONG)
    terminal.see(r"\.3 ")
    leave(terminal)
    assert terminal.end() == status
    assert "Detached." in terminal.text
    assert whole_answer_of(shared_server, session)


def test_two_interrupts_of_the_keyboard_detach_and_one_does_not(chat: Open, shared_server: Server) -> None:
    terminal = chat()
    session = terminal.session()
    terminal.ready()
    terminal.type(LONG)
    terminal.see(r"\.3 ")
    terminal.press(CONTROL_C)
    terminal.see(r"Ctrl-C again leaves; /stop ends what runs\.\n")
    terminal.press(CONTROL_C)
    assert terminal.end() == 130
    assert whole_answer_of(shared_server, session)


def test_a_window_that_is_closed_detaches(chat: Open, shared_server: Server) -> None:
    terminal = chat()
    session = terminal.session()
    terminal.ready()
    terminal.type(LONG)
    terminal.see(r"\.3 ")
    terminal.hang_up()
    assert whole_answer_of(shared_server, session)


def whole_answer_of(server: Server, session: str) -> bool:
    """Whether the execution came to its end after its viewer had left, with all of its text."""
    client = server.connect()
    try:
        client.call("session.resume", session_id=session, after="1:0")
        end = client.until(lambda event: event["type"] == "execution.finished")
        told = client.call("session.resume", session_id=session, messages=True)["messages"]
        return end["payload"]["outcome"] == "completed" and told[-1]["text"].endswith("60 ")
    finally:
        client.close()


def test_it_is_come_back_to_by_id_title_latest_and_terminal(chat: Open, environment: dict[str, str]) -> None:
    """The persisted id, the title, the newest of this directory; bare `-c` on the same terminal is told elsewhere."""
    terminal = chat("--profile", "second")
    session = terminal.session()
    terminal.ready()
    terminal.type("/do say remember the milk")
    terminal.see(r"\nremember the milk\n> $")
    terminal.type("/title The shopping list")
    terminal.see(r"The session is called The shopping list\.\n> $")
    terminal.type("/quit")
    terminal.end()
    for named in (["--resume", session], ["--resume", "The shopping list"], ["--resume", "latest"], ["-c"]):
        again = chat("--profile", "second", *named)
        assert again.session() == session, named
        again.see(r"user: /do say remember the milk\nassistant: remember the milk\n")
        again.ready()
        again.type("/quit")
        assert again.end() == 0
    titled = command(environment, "chat", "--profile", "second", "-c", "The shopping list", "-Q", "-q", "/do say eggs")
    assert (titled.stdout, titled.returncode) == ("eggs\n", 0), titled.stderr
    unknown = chat("--profile", "second", "--resume", "No such list")
    unknown.see(r"Error: There is no session called 'No such list'\.\n")
    assert unknown.end() == 1


def test_one_prompt_on_a_terminal_is_answered_as_it_comes(chat: Open, shared_server: Server) -> None:
    """The first words are on the screen while the rest is still to come."""
    terminal = chat("-q", LONG)
    session = terminal.session()
    terminal.see(r"\.1 \.+2 ")
    client = shared_server.connect()
    assert client.call("session.resume", session_id=session)["execution"] is not None, "it still runs"
    client.close()
    terminal.see(r"60 \n\nResume this session with:\n  hermes-ws chat --resume \S+\n")
    assert terminal.end() == 0
    assert len(re.findall(r"\.1 ", terminal.text)) == 1, "it is printed once"


def test_one_prompt_is_left_with_one_interrupt(chat: Open, shared_server: Server) -> None:
    terminal = chat("-q", LONG)
    session = terminal.session()
    terminal.see(r"\.3 ")
    terminal.press(CONTROL_C)
    assert terminal.end() == 130
    assert "Detached; what the server accepted goes on." in terminal.text
    assert whole_answer_of(shared_server, session)


def test_stop_ends_the_execution_and_leaves_the_view(chat: Open) -> None:
    terminal = chat()
    terminal.ready()
    terminal.type("/stop")
    terminal.see(r"Nothing runs\.\n> $")
    terminal.type("/do wait 600")
    terminal.type("/stop")
    while terminal.see(r"Nothing runs\.|\(interrupted\)").group() == "Nothing runs.":
        terminal.type("/stop")
    terminal.ready()
    terminal.type("/do say and on")
    terminal.see(r"\nand on\n> $")


def test_what_was_taken_back_is_in_the_next_line_to_be_said_otherwise(chat: Open) -> None:
    """Edited as any line; given up by Ctrl-C; without the end of the input being lost."""

    def take_back() -> None:
        terminal.type("/undo")
        terminal.see(r"Type the same once more to agree\.\n> $")
        terminal.type("/undo")

    terminal = chat(columns=40)
    terminal.ready()
    terminal.type("/do say a red house")
    terminal.see(r"\na red house\n> $")
    take_back()
    terminal.see(r"Taken back\. It was:\n> /do say a red house$")
    terminal.press("\x7f" * 5)
    terminal.type("家")
    terminal.see(r"\na red 家\n> $")
    take_back()
    terminal.see(r"Taken back\. It was:\n> /do say a red 家$")
    terminal.press(CONTROL_C)
    terminal.ready()
    terminal.type("/do say another")
    terminal.see(r"\nanother\n> $")
    take_back()
    terminal.see(r"> /do say another$")
    terminal.press(CONTROL_U)
    terminal.press(CONTROL_D)
    assert terminal.end() == 0
    assert "Detached. To come back: " in terminal.text
