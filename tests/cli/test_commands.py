"""What a typed line means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.cli.commands import HELP, Answer, Approve, Command, Help, Nothing, Quit, Say, Stop, Wrong, parse


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
    ],
)
def test_a_line_means(line: str, meaning: Command) -> None:
    assert parse(line) == meaning


@pytest.mark.parametrize(
    "line", ["/approve", "/approve q1", "/answer q1", "/answer", "/stop now", "/shrug q1 once", "/"]
)
def test_a_line_that_cannot_be_meant_so_is_explained_and_never_said(line: str) -> None:
    meaning = parse(line)
    assert isinstance(meaning, Wrong)
    assert "/" in meaning.why


@given(st.text())
def test_any_line_has_a_meaning(line: str) -> None:
    parse(line)


def test_help_fits_a_narrow_terminal() -> None:
    assert all(len(line) <= 40 for line in HELP)
