"""Putting text together from pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.client.live_text import Ending, LiveTexts


@given(st.text(), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30))))
def test_whatever_pieces_come_in_whatever_order_nothing_comes_twice(whole: str, cuts: list[tuple[int, int]]) -> None:
    texts = LiveTexts()
    printed = ""
    for start, length in cuts:
        printed += texts.grow("m", start, whole[start : start + length] if start <= len(whole) else "")
        assert whole.startswith(printed)
    ending = texts.end("m", whole)
    assert not ending.anew
    assert printed + ending.rest == whole


def test_a_piece_beyond_a_gap_waits_for_the_whole() -> None:
    texts = LiveTexts()
    assert texts.grow("m", 0, "ab") == "ab"
    assert texts.grow("m", 5, "fg") == ""
    assert texts.end("m", "abcdefg") == Ending("cdefg", anew=False)


def test_a_whole_that_begins_otherwise_is_given_anew() -> None:
    texts = LiveTexts()
    texts.grow("m", 0, "draft")
    assert texts.end("m", "final") == Ending("final", anew=True)
    assert texts.text("m") == ""


def test_dropping_forgets_everything() -> None:
    texts = LiveTexts()
    texts.grow("m", 0, "old")
    texts.drop()
    assert texts.grow("m", 0, "new") == "new"
