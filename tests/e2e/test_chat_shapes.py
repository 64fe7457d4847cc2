"""What a conversation looks like where it is looked at: narrow, without colour, in a pipe, in tmux, in wide letters."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.gateway_client import PATIENCE
from tests.e2e.process import Server
from tests.e2e.terminal import COMMAND, ESCAPE, Terminal
from tests.e2e.test_command_line import command

COLUMNS = 40

WIDE = "海の色は青か緑か"


@pytest.fixture
def environment(shared_server: Server, base_environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    own = {"HERMES_HOME": str(shared_server.homes / "default"), "XDG_STATE_HOME": str(tmp_path / "state")}
    return {**base_environment, **own, "LANG": "C.UTF-8"}


def columns_of(text: str) -> int:
    """How many columns of a terminal a line takes."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def test_lines_of_ours_fit_a_narrow_terminal(environment: dict[str, str]) -> None:
    """40 columns: what is cut is cut to the width; only words of others, ids and commands to copy may be longer."""
    terminal = Terminal({**environment, "NO_COLOR": "1"}, "chat", "--yolo", columns=COLUMNS)
    try:
        terminal.ready()
        terminal.type("/do run echo a rather long command line with many words in it")
        terminal.see(r"\* terminal: [^\n]*\n(.|\n)*\n> $")
        terminal.type(f"/do run echo {WIDE}{WIDE}{WIDE}")
        terminal.see(r"\* terminal: echo 海[^\n]*\n(.|\n)*\n> $")
        terminal.type("/help")
        terminal.see(r"Anything else is said to the agent\.\n> $")
    finally:
        terminal.close()
    ours = [line for line in terminal.text.splitlines() if line.startswith(("* ", "  done", "  failed", "/", "    "))]
    assert len(ours) > 20
    for line in ours:
        assert columns_of(line) <= COLUMNS, line


def test_wide_letters_go_through_whole(environment: dict[str, str]) -> None:
    terminal = Terminal({**environment, "NO_COLOR": "1"}, "chat", columns=COLUMNS)
    try:
        terminal.ready()
        terminal.type(f"/do say {WIDE} é 🙂")
        terminal.see(rf"\n{WIDE} é 🙂\n> $")
        terminal.type(f"/title {WIDE}")
        terminal.see(rf"The session is called {WIDE}\.\n> $")
    finally:
        terminal.close()
    listed = command(environment, "session", "list")
    assert WIDE in listed.stdout


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_colour_there_is_not_one_escape(environment: dict[str, str], setting: dict[str, str]) -> None:
    terminal = Terminal({**environment, **setting}, "chat")
    try:
        terminal.ready()
        terminal.type("/do run touch x")
        terminal.see(r"/approve \S+ deny\n> $")
        terminal.type("/nonsense")
        terminal.see(r"There is no command /nonsense(.|\n)*\n> $")
        terminal.type("/quit")
        assert terminal.end() == 0
    finally:
        terminal.close()
    assert ESCAPE not in terminal.text


def test_with_colour_every_one_is_ended_and_nothing_moves_the_cursor(environment: dict[str, str]) -> None:
    """Append-only: colours are the only escapes, so scroll-back and screen readers have it as it was printed."""
    terminal = Terminal(environment, "chat")
    try:
        terminal.see(r"> $")
        terminal.type("/do run printf 'a\\033[2Jb\\rc'")
        terminal.see(r"done \((.|\n)*> $")
        terminal.type("/nonsense")
        terminal.see(r"There is no command /nonsense(.|\n)*> $")
    finally:
        terminal.close()
    escapes = re.findall(r"\x1b[^a-zA-Z]*[a-zA-Z]", terminal.text)
    assert escapes
    assert {each for each in escapes if not re.fullmatch(r"\x1b\[[0-9;]*m", each)} == set()
    assert escapes[1::2] == ["\x1b[0m"] * (len(escapes) // 2)
    assert "\r" not in terminal.text


def test_in_a_pipe_output_is_the_words_and_nothing_else(environment: dict[str, str]) -> None:
    done = command(environment, "chat", typed=f"/do say {WIDE}\n/do say second\n")
    assert (done.stdout, done.returncode) == (f"{WIDE}\nsecond\n", 0), done.stderr
    closed = subprocess.run(
        ["/bin/sh", "-c", f"{' '.join(COMMAND)} chat -q '/do stream 40 10' | head -c 1"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (closed.stdout, closed.returncode) == (".", 0)
    assert "Traceback" not in closed.stderr


def test_letters_that_the_terminal_cannot_show_are_no_failure(environment: dict[str, str]) -> None:
    own = {**environment, "LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [*COMMAND, "chat", "-Q", "-q", "/do say caf\u00e9"],
        env=own,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"caf")


# --- in tmux ---------------------------------------------------------------------------------------------------------


class Tmux:
    """A tmux server of the test's own, with one window of 60 by 20."""

    def __init__(self, place: Path, environment: dict[str, str], *arguments: str) -> None:
        self._socket = place / "tmux"
        self._environment = environment
        settings = [part for name, value in environment.items() for part in ("-e", f"{name}={value}")]
        self("new-session", "-d", "-x", "60", "-y", "20", *settings, *COMMAND, "chat", *arguments)

    def __call__(self, *words: str) -> str:
        return subprocess.run(
            ["tmux", "-S", str(self._socket), "-f", "/dev/null", *words],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        ).stdout

    def type(self, line: str) -> None:
        """Type it as a person does, and press Enter."""
        self("send-keys", "-l", line)
        self("send-keys", "Enter")

    def see(self, pattern: str) -> str:
        """Wait for the pattern in what is on the screen and above it."""
        until = time.monotonic() + PATIENCE
        while re.search(pattern, shown := self("capture-pane", "-p", "-J", "-S", "-")) is None:
            assert time.monotonic() < until, shown
            time.sleep(0.05)
        return shown

    def over(self) -> bool:
        """Whether the window went with what ran in it."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                self("list-sessions")
            except subprocess.CalledProcessError:
                return True
            time.sleep(0.05)
        return False


@pytest.fixture
def tmux(environment: dict[str, str], tmp_path: Path) -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("the package tmux is missing")
    window = Tmux(tmp_path, {**environment, "TERM": "xterm-256color"})
    yield window
    with suppress(subprocess.CalledProcessError):  # its only window may be gone, and it with that
        window("kill-server")


def test_a_conversation_in_tmux_scrolls_detaches_and_survives_its_window(
    tmux: Tmux, environment: dict[str, str], tmp_path: Path
) -> None:
    """As a person has it who leaves tmux running: wide letters, scroll-back, another size, the window killed."""
    shown = tmux.see(r"> ")
    found = re.search(r"Session: (\S+)", shown)
    assert found is not None
    tmux.type(f"/do say {WIDE}")
    tmux.see(rf"\n{WIDE}\n>")
    for number in range(12):
        tmux.type(f"/do say line {number}")
        tmux.see(rf"\nline {number}\n>")
    tmux("resize-window", "-x", str(COLUMNS), "-y", "10")
    tmux.type("/do say after the resize")
    shown = tmux.see(r"\nafter the resize\n>")
    assert [line for line in shown.splitlines() if re.fullmatch(r"line \d+", line)] == [
        f"line {number}" for number in range(12)
    ], "all of it is in the scroll-back, once"
    tmux.type("/do stream 60 50")
    tmux.see(r"\.3 ")
    tmux("kill-server")
    again = Terminal({**environment, "NO_COLOR": "1"}, "chat", "--resume", found[1])
    try:
        again.see(r"assistant: after the resize\n")
        again.see(r"60 \n")
        again.ready()
    finally:
        again.close()


def test_leaving_in_tmux_ends_the_window(tmux: Tmux) -> None:
    tmux.see(r"> ")
    tmux.type("/detach")
    assert tmux.over()
