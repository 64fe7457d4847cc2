"""Growing texts: offsets, pieces, and what is kept of them."""

from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.journal import live
from hermes_ws.journal.address import Address
from hermes_ws.journal.live import LIVE_PIECE, MERGE_PIECES, PIECES_CACHED, PROGRESS_KEPT, LiveKind, LiveText
from hermes_ws.wire.frames import Frame

ADDRESS = Address("work", "ses-1", "main")


def begin(kind: LiveKind = "message.delta") -> LiveText:
    return LiveText(kind, "m1", execution_generation=3, admission_id="adm-1", began_at=0, ts=1.0)


def payload(frame: Frame) -> dict[str, object]:
    return orjson.loads(frame.json)["params"]["payload"]


def read(text: LiveText, after: int) -> tuple[int, str]:
    """Everything after an offset, in as many pieces as it takes: where it started, and the text."""
    start, parts = -1, list[str]()
    while after < text.end:
        after, frame = text.piece(after, ADDRESS)
        said = payload(frame)
        start = int(str(said["offset"])) if start < 0 else start
        parts.append(str(said["text"]))
    return start, "".join(parts)


def test_a_piece_says_who_speaks_and_where_it_belongs() -> None:
    text = begin()
    text.append("hello", 2.5)
    reached, frame = text.piece(2, ADDRESS)
    assert reached == 5
    assert orjson.loads(frame.json)["params"] == {
        "type": "message.delta",
        "profile": "work",
        "session_id": "ses-1",
        "thread_id": "main",
        "execution_generation": 3,
        "admission_id": "adm-1",
        "ts": 2.5,
        "payload": {"message_id": "m1", "offset": 2, "text": "llo"},
    }


def test_subscribers_at_the_same_offset_get_the_same_frame_until_the_text_grows() -> None:
    text = begin()
    text.append("hello", 0)
    first = text.piece(0, ADDRESS)
    assert text.piece(0, ADDRESS) is first
    text.append("!", 0)
    assert read(text, 0) == (0, "hello!")


def test_many_different_offsets_keep_a_bounded_number_of_frames() -> None:
    text = begin()
    text.append("x" * 100, 0)
    for offset in range(100):
        assert read(text, offset) == (offset, "x" * (100 - offset))
    assert len(text._cache) <= PIECES_CACHED  # pyright: ignore[reportPrivateUsage]


@given(st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=40), st.data())
def test_any_offset_reads_the_rest_in_code_points(pieces: list[str], data: st.DataObject) -> None:
    text = begin()
    for piece in pieces:
        text.append(piece, 0)
    whole = "".join(pieces)
    offset = data.draw(st.integers(0, len(whole) - 1))
    assert read(text, offset) == (offset, whole[offset:])
    assert text.text() == whole
    text.append("end", 0)
    assert read(text, offset) == (offset, whole[offset:] + "end")


def test_a_long_text_is_joined_as_it_grows_and_still_reads_right() -> None:
    text = begin()
    words = [f"{number} " for number in range(3 * MERGE_PIECES + 7)]
    for word in words:
        text.append(word, 0)
    assert len(text._pieces) == 3 + 7  # pyright: ignore[reportPrivateUsage]
    assert read(text, 10) == (10, "".join(words)[10:])
    assert text.text() == "".join(words)


def test_a_long_text_goes_in_pieces_that_fit_into_a_frame() -> None:
    text = begin()
    text.append("\x01" * (3 * LIVE_PIECE), 0)
    reached, frame = text.piece(0, ADDRESS)
    assert reached == LIVE_PIECE
    assert len(frame) < 128 * 1024
    assert read(text, 0) == (0, "\x01" * (3 * LIVE_PIECE))


def test_of_a_tools_output_the_end_is_kept_and_offsets_go_on() -> None:
    text = begin("tool.progress")
    whole = "".join(f"line {number}\n" for number in range(40_000))
    for start in range(0, len(whole), 1000):
        text.append(whole[start : start + 1000], 0)
    assert text.end == len(whole)
    assert read(text, 0) == (len(whole) - PROGRESS_KEPT, whole[-PROGRESS_KEPT:])
    assert text.text() == whole[-PROGRESS_KEPT:]
    assert read(text, len(whole) - 10) == (len(whole) - 10, whole[-10:])
    assert sum(map(len, text._pieces)) <= 2 * PROGRESS_KEPT  # pyright: ignore[reportPrivateUsage]
    assert payload(text.piece(len(whole) - 10, ADDRESS)[1])["call_id"] == "m1"


def test_of_a_short_output_everything_is_kept() -> None:
    text = begin("tool.progress")
    assert text.text() == ""
    text.append("one", 0)
    assert text.text() == "one"
    text.append("two", 0)
    assert text.text() == "onetwo"
    assert read(text, 1) == (1, "netwo")


def test_a_half_character_costs_one_code_point_for_everybody() -> None:
    text = begin()
    text.append("a\ud83d", 0)
    text.append("b", 0)
    assert read(text, 0) == (0, "a\ufffdb")
    assert read(text, 2) == (2, "b")


def test_given_marks_start_after_the_text_that_was_given() -> None:
    assert live.LiveMarks.given("m1", "abc").offsets == {("message.delta", "m1"): 3}
