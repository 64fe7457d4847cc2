"""Harmless text, questions as text, answers from text, the screen."""

from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.cli.environment import Surroundings, read_environment
from hermes_ws.cli.question_text import Unanswerable, approval, clarification, describe
from hermes_ws.cli.reporting import profile_line, uptime
from hermes_ws.cli.sanitise import harmless, one_line, readable, width
from hermes_ws.cli.screen import Screen, Style
from hermes_ws.contract.methods.profiles import ProfileRow
from hermes_ws.contract.model import Result
from hermes_ws.contract.questions import ApprovalParams, Choice, ClarifyItem, ClarifyParams, OpenQuestion


def question(kind: str, params: Result | dict[str, object]) -> OpenQuestion:
    given = params.model_dump(mode="json") if isinstance(params, Result) else params
    return OpenQuestion(
        id="srq-1", kind=kind, session_id="s", thread_id="main", execution_generation=1, params=given, asked_at=1.0
    )


def asked(command: str | None = "ls", choices: tuple[Choice, ...] = ("once", "deny")) -> OpenQuestion:
    params = ApprovalParams(
        session_id="s",
        thread_id="main",
        tool="terminal",
        command=command,
        description="Run it",
        rule="ask",
        choices=list(choices),
    )
    return question("approval", params)


def clarify(*items: ClarifyItem) -> OpenQuestion:
    return question("clarify", ClarifyParams(session_id="s", thread_id="main", questions=list(items)))


@given(st.text())
def test_no_control_character_survives(text: str) -> None:
    shown = harmless(text)
    assert all(character in "\n\t" or unicodedata.category(character) != "Cc" for character in shown)
    assert not set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069") & set(shown)


@given(st.text(), st.integers(0, 50))
def test_a_text_may_be_made_harmless_piece_by_piece(text: str, at: int) -> None:
    assert harmless(text[:at]) + harmless(text[at:]) == harmless(text)


@given(st.text(), st.integers(3, 100))
def test_one_line_is_one_line_and_fits(text: str, columns: int) -> None:
    shown = one_line(text, columns)
    assert "\n" not in shown
    assert sum(map(width, shown)) <= columns


def test_ordinary_text_is_left_as_it_is() -> None:
    text = "Grüße, 世界 🎉\n\tindented\n"
    assert harmless(text) == text
    assert harmless("one\r\ntwo\r\n") == "one\ntwo\n"


def test_a_command_to_approve_is_shown_whole_and_harmless() -> None:
    command = "echo " + "x" * 500 + "; rm -rf \x1b[2K/"
    lines = describe(asked(command))
    assert any("x" * 500 + "; rm -rf \u241b[2K/" in line for line in lines)
    assert lines[-2:] == ["/approve srq-1 once", "/approve srq-1 deny"]


def test_only_an_offered_choice_approves() -> None:
    assert approval(asked(), "once", None) == {"choice": "once"}
    assert approval(asked(), "deny", "no") == {"choice": "deny", "reason": "no"}
    for choice in ("always", "yes", "ONCE", ""):
        with pytest.raises(Unanswerable, match="once, deny"):
            approval(asked(), choice, None)


def test_an_answer_of_the_wrong_kind_names_the_right_command() -> None:
    with pytest.raises(Unanswerable, match="/answer srq-1"):
        approval(clarify(ClarifyItem(qid="a", question="?")), "once", None)
    with pytest.raises(Unanswerable, match="/approve srq-1"):
        clarification(asked(), "yes")


def test_answers_may_be_text_a_number_several_or_none() -> None:
    one = ClarifyItem(qid="a", question="Which?", choices=["red", "blue"])
    many = ClarifyItem(qid="b", question="Which ones?", choices=["x", "y", "z"], multi_select=True)
    free = ClarifyItem(qid="c", question="Why?")
    assert clarification(clarify(one), "2") == {"answers": {"a": "blue"}}
    assert clarification(clarify(one), "green | grey") == {"answers": {"a": "green | grey"}}
    assert clarification(clarify(one, many, free), "1 | 3, x | -") == {
        "answers": {"a": "red", "b": ["z", "x"], "c": None}
    }
    with pytest.raises(Unanswerable, match="There are 2 questions"):
        clarification(clarify(one, free), "only one")


def test_a_question_that_this_version_cannot_read_is_said_to_be_there() -> None:
    for unknown in (question("hologram", {}), question("approval", {"tool": "x"})):
        assert any("srq-1" in line for line in describe(unknown))


def test_a_stream_that_is_no_terminal_gets_no_colours() -> None:
    stream = io.StringIO()
    screen = Screen(stream, Surroundings(home=read_environment({}).home))
    screen.write("half", Style.ERROR)
    screen.line("whole", Style.DIM)
    assert stream.getvalue() == "half\nwhole\n"
    assert screen.columns == 80


def test_the_environment_tells_the_home_and_nothing_secret_is_printed() -> None:
    told = read_environment(
        {"HERMES_HOME": "/h", "HERMES_TUI_GATEWAY_TOKEN": "secret", "NO_COLOR": "1", "COLUMNS": "40"}
    )
    assert (str(told.home), told.plain, told.columns, told.url) == ("/h", True, 40, None)
    assert "secret" not in repr(told)
    assert str(read_environment({"HOME": "/users/me"}).home) == "/users/me/.hermes"
    assert read_environment({"COLUMNS": "wide"}).columns is None


@pytest.mark.parametrize(
    ("seconds", "told"), [(0, "0 s"), (59.9, "59 s"), (3700, "1 h 1 min"), (90061, "1 d 1 h"), (-5, "0 s")]
)
def test_a_time_is_told_in_its_two_largest_units(seconds: float, told: str) -> None:
    assert uptime(seconds) == told


def test_a_closed_profile_tells_only_what_is_known() -> None:
    row = ProfileRow(id=None, name="work", state="closed", confinement=None, sessions=None)
    assert profile_line(row, "default") == "work: closed"


@given(text=st.text(st.sampled_from("ab \n海🙂é́"), max_size=40), columns=st.integers(3, 20))
def test_one_line_fits_whatever_its_letters_take(text: str, columns: int) -> None:
    shown = one_line(text, columns)
    assert sum(map(width, shown)) <= columns
    flat = " ".join(text.split())
    assert shown == flat or (shown.endswith("...") and flat.startswith(shown[:-3]))


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    """Case FRAME-09: what is half a letter is printed as a replacement."""
    assert readable("caf\udce9") == "caf�"
    assert readable("caf\udcc3\udca9") == "café"
    assert readable("海") == "海"
