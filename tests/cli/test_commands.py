"""What a typed line means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.cli.commands import (
    HELP,
    IN_VIEW,
    Answer,
    Approve,
    Command,
    Discard,
    Edit,
    Help,
    New,
    Nothing,
    Quit,
    Say,
    Slash,
    Stop,
    Tools,
    Undo,
    Usage,
    Wrong,
    Yolo,
    parse,
)


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("", Nothing()),
        ("   ", Nothing()),
        ("hello there", Say("hello there")),
        ("  hello  ", Say("hello")),
        ("//etc is a directory", Say("/etc is a directory")),
        ("/do run ls", Say("/do run ls")),
        ("/approve q1 once", Approve("q1", "once", None)),
        ("/approve  q1   deny  not  now", Approve("q1", "deny", "not  now")),
        ("/answer q1 the blue one", Answer("q1", "the blue one")),
        ("/stop", Stop()),
        ("/help", Help()),
        ("/quit", Quit()),
        ("/exit", Quit()),
        ("/detach", Quit()),
        ("/discard a-1", Discard("a-1")),
        ("/title A new name", Edit("rename", (("title", "A new name"),))),
        ("/title", Slash("/title")),
        ("/model", Slash("/model")),
        ("/model small", Edit("model", (("model", "small"),))),
        ("/model small --provider loopback", Edit("model", (("model", "small"), ("provider", "loopback")))),
        ("/compress", Edit("compress")),
        ("/compact here", Edit("compress", (("here", 2),))),
        ("/compress here 4 --preview", Edit("compress", (("preview", True), ("here", 4)))),
        ("/compress the tests", Edit("compress", (("focus", "the tests"),))),
        ("/branch", Edit("branch")),
        ("/fork side", Edit("branch", (("title", "side"),))),
        ("/undo", Undo(1)),
        ("/undo 3", Undo(3)),
        ("/retry", Edit("retry")),
        ("/yolo", Yolo(None)),
        ("/yolo on", Yolo(on=True)),
        ("/yolo off", Yolo(on=False)),
        ("/new", New(None)),
        ("/reset other", New("other")),
        ("/clear", New(None)),
        ("/usage", Usage("/usage")),
        ("/tools", Tools()),
        ("/status", Slash("/status")),
        ("/shrug q1 once", Slash("/shrug q1 once")),
    ],
)
def test_a_line_means(line: str, meaning: Command) -> None:
    assert parse(line) == meaning


@pytest.mark.parametrize(
    "line",
    [
        "/approve",
        "/approve q1",
        "/answer q1",
        "/answer",
        "/stop now",
        "/",
        "/discard",
        "/undo x",
        "/undo 0",
        "/yolo maybe",
        "/compress --aggressive",
        "/compress here 0",
        "/model a b",
        "/model --global",
        "/tools x",
        "/retry it",
    ],
)
def test_a_line_that_cannot_be_meant_so_is_explained_and_never_said(line: str) -> None:
    meaning = parse(line)
    assert isinstance(meaning, Wrong)
    assert "/" in meaning.why


@given(st.text())
def test_any_line_has_a_meaning(line: str) -> None:
    parse(line)


@pytest.mark.parametrize("name", [name for name, _ in IN_VIEW])
def test_what_the_view_does_itself_is_not_sent_to_the_server_with_its_usual_words(name: str) -> None:
    words = {"approve": " q1 once", "answer": " q1 yes", "discard": " a1", "model": " m", "title": " t"}
    meaning = parse(f"/{name}{words.get(name, '')}")
    assert not isinstance(meaning, Wrong | Say)
    assert not isinstance(meaning, Slash) or meaning == Slash("/help"), "only /commands is, under another name"


def test_help_fits_a_narrow_terminal() -> None:
    assert all(len(line) <= 40 for line in HELP)
