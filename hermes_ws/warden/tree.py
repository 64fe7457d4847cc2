"""Listing and searching directories for the server, each in a short-lived child under the same rules as a command.

The answer is one line of JSON with the errno or nothing, then a line for each entry or match, then a line that says
whether that was all. Lines are written as they are found, so that what a deadline cuts off is the end and not all.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, final

from hermes_ws.warden import files, orders

DEPTH: Final = 64
"""Levels of directories that one listing goes down."""

ENTRIES: Final = orders.LINES

FILE_BYTES: Final = 8 * 1024 * 1024
"""A file above this size is not searched: it is data."""

LINE_CHARACTERS: Final = 400
"""What is told of a line that matches."""

_SAMPLE: Final = 8192
SKIPPED: Final = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache"})
"""What a search does not go into, as the tools that people use do not; naming one of them searches it."""


@final
class Listing(NamedTuple):
    """What to list: how deep, how much, and which names. `pattern` is a shell's, against the name or relative path."""

    depth: int
    limit: int
    hidden: bool
    pattern: str | None


@final
class Search(NamedTuple):
    """What to look for, in which files, and how many matches."""

    expression: str
    literal: bool
    ignore_case: bool
    pattern: str | None
    limit: int


def listing(path: str, asked: Listing, answer: int, places: files.Places) -> Callable[[], None]:
    """An operation that tells the entries below `path`, in order, directories before what is in them."""

    def operation() -> None:
        files.must_be_within(os.path.realpath(path), places)
        entries = _entries(path, "", asked.depth, hidden=asked.hidden)
        first = next(entries, None)
        files.say(answer, {})
        told = 0
        more = False
        while first is not None:
            name, kind, size = first
            if asked.pattern is None or matches(name, asked.pattern):
                if told == asked.limit:
                    more = True
                    break
                told += 1
                files.say(answer, {"name": name, "kind": kind, "size": size})
            first = next(entries, None)
        files.say(answer, {"more": more})

    return files.answering(operation, answer)


def search(path: str, wanted: Search, answer: int, places: files.Places) -> Callable[[], None]:
    """An operation that tells the lines below `path` in which the expression is found, file by file, in order."""

    def operation() -> None:
        files.must_be_within(os.path.realpath(path), places)
        text = re.escape(wanted.expression) if wanted.literal else wanted.expression
        try:
            expression = re.compile(text.encode("utf-8", "surrogateescape"), re.IGNORECASE if wanted.ignore_case else 0)
        except re.error as error:
            files.say(answer, {"expression": str(error)})
            return
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
        found = _matches(path, expression, wanted.pattern)
        files.say(answer, {})
        for told, (name, number, line) in enumerate(found):
            if told == wanted.limit:
                files.say(answer, {"more": True})
                return
            files.say(answer, {"name": name, "line": number, "text": line[:LINE_CHARACTERS]})
        files.say(answer, {"more": False})

    return files.answering(operation, answer)


def matches(name: str, pattern: str) -> bool:
    """Whether a relative path, or its last part alone, fits a shell's pattern."""
    return fnmatch.fnmatchcase(name.rsplit("/", 1)[-1], pattern) or fnmatch.fnmatchcase(name, pattern)


def _entries(root: str, below: str, depth: int, *, hidden: bool) -> Iterator[tuple[str, str, int]]:
    with os.scandir(os.path.join(root, below)) as scanned:
        entries = sorted(scanned, key=lambda entry: entry.name)
    for entry in entries:
        if not hidden and entry.name.startswith("."):
            continue
        name = os.path.join(below, entry.name)
        try:
            state = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        yield name, _kind(state.st_mode), state.st_size
        if depth > 1 and stat.S_ISDIR(state.st_mode):
            try:
                yield from _entries(root, name, depth - 1, hidden=hidden)
            except OSError:
                continue


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISLNK(mode):
        return "link"
    return "file" if stat.S_ISREG(mode) else "other"


def _matches(path: str, expression: re.Pattern[bytes], pattern: str | None) -> Iterator[tuple[str, int, str]]:
    if not stat.S_ISDIR(os.stat(path).st_mode):
        yield from _in_file(path, os.path.basename(path), expression)
        return
    for name in _searched(path, ""):
        if pattern is None or matches(name, pattern):
            yield from _in_file(os.path.join(path, name), name, expression)


def _searched(root: str, below: str) -> Iterator[str]:
    try:
        with os.scandir(os.path.join(root, below)) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
    except OSError:
        if not below:
            raise
        return
    for entry in entries:
        name = os.path.join(below, entry.name)
        try:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED:
                    yield from _searched(root, name)
            elif entry.is_file(follow_symlinks=False):
                yield name
        except OSError:
            continue


def _in_file(path: str, name: str, expression: re.Pattern[bytes]) -> Iterator[tuple[str, int, str]]:
    try:
        place = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return
    with open(place, "rb") as file:
        state = os.fstat(place)
        if not stat.S_ISREG(state.st_mode) or state.st_size > FILE_BYTES:
            return
        try:
            data = file.read(FILE_BYTES)
        except OSError:
            return
    if b"\0" in data[:_SAMPLE] or not expression.search(data):
        return
    for number, line in enumerate(data.splitlines(), 1):
        if expression.search(line):
            yield name, number, line.decode("utf-8", "replace").rstrip("\r")
