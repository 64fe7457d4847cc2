"""How long to wait, and what a provider says, by itself."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.agent.models.chat_stream import ChatStream
from hermes_ws.agent.models.dialect import Malformed
from hermes_ws.agent.models.endpoint import BACK_OFF_MOST_S, Transient, pause_s, retry_after_s
from hermes_ws.contract.errors import ModelFailed


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        (" 1.5 ", 1.5),
        ("Thu, 01 Jan 1970 00:16:50 GMT", 10.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", None),
        ("-1", None),
        ("1e3", None),
        ("٣", None),
        ("Thu, 99 Jan 1970", None),
        ("", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_a_date(text: str, seconds: float | None) -> None:
    assert retry_after_s({"retry-after": text}, now=1000.0) == seconds


@given(st.text(max_size=40))
def test_any_retry_after_is_a_number_of_seconds_or_none(text: str) -> None:
    seconds = retry_after_s({"retry-after": text}, now=0.0)
    assert seconds is None or seconds >= 0


def test_pauses_double_with_jitter_up_to_a_bound() -> None:
    assert [pause_s(attempt, None, lambda: 1.0) for attempt in (1, 2, 3, 9)] == [0.5, 1.0, 2.0, BACK_OFF_MOST_S]
    assert pause_s(1, None, lambda: 0.0) == 0.25
    assert pause_s(1, 3.0, lambda: 0.0) == 3.0


KEYS = (
    *("choices", "delta", "index", "tool_calls", "function", "arguments", "name", "id", "content", "usage"),
    *("finish_reason", "reasoning", "message", "error", "prompt_tokens"),
)
CHUNKS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(CHUNKS, max_size=6))
def test_any_json_is_understood_passed_over_or_a_documented_failure(chunks: list[object]) -> None:
    stream = ChatStream()
    for chunk in chunks:
        try:
            stream.feed(json.dumps(chunk))
        except Malformed:
            continue
        except (ModelFailed, Transient):
            return
    stream.feed("[DONE]")
    assert stream.end()
