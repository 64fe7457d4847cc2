"""A thread as lines, without any process."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from hermes_ws.cli.environment import Surroundings
from hermes_ws.cli.screen import Screen
from hermes_ws.cli.view import LOST, View
from hermes_ws.client.failures import ConnectionLost
from hermes_ws.client.follow import Away, Resumed
from hermes_ws.contract.content import Usage
from hermes_ws.contract.events import (
    Envelope,
    ExecutionError,
    ExecutionFinished,
    ExecutionLost,
    ExecutionQueued,
    ExecutionStarted,
    MessageComplete,
    MessageStart,
    Notice,
    TextDelta,
    ToolComplete,
    ToolStart,
)
from hermes_ws.contract.methods.threads import InProgress, PendingRow, Position, Snapshot
from hermes_ws.contract.model import Result
from hermes_ws.contract.questions import OpenQuestion


class Shown:
    """A view of 40 columns and what it printed."""

    def __init__(self) -> None:
        self._out, self._err = io.StringIO(), io.StringIO()
        surroundings = Surroundings(home=Path("/h"), columns=40)
        self.view = View(Screen(self._out, surroundings), Screen(self._err, surroundings))

    def show(self, type: str, payload: Result | dict[str, object], admission: str | None = "a-1") -> None:
        given = payload.model_dump(mode="json") if isinstance(payload, Result) else payload
        self.view.show(Envelope(type=type, ts=1.0, admission_id=admission, payload=given))

    @property
    def out(self) -> str:
        return self._out.getvalue()

    @property
    def err(self) -> str:
        return self._err.getvalue()


@pytest.fixture
def shown() -> Shown:
    return Shown()


def snapshot(
    position: Position = "ok",
    *,
    text: str | None = None,
    pending: tuple[PendingRow, ...] = (),
    questions: tuple[OpenQuestion, ...] = (),
) -> Resumed:
    return Resumed(
        Snapshot(
            session_id="s",
            thread_id="main",
            profile="default",
            position=position,
            generation=1,
            cursor="1:5",
            execution=None,
            questions=list(questions),
            pending=list(pending),
            in_progress=None if text is None else InProgress(message_id="m", text=text),
            revision=1,
            info={},
        )
    )


def start(shown: Shown) -> None:
    shown.show("message.start", MessageStart(message_id="m", role="assistant"))


def delta(shown: Shown, offset: int, text: str) -> None:
    shown.show("message.delta", TextDelta(message_id="m", offset=offset, text=text))


def complete(shown: Shown, text: str, *, partial: bool = False) -> None:
    whole = MessageComplete(message_id="m", role="assistant", text=text, partial=partial)
    shown.show("message.complete", whole)


async def test_text_is_printed_as_it_comes_and_once(shown: Shown) -> None:
    start(shown)
    delta(shown, 0, "One, ")
    delta(shown, 5, "two")
    assert shown.out == "One, two"
    complete(shown, "One, two, three")
    assert shown.out == "One, two, three\n"


async def test_after_a_cut_only_what_is_new_is_printed(shown: Shown) -> None:
    """Case REPLAY-17."""
    start(shown)
    delta(shown, 0, "one two ")
    shown.view.show(Away(ConnectionLost(None, "")))
    shown.view.show(snapshot(text="one two three "))
    delta(shown, 14, "four")
    complete(shown, "one two three four")
    assert shown.out == "one two three four\n"
    assert "Connecting again" in shown.err


async def test_a_text_that_turned_out_otherwise_is_printed_whole(shown: Shown) -> None:
    start(shown)
    delta(shown, 0, "My key is 12345")
    complete(shown, "My key is hidden", partial=True)
    assert shown.out.endswith("(the message, whole:)\nMy key is hidden\n(cut off here)\n")


async def test_a_replaced_history_is_said_to_be(shown: Shown) -> None:
    start(shown)
    delta(shown, 0, "old")
    shown.view.show(snapshot("rebased"))
    complete(shown, "new")
    assert "The history was replaced" in shown.err
    assert shown.out == "old\nnew\n"


async def test_tools_take_a_line_each_that_fits(shown: Shown) -> None:
    shown.show("tool.start", ToolStart(call_id="c", name="terminal", arguments={"command": "ls " + "x" * 90}))
    output = "first\nsecond " + "y" * 90
    done = ToolComplete(call_id="c", name="terminal", output=output, is_error=False, duration_ms=7)
    shown.show("tool.complete", done)
    first, second = shown.out.splitlines()
    assert first.startswith("* terminal: ls xxx")
    assert second.startswith("  done (7 ms): first second yyy")
    assert max(len(first), len(second)) <= 40


async def test_own_words_are_not_repeated_and_those_of_others_are_shown(shown: Shown) -> None:
    shown.view.submitting("i-1")
    shown.show("execution.queued", ExecutionQueued(admission_id="a-1", input_id="i-1", text="mine"))
    shown.show("message.complete", MessageComplete(message_id="u1", role="user", text="mine"))
    shown.show("message.complete", MessageComplete(message_id="u2", role="user", text="theirs"), admission="a-2")
    assert shown.out == "user: theirs\n"


async def test_it_is_busy_from_the_submission_to_the_end(shown: Shown) -> None:
    view = shown.view
    assert not view.busy
    view.submitting("i-1")
    assert view.busy
    view.submitted("i-1", "a-1")
    shown.show("execution.started", ExecutionStarted(admission_id="a-1", execution_generation=4))
    assert (view.busy, view.execution) == (True, 4)
    error = ExecutionError(type="model_failed", message="It broke.", hint="Mend it.")
    shown.show("execution.finished", ExecutionFinished(outcome="failed", error=error, usage=Usage()))
    assert (view.busy, view.failed, view.execution) == (False, True, None)
    assert shown.out == "Error: It broke.\nMend it.\n"
    view.submitting("i-2")
    view.submitted("i-2", None)
    assert not view.busy


async def test_a_loss_is_told_once_and_ends_the_waiting(shown: Shown) -> None:
    """Case REPLAY-18."""
    shown.view.submitted("i-1", "a-1")
    row = PendingRow(admission_id="a-1", input_id="i-1", status="unknown", execution_generation=1, text="x")
    shown.view.show(snapshot(pending=(row,)))
    shown.show("execution.lost", ExecutionLost(admission_id="a-1", execution_generation=1))
    assert shown.out == f"{LOST}\n/discard a-1\n"
    await shown.view.settled()
    assert not shown.view.busy


async def test_a_question_that_is_gone_after_a_resume_is_no_longer_open(shown: Shown) -> None:
    question = OpenQuestion(
        id="q-1", kind="clarify", session_id="s", thread_id="main", execution_generation=1, asked_at=1.0, params={}
    )
    shown.view.show(snapshot(questions=(question,)))
    assert "q-1" in shown.view.questions
    printed = shown.out
    shown.view.show(snapshot(questions=(question,)))
    assert shown.out == printed
    shown.view.show(snapshot())
    assert shown.view.questions == {}


async def test_events_of_a_later_version_are_passed_over(shown: Shown) -> None:
    shown.show("hologram.shown", {"anything": 1})
    shown.show("tool.start", {"call": "of another shape"})
    assert shown.out == ""
    assert "could not be read" in shown.err


async def test_a_notice_is_harmless_text(shown: Shown) -> None:
    shown.show("notice", Notice(level="warning", type="x", message="\x1b[2Jcareful", hint="look"))
    assert shown.out == "warning: \u241b[2Jcareful\nlook\n"
