"""Reading command lines: what is understood is exact, what is not is said."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_ws.agent.commandline import LONGEST, mentions, parse
from hermes_ws.agent.programs import program


@pytest.mark.parametrize(
    ("line", "argvs"),
    [
        ("ls -l", [("ls", "-l")]),
        ("  ls\t-l  ", [("ls", "-l")]),
        ("a 'b c' \"d e\" f\\ g", [("a", "b c", "d e", "f g")]),
        ("a '' \"\"", [("a", "", "")]),
        ("a b'c'\"d\"e", [("a", "bcde")]),
        ('a "x\\"y\\\\z\\n"', [("a", 'x"y\\z\\n')]),
        ("a 'x\\y'", [("a", "x\\y")]),
        ("a|b||c&&d;e", [("a",), ("b",), ("c",), ("d",), ("e",)]),
        ("a |& b", [("a",), ("b",)]),
        ("a\nb\n\n", [("a",), ("b",)]),
        ("a &&\n b", [("a",), ("b",)]),
        ("a b\\\nc", [("a", "bc")]),
        ("a # b\nc", [("a",), ("c",)]),
        ("a b#c", [("a", "b#c")]),
        ("a 2>&1 >&2 b", [("a", "b")]),
        ("a 2>/dev/null b", [("a", "b")]),
        ("a 2 b", [("a", "2", "b")]),
        ("a $", [("a", "$")]),
        ("a x=y", [("a", "x=y")]),
        ("a é", [("a", "é")]),
    ],
)
def test_words_are_what_a_shell_makes_of_them(line: str, argvs: list[tuple[str, ...]]) -> None:
    read = parse(line)
    assert read.problem is None
    assert [part.argv for part in read.parts] == argvs
    assert all(not part.problems for part in read.parts)


def test_assignments_and_redirections_are_told_and_are_no_words() -> None:
    (part,) = parse("A=1 B[2]+=x ls -l >out 2>>err").parts
    assert part.argv == ("ls", "-l")
    assert part.problems == (
        "it sets A in front",
        "it sets B[2]+ in front",
        "it redirects to out",
        "it redirects to err",
    )


def test_a_descriptor_is_no_word_and_a_number_is() -> None:
    assert parse("echo 2>f").parts[0].argv == ("echo",)
    assert parse("echo 2 >f").parts[0].argv == ("echo", "2")
    assert parse("echo '2'>f").parts[0].argv == ("echo", "2")


def test_what_is_too_long_is_not_read() -> None:
    assert parse("ls " + "a" * LONGEST).problem is not None
    assert parse("").problem == "it holds no command"
    assert parse(" \n ; ").problem is not None


def test_mentions_finds_words_behind_quotes() -> None:
    assert mentions('echo $(r"m" -r \\/x)') == ("echo", "rm", "-r", "/x")


def test_only_the_systems_directories_make_a_program_of_a_path() -> None:
    assert program(["/usr/bin/git"]) == "git"
    assert program(["/home/x/git"]) == "/home/x/git"
    assert program(["./git"]) == "./git"


@given(st.text(max_size=200))
def test_reading_never_raises(line: str) -> None:
    read = parse(line)
    assert (read.problem is None) == bool(read.parts)
    mentions(line)


@given(st.text(alphabet=" \n\t'\"\\$`|&;<>(){}[]*?#!=~a1-", max_size=40))
def test_reading_never_raises_for_what_shells_give_meaning_to(line: str) -> None:
    read = parse(line)
    assert (read.problem is None) == bool(read.parts)


SHELLS = [shell for shell in ("bash", "dash") if shutil.which(shell)]


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=40, deadline=None)
@given(line=st.text(alphabet=" \t'\"\\ab$-#=1", max_size=16))
def test_a_real_shell_sees_the_same_words(shell: str, line: str) -> None:
    read = parse(f"printf '<%s>' {line}")
    if read.problem is not None or len(read.parts) != 1 or read.parts[0].problems:
        return
    words = read.parts[0].argv[2:]
    said = subprocess.run([shell, "-c", f"printf '<%s>' {line}"], capture_output=True, text=True, check=True).stdout
    assert said == ("".join(f"<{word}>" for word in words) or "<>")
