"""A conversation line by line, as a process: through pipes, and on a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.cli.conftest import COMMAND, PATIENCE, Run, environment
from tests.client.peer import Peer


class Conversation:
    """The command on a terminal of 40 columns, and all that it has shown."""

    def __init__(self, home: Path, *arguments: str, **more: str) -> None:
        master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, 40))
        self.process = subprocess.Popen(
            # Tests that run in the background ignore the keyboard's interrupt, and so would all that they start.
            ["env", "--default-signal=INT", *COMMAND, "chat", *arguments],
            env=environment(home, TERM="xterm", **more),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.master = master
        self.shown = ""
        self.all = ""

    def type(self, text: str) -> None:
        os.write(self.master, text.encode() + b"\n")

    def see(self, pattern: str) -> re.Match[str]:
        """Wait until the pattern is on the screen; what comes before it is seen as well."""
        until = time.monotonic() + PATIENCE
        while (found := re.search(pattern, self.shown)) is None:
            assert time.monotonic() < until, self.shown
            assert self._more(), f"it ended: {self.shown!r}"
        self.shown = self.shown[found.end() :]
        return found

    def end(self) -> int:
        while self._more():
            pass
        return self.process.wait(PATIENCE)

    def _more(self) -> bool:
        ready, _, _ = select.select([self.master], [], [], PATIENCE)
        try:
            piece = os.read(self.master, 65536) if ready else b""
        except OSError:
            return False
        text = piece.decode("utf-8", "replace").replace("\r\n", "\n")
        self.shown += text
        self.all += text
        return bool(piece)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)


@pytest.fixture
def terminal(peer: Peer, home: Path) -> Iterator[Conversation]:
    conversation = Conversation(home, NO_COLOR="1")
    yield conversation
    conversation.close()


def test_lines_of_a_pipe_are_said_one_after_the_other(peer: Peer, run: Run) -> None:
    done = run("chat", text="say one\nsay two\n")
    assert (done.stdout, done.returncode) == ("one\ntwo\n", 0)
    assert done.stderr == "Session: s-1\n"


def test_the_end_of_a_pipe_waits_for_what_it_started_and_tells_of_failure(peer: Peer, run: Run) -> None:
    done = run("chat", text="fail\n")
    assert done.returncode == 1
    assert "Error: The model broke off." in done.stdout


def test_a_question_at_the_end_of_a_pipe_needs_a_person(peer: Peer, run: Run) -> None:
    done = run("chat", text="ask rm -r build\n")
    assert done.returncode == 3
    assert "/approve srq-peer-" in done.stdout
    assert "hermes-ws chat --resume s-1" in done.stderr


def test_no_input_at_all_is_the_end_of_it(peer: Peer, run: Run) -> None:
    done = run("chat")
    assert (done.stdout, done.returncode) == ("", 0)


def test_lines_may_come_from_a_file(peer: Peer, home: Path, tmp_path: Path) -> None:
    script = tmp_path / "lines"
    script.write_text("say from a file\n/quit\n")
    with script.open() as file:
        done = subprocess.run(
            [*COMMAND, "chat"], env=environment(home), stdin=file, capture_output=True, timeout=PATIENCE, check=False
        )
    assert done.returncode == 0


def test_an_approval_is_given_through_pipes(peer: Peer, home: Path) -> None:
    started = subprocess.Popen(
        [*COMMAND, "chat"],
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert started.stdin is not None
    assert started.stdout is not None
    _say(started.stdin, "ask ls -l")
    offer = next(line for line in started.stdout if line.startswith("/approve") and line.endswith(" once\n"))
    _say(started.stdin, offer.strip())
    started.stdin.close()
    rest = started.stdout.read()
    started.stdout.close()
    assert started.wait(PATIENCE) == 0
    assert "I ran it: once.\n" in rest
    assert "* terminal: ls -l\n" in rest


def test_a_conversation_on_a_terminal(terminal: Conversation, peer: Peer) -> None:
    terminal.see(r"Session: s-1\n")
    terminal.see(r"/help shows")
    terminal.see(r"> ")
    terminal.type("say good evening")
    terminal.see(r"good evening\n> ")
    terminal.type("/help")
    terminal.see(r"/stop\n")
    terminal.type("/quit")
    assert terminal.end() == 0
    assert "hermes-ws chat --resume s-1" in terminal.shown
    assert "\x1b" not in terminal.shown


def test_an_approval_on_a_terminal_takes_an_offered_choice_alone(terminal: Conversation, peer: Peer) -> None:
    """Cases ASK-01, ASK-07: an answer names its question, and counts only as one of its choices."""
    terminal.type("ask make clean")
    id = terminal.see(r"/approve (\S+) deny\n").group(1)
    terminal.type("/approve nobody once")
    terminal.see(r"No question nobody is open here\.")
    terminal.type(f"/approve {id} always")
    terminal.see(r"no choice; there are once, session, deny\.")
    terminal.type(f"/answer {id} yes")
    terminal.see(r"is an approval")
    assert peer.asked("question.answer") == []
    terminal.type(f"/approve {id} deny too much of it")
    terminal.see(r"I did not run it\.\n> ")
    (answer,) = peer.asked("question.answer")
    assert answer == {
        "id": id,
        "result": {"choice": "deny", "reason": "too much of it"},
        "execution_generation": 1,
    }


def test_a_question_is_answered_by_the_number_of_a_choice(terminal: Conversation) -> None:
    terminal.type("clarify")
    id = terminal.see(r"Which colour\?\n.*1\. red\n.*2\. blue\n/answer (\S+) TEXT").group(1)
    terminal.type(f"/answer {id} 2")
    terminal.see(r"You said \{'q1': 'blue'\}\.")


def test_an_answer_from_elsewhere_is_shown(terminal: Conversation, peer: Peer) -> None:
    terminal.type("ask ls")
    id = terminal.see(r"/approve (\S+) deny\n").group(1)
    peer.results[id] = {"choice": "once"}
    peer.settle(peer.conversations["s-1"], id, {"choice": "once"})
    terminal.see(rf"{id} was settled: once\.\n")
    terminal.see(r"I ran it: once\.")


def test_stop_ends_the_execution_that_was_seen(terminal: Conversation, peer: Peer) -> None:
    terminal.type("/stop")
    terminal.see(r"Nothing runs\.")
    terminal.type("hang")
    peer.wait_for(lambda: any(at.active for at in peer.conversations.values()), PATIENCE)
    while not peer.asked("session.interrupt"):
        terminal.type("/stop")
        terminal.see(r"Nothing runs\.|interrupted")
    assert peer.asked("session.interrupt")[0]["execution_generation"] == 1


def test_the_interrupt_of_the_keyboard_says_how_to_leave_and_a_second_one_leaves(terminal: Conversation) -> None:
    terminal.see(r"> ")
    for _ in range(2):
        terminal.process.send_signal(signal.SIGINT)
        terminal.see(r"Ctrl-C again leaves; /stop ends what runs\.\n> ")
        terminal.type("say still here")
        terminal.see(r"still here\n> ")
    terminal.process.send_signal(signal.SIGINT)
    terminal.see(r"Ctrl-C again leaves; /stop ends what runs\.\n> ")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert "hermes-ws chat --resume s-1" in terminal.shown


def test_a_cut_connection_is_told_and_the_conversation_goes_on(terminal: Conversation, peer: Peer) -> None:
    """Case ATTACH-01."""
    terminal.type("say before")
    terminal.see(r"before\n> ")
    peer.cut()
    terminal.see(r"Connecting again")
    terminal.type("say after")
    terminal.see(r"after\n> ")


def test_a_text_that_is_cut_in_the_middle_is_printed_once(peer: Peer, home: Path) -> None:
    """Cases REPLAY-05, REPLAY-17."""
    peer.events_before_cut = 8
    conversation = Conversation(home, NO_COLOR="1")
    conversation.see(r"> ")
    conversation.type("say the quick brown fox jumps over the lazy dog")
    conversation.see(r"dog\n> ")
    conversation.close()
    printed = re.sub(r"\n[^\n]*Connecting again[^\n]*\n", "", conversation.all)
    assert printed != conversation.all
    assert printed.partition("lazy dog\n")[2] == "the quick brown fox jumps over the lazy dog\n> "


def test_a_resumed_conversation_shows_history_and_open_questions(peer: Peer, home: Path, run: Run) -> None:
    """Cases ASK-03, ASK-10."""
    run("chat", "-q", "ask rm -r build")
    conversation = Conversation(home, "--resume", "s-1", NO_COLOR="1")
    conversation.see(r"user: ask rm -r build\n")
    id = conversation.see(r"    rm -r build\n(?:.*\n)+/approve (\S+) deny\n").group(1)
    conversation.type(f"/approve {id} session")
    conversation.see(r"I ran it: session\.")
    conversation.type("/quit")
    assert conversation.end() == 0
    conversation.close()


def test_colours_are_for_terminals_that_want_them(peer: Peer, home: Path) -> None:
    conversation = Conversation(home)
    conversation.see(r"\x1b\[2m")
    conversation.type("/quit")
    conversation.end()
    conversation.close()


def _say(stream: IO[str], text: str) -> None:
    stream.write(text + "\n")
    stream.flush()
