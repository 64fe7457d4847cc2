"""One prompt, one reply, as a process: what stands on which stream, and how it ends."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from hermes_ws.contract.errors import DirectoryRefused
from hermes_ws.contract.methods.threads import PendingRow
from hermes_ws.contract.questions import QUESTIONS
from tests.cli.conftest import COMMAND, PATIENCE, Run, environment
from tests.client.peer import Peer


def test_the_reply_stands_alone_on_standard_output(peer: Peer, run: Run) -> None:
    done = run("chat", "-Q", "-q", "say forty-two")
    assert (done.stdout, done.returncode) == ("forty-two\n", 0)
    assert "Session: s-1" in done.stderr


def test_without_quiet_it_says_how_to_come_back(peer: Peer, run: Run) -> None:
    done = run("chat", "-q", "say hello")
    assert done.stdout == "hello\n\nResume this session with:\n  hermes-ws chat --resume s-1\n"


def test_the_profile_is_asked_for_and_named_in_the_way_back(peer: Peer, run: Run) -> None:
    done = run("chat", "-q", "say hello", "--profile", "research")
    assert "hermes-ws chat --resume s-1 --profile research" in done.stdout
    assert peer.asked("session.create")[0]["profile"] == "research"


def test_an_unknown_profile_is_a_failure_and_not_another_profile(peer: Peer, run: Run) -> None:
    done = run("chat", "-q", "hello", "--profile", "nobody")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "There is no profile nobody." in done.stderr
    assert peer.asked("prompt.submit") == []


def test_a_resumed_session_shows_its_history_first(peer: Peer, run: Run) -> None:
    run("chat", "-q", "say one")
    done = run("chat", "-q", "say two", "--resume", "latest")
    assert done.stdout.startswith("user: say one\nassistant: one\ntwo\n")
    assert run("chat", "-Q", "-q", "say three", "--resume", "s-1").stdout == "three\n"


def test_a_failed_execution_is_told_on_standard_error(peer: Peer, run: Run) -> None:
    done = run("chat", "-q", "fail")
    assert (done.stdout, done.returncode) == ("", 1)
    assert "Error: The model broke off." in done.stderr
    assert "Try again." in done.stderr


def test_a_question_is_printed_and_left_open(peer: Peer, run: Run) -> None:
    done = run("chat", "-q", "ask rm -r build")
    assert (done.stdout, done.returncode) == ("", 3)
    (question,) = peer.conversations["s-1"].questions
    assert "    rm -r build\n" in done.stderr
    assert f"/approve {question} once" in done.stderr
    assert "hermes-ws chat --resume s-1" in done.stderr
    assert peer.replies == []


def test_it_declares_all_kinds_of_questions(peer: Peer, run: Run) -> None:
    run("chat", "-q", "say hi")
    assert peer.declared[-1]["server_requests"] == sorted(QUESTIONS)


def test_a_question_that_is_open_already_is_printed_on_resume(peer: Peer, run: Run) -> None:
    run("chat", "-q", "ask ls")
    done = run("chat", "-q", "say hi", "--resume", "s-1")
    assert done.returncode == 3
    assert "/approve srq-peer-" in done.stderr


def test_a_lost_execution_needs_a_person(peer: Peer, run: Run) -> None:
    done = run("chat", "-q", "lose")
    assert (done.stdout, done.returncode) == ("", 3)
    assert "was lost" in done.stderr


def test_nothing_is_submitted_behind_a_lost_execution(peer: Peer, run: Run) -> None:
    run("chat", "-q", "say one")
    row = PendingRow(admission_id="a-0", input_id="i-0", status="unknown", execution_generation=1, text="x")
    peer.conversations["s-1"].pending.append(row)
    done = run("chat", "-q", "say two", "--resume", "s-1")
    assert done.returncode == 3
    assert "Nothing was submitted." in done.stderr
    assert len(peer.asked("prompt.submit")) == 1


def test_a_lost_receipt_is_asked_for_again_and_the_prompt_runs_once(peer: Peer, run: Run) -> None:
    """Case TURN-07."""
    peer.lose_reply_of.add("prompt.submit")
    done = run("chat", "-Q", "-q", "say once")
    assert (done.stdout, done.returncode) == ("once\n", 0)
    first, second = peer.asked("prompt.submit")
    assert first == second
    assert len(peer.admitted) == 1


def test_a_connection_that_breaks_in_the_middle_loses_nothing(peer: Peer, run: Run) -> None:
    """Cases REPLAY-01, REPLAY-03."""
    peer.events_before_cut = 5
    done = run("chat", "-Q", "-q", "say all of it, whatever happens")
    assert (done.stdout, done.returncode) == ("all of it, whatever happens\n", 0)
    assert "Connecting again" in done.stderr


def test_control_characters_of_the_server_do_not_reach_the_terminal(peer: Peer, run: Run) -> None:
    done = run("chat", "-Q", "-q", "say \x1b]0;owned\x07 \x9b31m \u202eevil")
    assert "\x1b" not in done.stdout + done.stderr
    assert not set("\x07\x9b\u202e") & set(done.stdout)
    assert "\u241b]0;owned\u2407" in done.stdout


def test_the_directory_is_told_to_a_server_of_the_same_machine_only(peer: Peer, run: Run) -> None:
    run("chat", "-q", "say hi")
    assert "cwd" not in peer.asked("session.create")[0]
    peer.boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    run("chat", "-q", "say hi")
    assert peer.asked("session.create")[1]["cwd"] == str(Path.cwd())
    peer.parameters = []
    run("chat", "-q", "say hi")
    assert "cwd" not in peer.asked("session.create")[2]


def test_a_refused_directory_is_said_and_the_session_made_without_it(peer: Peer, run: Run) -> None:
    peer.boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    refusal = DirectoryRefused("It would open a home.")
    answers = iter([refusal, None])

    class Once(dict[str, object]):
        def __contains__(self, method: object) -> bool:
            return method == "session.create" and next(answers) is not None

        def __getitem__(self, method: str) -> object:
            return refusal

    peer.refuse = Once()  # type: ignore[assignment]
    done = run("chat", "-Q", "-q", "say hi")
    assert done.stdout == "hi\n"
    assert "It would open a home." in done.stderr
    assert "cwd" not in peer.asked("session.create")[1]


def test_the_interrupt_of_the_keyboard_detaches(peer: Peer, home: Path) -> None:
    started = subprocess.Popen(
        [*COMMAND, "chat", "-q", "hang"],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    peer.wait_for(lambda: any(at.active for at in peer.conversations.values()), PATIENCE)
    peer.wait_for(lambda: bool(peer.asked("thread.subscribe")), PATIENCE)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=PATIENCE)
    assert (out, started.returncode) == ("", 130)
    assert "Detached; what the server accepted goes on." in err
    assert peer.asked("session.interrupt") == []
    assert peer.conversations["s-1"].active is not None


def test_a_reader_that_went_away_is_no_failure_of_the_work(peer: Peer, home: Path) -> None:
    started = subprocess.Popen(
        [*COMMAND, "chat", "-q", "say hi"],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    started.stdout.close()
    started.stdout = None
    _, err = started.communicate(timeout=PATIENCE)
    assert started.returncode == 0
    assert "Traceback" not in err
    assert "Exception" not in err


@pytest.mark.parametrize("command", [["chat", "-q", "hi"], ["chat"], ["status"]])
def test_a_home_that_must_not_be_trusted_is_refused_with_the_reason(home: Path, run: Run, command: list[str]) -> None:
    home.chmod(0o777)
    done = run(*command)
    assert (done.stdout, done.returncode) == ("", 1)
    assert f"{home} can be written by others" in done.stderr
    assert not (home / "logs").exists(), "no server was started"


def test_a_server_that_is_named_is_that_one_or_an_error(peer: Peer, run: Run) -> None:
    done = run("chat", "-q", "say hi", HERMES_TUI_GATEWAY_URL="ws://127.0.0.1:1/ws", HERMES_TUI_GATEWAY_TOKEN="t")
    assert done.returncode == 1
    assert "Error: No server" in done.stderr
    assert "ws://127.0.0.1:1/ws" in done.stderr
    assert "Start one" not in done.stderr
    assert peer.requests == []
    done = run("chat", "-q", "say hi", HERMES_TUI_GATEWAY_URL="https://example.org")
    assert done.returncode == 1
    assert "HERMES_TUI_GATEWAY_URL cannot be used: it begins with ws:// or wss://." in done.stderr
