from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.scope.secrets import Secrets

KEY = "sk-A1b2C3d4E5"


def test_a_secret_is_replaced_by_its_name() -> None:
    assert Secrets({"KEY": KEY}).redact(f"a {KEY}{KEY} b") == "a «secret:KEY»«secret:KEY» b"


def test_what_is_short_plain_or_listed_as_plain_stays() -> None:
    secrets = Secrets({"PIN": "a1b2c3d", "URL": "http://127.0.0.1:1/v1", "SITE": KEY}, plain=frozenset({"SITE"}))
    text = f"a1b2c3d http://127.0.0.1:1/v1 {KEY}"
    assert secrets.redact(text) == text
    assert secrets.redactor().feed(text) == text


def test_a_key_that_stands_in_the_settings_is_covered_too() -> None:
    secrets = Secrets({}, hidden={"providers.x.api_key": KEY})
    assert secrets.redact(KEY) == "«secret:providers.x.api_key»"
    assert secrets.names() == frozenset()


def test_overlapping_secrets_are_covered_whole() -> None:
    secrets = Secrets({"A": "Abcd1234Wxyz", "B": "Wxyz5678Efgh"})
    assert secrets.redact("-Abcd1234Wxyz5678Efgh-") == "-«secret:A»-"


def test_the_longer_of_two_that_begin_alike_leaves_no_tail() -> None:
    secrets = Secrets({"A": "Abcd1234", "B": "Abcd1234Efgh"})
    assert secrets.redact("-Abcd1234Efgh-Abcd1234-") == "-«secret:A»-«secret:A»-"


@pytest.mark.parametrize("dump", [json.dumps, lambda text: json.dumps(text, ensure_ascii=False)])
def test_a_secret_is_found_inside_of_json(dump: type[str]) -> None:
    value = 'say"it\\ñ and\nline'
    assert Secrets({"K": value}).redact(dump(value)) == '"«secret:K»"'


def test_a_secret_of_several_lines_is_found_as_a_terminal_prints_it() -> None:
    assert Secrets({"K": "line one!\nline two!"}).redact("x line one!\r\nline two! y") == "x «secret:K» y"


def test_a_secret_that_is_cut_into_pieces_is_replaced() -> None:
    redactor = Secrets({"KEY": KEY}).redactor()
    told = [redactor.feed(piece) for piece in ("the key ", *KEY, " is", " s", "k")]
    assert "".join(told) + redactor.flush() == "the key «secret:KEY» is sk"
    assert told[0] == "the key "
    assert told[1] == ""


def test_a_secret_that_may_grow_into_a_longer_one_is_told_when_it_is_clear_which() -> None:
    redactor = Secrets({"A": "Abcd1234", "B": "Abcd1234Efgh"}).redactor()
    assert redactor.feed("x Abcd1234") == "x "
    assert redactor.feed("Ef") == ""
    assert redactor.feed("!") == "«secret:A»Ef!"


def test_only_what_may_be_a_beginning_is_held_back() -> None:
    redactor = Secrets({"KEY": KEY}).redactor()
    assert redactor.feed("plain text") == "plain text"
    assert redactor.feed("more s") == "more "
    assert redactor.feed("o what") == "so what"
    assert redactor.flush() == ""


def test_a_redactor_serves_another_text_after_a_flush() -> None:
    redactor = Secrets({"KEY": KEY}).redactor()
    assert redactor.feed(KEY[:-1]) == ""
    assert redactor.flush() == KEY[:-1]
    assert redactor.feed(KEY) == "«secret:KEY»"


def test_a_text_that_repeats_a_secret_without_end_is_not_held_without_end() -> None:
    redactor = Secrets({"K": "Aa1Aa1Aa1Aa1"}).redactor()
    told = "".join(redactor.feed("Aa1") for _ in range(1000))
    assert told + redactor.flush() == "«secret:K»"
    assert told == "«secret:K»"


SECRETS = st.dictionaries(
    st.sampled_from("ABCD"), st.text(st.sampled_from("aB1"), min_size=8, max_size=12), min_size=1, max_size=4
)


@given(SECRETS, st.data())
def test_pieces_give_the_same_as_the_whole(values: dict[str, str], data: st.DataObject) -> None:
    secrets = Secrets(values)
    part = st.one_of(st.sampled_from(sorted(values.values())), st.text(st.sampled_from("aB1 "), max_size=6))
    text = "".join(data.draw(st.lists(part, max_size=8)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    redactor = secrets.redactor()
    told = "".join(map(redactor.feed, pieces)) + redactor.flush()
    assert told == secrets.redact(text)
    for value in values.values():
        assert value not in told or len(set(value)) == 1


def test_what_is_held_back_is_not_printed() -> None:
    redactor = Secrets({"KEY": KEY}).redactor()
    redactor.feed(KEY[:-1])
    assert KEY[:6] not in repr(redactor)
