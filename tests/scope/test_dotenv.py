from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.scope import dotenv
from hermes_ws.scope.dotenv import PROBLEMS, load, parse, render

VALUES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=60)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True)


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def test_a_byte_order_mark_does_not_stick_to_the_first_name(tmp_path: Path) -> None:
    """Case PARSE-01."""
    assert dict(load(write(tmp_path / ".env", b"\xef\xbb\xbfK=1\nL=2")).values) == {"K": "1", "L": "2"}
    assert dict(parse("\ufeffK=1").values) == {"K": "1"}


def test_a_comment_behind_a_value_is_not_part_of_it() -> None:
    """Case PARSE-02."""
    parsed = parse("U=http://h/p  # note\nC=#abc\nQ=\"a # b\"\nS='a # b' # c\nE= # nothing\n# K=1\n")
    assert dict(parsed.values) == {"U": "http://h/p", "C": "#abc", "Q": "a # b", "S": "a # b", "E": ""}
    assert parsed.problems == ()


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_what_the_writer_writes_the_reader_reads(values: dict[str, str]) -> None:
    """Cases PARSE-03, PARSE-04."""
    parsed = parse(render(values))
    assert (dict(parsed.values), parsed.problems) == (values, ())


@pytest.mark.parametrize(
    "value", ["a#b", " x ", '{"a": "b\\n"}', "'", '"', "\\", "a\nb", "a\r\nb", "k=v", "${K}", "é", ""]
)
def test_a_value_survives_being_written(value: str) -> None:
    """Cases PARSE-03, PARSE-04."""
    assert parse(render({"K": value})).values["K"] == value


@pytest.mark.parametrize(("name", "value"), [("1K", "x"), ("a b", "x"), ("", "x"), ("K", "a\0b"), ("K", "\ud800")])
def test_what_no_environment_can_hold_is_not_written(name: str, value: str) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        render({name: value})


def test_references_and_commands_stay_as_they_are_written() -> None:
    """Case PARSE-05: literal, in every reader, since there is one."""
    parsed = parse('K=abc\nL=${K}\nM="$K"\nN=$(id)\nO=`id`\n')
    assert dict(parsed.values) == {"K": "abc", "L": "${K}", "M": "$K", "N": "$(id)", "O": "`id`"}


def test_windows_line_ends_are_not_part_of_values() -> None:
    assert dict(parse('K=1\r\nL="a\r\nb"\r\nM=2').values) == {"K": "1", "L": "a\nb", "M": "2"}


def test_export_may_be_followed_by_spaces_or_tabs() -> None:
    assert dict(parse("export A=1\nexport\tB=2\nexport \t C=3\nexport=4\n").values) == {
        "A": "1", "B": "2", "C": "3", "export": "4",
    }  # fmt: skip


def test_a_double_quoted_value_may_have_several_lines() -> None:
    parsed = parse('KEY="-----BEGIN-----\nabc\n-----END-----"\nL=1\n')
    assert dict(parsed.values) == {"KEY": "-----BEGIN-----\nabc\n-----END-----", "L": "1"}


def test_the_last_of_equal_names_holds() -> None:
    assert dict(parse("K=1\nK=2\n").values) == {"K": "2"}


def test_a_bad_line_is_reported_by_number_and_the_others_load() -> None:
    parsed = parse("A=1\n\nthis is no line s3cret\nB=2\n2C=s3cret\nD\nE=3\n")
    assert dict(parsed.values) == {"A": "1", "B": "2", "E": "3"}
    assert [problem.line for problem in parsed.problems] == [3, 5, 6]
    assert "s3cret" not in repr(parsed)


def test_a_quote_that_is_never_closed_does_not_swallow_the_lines_behind_it() -> None:
    parsed = parse('A=1\nB="never closed\nC="x"\nD=4\nE="also not\n')
    assert dict(parsed.values) == {"A": "1", "C": "x", "D": "4"}
    assert [problem.line for problem in parsed.problems] == [2, 5]


def test_a_report_never_holds_a_value() -> None:
    parsed = parse('A=fine-but-secret\nB=\'s3cret\nC="s3cret\0"\n')
    assert parsed.problems
    assert "secret" not in repr(parsed)
    assert "s3cret" not in repr(parsed)


def test_a_line_that_is_not_utf8_is_reported_and_the_others_load(tmp_path: Path) -> None:
    parsed = load(write(tmp_path / ".env", b"A=1\nB=\xff\xfe\nC=\xc3\xa9\n"))
    assert dict(parsed.values) == {"A": "1", "C": "é"}
    assert [(problem.line, problem.text) for problem in parsed.problems] == [(2, "the value of B is not UTF-8")]


def test_a_file_in_utf16_is_named_for_what_it_is(tmp_path: Path) -> None:
    parsed = load(write(tmp_path / ".env", "K=1\n".encode("utf-16")))
    assert dict(parsed.values) == {}
    assert "UTF-16" in parsed.problems[0].text


def test_reading_stops_at_a_file_that_is_something_else() -> None:
    parsed = parse('A="x\n' * 5 + "no line\n" * 1000 + "B=1\n")
    assert len(parsed.problems) == PROBLEMS + 1
    assert "B" not in parsed.values


def test_a_missing_file_is_empty(tmp_path: Path) -> None:
    parsed = load(tmp_path / ".env")
    assert (dict(parsed.values), parsed.problems) == ({}, ())


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / ".env", b"K=1")
    path.chmod(0o644)
    with pytest.raises(ProfileUnusable, match="others"):
        load(path)


def test_values_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        parse("K=1").values["K"] = "2"  # type: ignore[index]


@given(st.text(st.sampled_from("AB=\"'#\\ \n\r\t$exportñ\0\ufeff"), max_size=80))
def test_any_text_is_read_or_reported(text: str) -> None:
    parsed = parse(text)
    lines = text.count("\n") + text.count("\r") + 1
    assert all(1 <= problem.line <= lines for problem in parsed.problems)
    assert all("\0" not in value for value in parsed.values.values())


def test_a_value_is_added_after_a_last_line_that_has_no_end() -> None:
    assert dotenv.with_value("A=1", "B", "2") == 'A=1\nB="2"\n'
    assert dotenv.with_value("", "B", "2") == 'B="2"\n'
    assert dotenv.with_value("A=1\n", "B", None) == "A=1\n"
