"""Cursors."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.contract.errors import InvalidParams
from hermes_ws.wire.cursor import LARGEST, Cursor


@given(st.integers(1, LARGEST), st.integers(0, LARGEST))
def test_a_cursor_is_read_back_as_it_was_written(generation: int, seq: int) -> None:
    assert Cursor.parse(str(Cursor(generation, seq))) == Cursor(generation, seq)


@given(st.tuples(st.integers(1, 9), st.integers(0, 99)), st.tuples(st.integers(1, 9), st.integers(0, 99)))
def test_cursors_are_ordered_by_generation_and_then_by_sequence(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (Cursor(*one) < Cursor(*other)) == (one < other)


_NONE_OF_OURS = (
    *(
        "",
        ":",
        "1",
        "1:",
        ":1",
        "0:1",
        "1:-1",
        "-1:1",
        " 1:1",
        "1:1 ",
        "1:1\n",
        "1:1:1",
        "1.0:1",
        "a:b",
        "\u0661:\u0661",
    ),
    *("\u0661:\u0661", "1:" + "9" * 21, f"{LARGEST + 1}:1", f"1:{LARGEST + 1}"),
)


@pytest.mark.parametrize("text", _NONE_OF_OURS)
def test_anything_else_is_refused_with_the_name_of_the_parameter(text: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        Cursor.parse(text, path="before")
    assert refused.value.data["path"] == "before"


@given(st.text(max_size=60))
def test_no_text_makes_reading_fail_in_another_way(text: str) -> None:
    with contextlib.suppress(InvalidParams):
        Cursor.parse(text)
