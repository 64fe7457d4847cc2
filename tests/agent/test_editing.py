"""Exact replacements: what they do, and how precisely they say why they do not apply."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.agent.tools.editing import Edit, edited
from hermes_ws.contract.errors import InvalidParams

PROGRAM = "def one():\n    return 1\n\n\ndef two():\n\treturn 2\n\n\ndef three():\n    return 1\n"


def problem(text: str, *edits: Edit) -> str:
    with pytest.raises(InvalidParams) as refused:
        edited(text, edits)
    return refused.value.message


def test_edits_apply_in_order_each_to_what_the_one_before_left() -> None:
    done = edited("a b c", [Edit("b", "bb"), Edit("bb c", "d")])
    assert (done.text, done.places) == ("a d", [[1], [1]])


def test_every_replaces_all_places_and_names_their_lines() -> None:
    done = edited(PROGRAM, [Edit("return 1", "return 4", every=True)])
    assert done.text.count("return 4") == 2
    assert done.places == [[2, 10]]


def test_one_edit_that_does_not_apply_leaves_all_undone_and_is_named() -> None:
    said = problem("a b c", Edit("a", "x"), Edit("zz", "y"))
    assert said.startswith("Edit 2 of 2 was not made, and nothing was changed")


def test_a_text_that_stands_there_twice_is_refused_with_its_lines() -> None:
    assert "stands there 2 times (lines 2, 10)" in problem(PROGRAM, Edit("return 1", "return 3"))


def test_a_difference_in_white_space_is_told_and_shown() -> None:
    said = problem(PROGRAM, Edit("def two():\n    return 2", "def two():\n    return 3"))
    assert "differs from lines 5–6 only in white space" in said
    assert "    6: →return 2" in said


def test_white_space_at_the_end_of_a_line_can_be_seen() -> None:
    assert "1: x = 1··" in problem("x = 1  \n", Edit("x  = 1", "x = 2"))


def test_a_difference_in_capitals_is_told() -> None:
    assert "differs from line 1 only in capitals" in problem(PROGRAM, Edit("Def one():", "def uno():"))


def test_the_place_where_most_lines_stand_is_shown() -> None:
    said = problem(PROGRAM, Edit("def three():\n    return 33", "x"))
    assert "1 of its 2 lines stand around line 9" in said
    assert "    9: def three():" in said


def test_a_similar_line_is_shown_where_none_is_the_same() -> None:
    assert "something similar stands around line 5" in problem(PROGRAM, Edit("def twoo(self):", "x"))


def test_nothing_alike_says_to_read_again() -> None:
    assert "nor anything like it" in problem(PROGRAM, Edit("import os", "import sys"))


def test_a_secret_that_was_not_shown_cannot_be_replaced_by_its_name() -> None:
    assert "stands for a secret" in problem("KEY=abc\n", Edit("KEY=«secret:KEY»", "KEY=x"))


def test_an_edit_that_changes_nothing_is_refused() -> None:
    assert "are the same" in problem("a", Edit("a", "a"))


def test_windows_line_ends_stay_whichever_the_edit_says() -> None:
    text = "one\r\ntwo\r\nthree\r\n"
    for old in ("one\ntwo", "one\r\ntwo"):
        assert edited(text, [Edit(old, "1\n2")]).text == "1\r\n2\r\nthree\r\n"


def test_mixed_line_ends_are_left_as_they_are() -> None:
    assert edited("one\r\ntwo\nthree", [Edit("two\n", "2\n")]).text == "one\r\n2\nthree"


@given(
    st.text(alphabet="ab \n\t", max_size=60), st.text(alphabet="ab \n\t", min_size=1, max_size=6), st.text(max_size=5)
)
def test_an_edit_does_what_replace_does_or_says_why_not(text: str, old: str, new: str) -> None:
    try:
        done = edited(text, [Edit(old, new, every=True)])
    except InvalidParams:
        assert old not in text or old == new
    else:
        assert done.text == text.replace(old, new)
        assert len(done.places[0]) == text.count(old)
