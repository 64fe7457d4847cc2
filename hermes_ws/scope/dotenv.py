"""Reading and writing `.env`: one reader and one writer, so that all parts of the product agree (cases PARSE-01 to 05).

UTF-8 with or without a byte-order mark, LF or CRLF, `export`, three kinds of quoting, comments. Nothing is expanded and
nothing is run. A line that does not parse is reported by its number and left out; the lines after it load. Reports
never hold a value.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import final

from dotenv.parser import Binding, parse_stream

from hermes_ws.scope.private_file import read_regular

ENV_BYTES = 262_144
"""Some hundred keys and certificates; what is longer is not a file of secrets."""

PROBLEMS = 100
"""Bad lines after which reading stops: it is another kind of file then, and each costs a start of the parser."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ESCAPES = MappingProxyType({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
_ESCAPED = re.compile(r'[\\"\n\r]')


@final
@dataclass(frozen=True, slots=True)
class Problem:
    """A line that was left out, and why. `line` counts from 1; `text` is a clause and holds no value."""

    line: int
    text: str


@final
@dataclass(frozen=True, slots=True, repr=False)
class Parsed:
    """What a `.env` file says. Of a name that occurs twice, the last value holds."""

    values: Mapping[str, str]
    problems: tuple[Problem, ...]

    def __repr__(self) -> str:
        return f"Parsed({len(self.values)} values, problems={self.problems!r})"


def load(path: Path) -> Parsed:
    """Read a file of secrets; a missing one is empty. Raises ProfileUnusable when others can read it."""
    data = read_regular(path, limit=ENV_BYTES, private=True)
    if data is None:
        return parse("")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Parsed(MappingProxyType({}), (Problem(1, "the file is in UTF-16; save it as UTF-8"),))
    return parse(data.decode("utf-8", "surrogateescape"))


def parse(text: str) -> Parsed:
    """Parse the text of a `.env` file. Never raises."""
    values: dict[str, str] = {}
    problems: list[Problem] = []
    for line, binding in _bindings(text.removeprefix("\ufeff").replace("\r\n", "\n")):
        problem = _problem(binding)
        if problem is not None:
            problems.append(Problem(line, problem))
            if len(problems) == PROBLEMS:
                problems.append(Problem(line, f"{PROBLEMS} lines do not parse; what follows was not read"))
                break
        elif binding.key is not None and binding.value is not None:
            values[binding.key] = binding.value
    return Parsed(MappingProxyType(values), tuple(problems))


def render(values: Mapping[str, str]) -> str:
    """The text of a `.env` file that `parse` reads back to exactly these values.

    Raises ValueError for what no environment can hold: a name that is no identifier, NUL, a lone surrogate.
    """
    return "".join(f"{name}={_quoted(name, value)}\n" for name, value in values.items())


def with_value(text: str, name: str, value: str | None) -> str:
    """The text of a `.env` file in which `name` has this value, or with None does not occur; every other line, comments
    and lines that do not parse among them, stays as it is. Raises ValueError as `render` does.
    """
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    written = [] if value is None else [f"{name}={_quoted(name, value)}"]
    for first, binding in reversed(list(_bindings("\n".join(lines)))):
        if binding.key == name and not binding.error:
            count = binding.original.string.strip("\n").count("\n") + 1
            lines[first - 1 : first - 1 + count] = written
            # The last line is the one that counts; earlier ones of the same name go, so that none comes back later.
            written = []
    if written:
        if lines and lines[-1] == "":
            lines.pop()
        lines += [*written, ""]
    return end.join(lines)


def _quoted(name: str, value: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} cannot be the name of a secret")
    if "\0" in value or not _encodable(value):
        raise ValueError(f"the value of {name} cannot be stored")
    return '"' + _ESCAPED.sub(lambda found: _ESCAPES[found.group()], value) + '"'


def _bindings(text: str) -> Iterator[tuple[int, Binding]]:
    """The bindings with the line that each begins in.

    A quote that is never closed makes the parser give up at some later line. It is started again right behind the line
    with the quote, so that the lines in between are not lost with it.
    """
    start, first_line = 0, 1
    while start < len(text):
        restart = 0
        position = start
        for binding in parse_stream(io.StringIO(text[start:], newline="")):
            source = binding.original.string
            blank = len(source) - len(source.lstrip())
            line = first_line + binding.original.line - 1 + _lines(source[:blank])
            yield line, binding
            end = source.find("\n", blank) + 1
            if binding.error and 0 < end < len(source):
                restart, first_line = position + end, line + 1
                break
            position += len(source)
        if not restart:
            return
        start = restart


def _lines(text: str) -> int:
    return text.count("\n") + text.count("\r")


def _problem(binding: Binding) -> str | None:
    if binding.error:
        return "it is not NAME=value; perhaps a quote is not closed"
    if binding.key is None:
        return None
    if _NAME.fullmatch(binding.key) is None:
        return "the name is not made of letters, digits and _"
    if binding.value is None:
        return f"{binding.key} has no = and no value"
    if not _encodable(binding.value):
        return f"the value of {binding.key} is not UTF-8"
    if "\0" in binding.value:
        return f"the value of {binding.key} holds a NUL character"
    return None


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
