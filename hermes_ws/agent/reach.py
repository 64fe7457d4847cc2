"""Where a call would act, as the disk tells: the path that it leads to, and the words of a command that lead outside.

The default rules allow what only reads within the session's directory, and a name does not tell where it leads: a link
may. So the words that a reading program may take for paths are followed here before anything is decided. What cannot be
followed with certainty counts as leading outside, and is asked. The kernel's grants hold all the same: this is about
what is looked at without asking.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, final

import trio

from hermes_ws.agent.commandline import Part, parse
from hermes_ws.agent.ports import Hands
from hermes_ws.agent.programs import names, program
from hermes_ws.agent.repository import NONE_NAMED, RepositoryPrograms, programs_of, uses_git
from hermes_ws.agent.tools.tool import Subject
from hermes_ws.scope.current import in_thread

MOST_MATCHES = 2000
"""Files that a pattern may stand for until it counts as leading outside: following them takes a second by then."""

LONGEST_OPTION = 256
"""Characters of an option with a path that are looked through; a longer one counts as leading outside."""

_NO_FILES: Final = names("echo printf true false pwd seq tr whoami id uname nproc basename dirname which")
"""They open no file that an argument names. The shell expands their patterns all the same, and shows what is there."""

_SEARCHING: Final = names("grep egrep fgrep rg")
"""Their first word that is no option is what they look for, unless an option has told that."""

_TELLS_PATTERN: Final = re.compile(r"-[^-]*[ef]|--re|--f|--$")
_DELIMITER: Final = re.compile(r"-[dt].")
_HARMLESS: Final = frozenset({"-", "/dev/null", "/dev/stdin"})
_SEPARATORS: Final = re.compile(r"[=:@,]")
_MAGIC: Final = re.compile(r"[*?\[]")
_BRACKET: Final = re.compile(r"\[.*")


@final
@dataclass(frozen=True, slots=True)
class Place:
    """What an approval knows of the disk. `cwd` is the session's directory and `resolved` the path of the call, or the
    directory that it asks for, both with their links resolved.

    `leaving` holds the words of the command line that lead, or may lead, out of the session's directory; None when
    nobody has looked, and then all of them may.
    """

    cwd: Path
    resolved: Path | None = None
    leaving: frozenset[str] | None = None
    git: RepositoryPrograms = NONE_NAMED
    """What git would run in the directory of the call; looked for where a git command is to run unasked."""

    def leaves(self, word: str) -> bool:
        """Whether a word of the command line may lead outside."""
        return self.leaving is None or word in self.leaving


async def place_of(subject: Subject, cwd: Path, threads: trio.CapacityLimiter, *, here: bool) -> Place:
    """Look where a call leads. With `here` false its paths are on another machine, and this one's disk says nothing."""
    if subject.command is None and subject.path is None and subject.cwd is None:
        return Place(cwd)
    return await in_thread(threads, look, subject, cwd, here)


async def with_git(place: Place, subject: Subject, hands: Hands) -> Place:
    """The place with what git would run there, where the call is a git command."""
    if not uses_git(subject.command):
        return place
    cwd = None if subject.cwd is None else place.cwd / subject.cwd
    return replace(place, git=await programs_of(hands, cwd))


def look(subject: Subject, cwd: Path, here: bool = True) -> Place:
    """The same, blocking."""
    follow = _real if here else _plain
    wanted = subject.path if subject.path is not None else subject.cwd
    # The tools take `..` by its name, before any link: so does this, or the two would mean different files.
    resolved = None if wanted is None else follow(_plain(cwd / wanted))
    if subject.command is None:
        return Place(cwd, resolved)
    walker = _Walker(cwd, resolved or cwd, here)
    parts = parse(subject.command).parts
    words = ((part, word) for part in parts for word in (*_words(part), *part.sources))
    leaving = frozenset(word for part, word in words if walker.leaves(part, word))
    return Place(cwd, resolved, leaving)


def _words(part: Part) -> Iterator[str]:
    """The words of a part that its program may take for a path."""
    if not part.argv:
        return
    name, arguments = program(part.argv), part.argv[1:]
    sought = name in _SEARCHING and not any(_TELLS_PATTERN.match(each) for each in arguments)
    for word in arguments:
        if sought and not word.startswith("-"):
            sought = False
            if word not in part.patterns:
                continue
        if name in _NO_FILES and word not in part.patterns:
            continue
        if name in ("cut", "sort") and _DELIMITER.fullmatch(word):
            continue
        yield word


@final
class _Walker:
    """Follows words from the directory that a command runs in."""

    def __init__(self, root: Path, start: Path, here: bool) -> None:
        self._root = root
        self._start = start
        self._here = here

    def leaves(self, part: Part, word: str) -> bool:
        """Whether a word leads outside, or cannot be followed."""
        magic = word in part.patterns
        try:
            return any(self._candidate(text, magic) for text in _candidates(word))
        except (OSError, ValueError, RecursionError):
            return True

    def _candidate(self, text: str, magic: bool) -> bool:
        if text in _HARMLESS:
            return False
        if text.startswith("~"):
            return True
        if magic and _MAGIC.search(text):
            return self._pattern_leaves(text)
        return self._outside(self._start / text)

    def _outside(self, path: Path) -> bool:
        found = _real(path) if self._here else _plain(path)
        return not found.is_relative_to(self._root)

    def _pattern_leaves(self, text: str) -> bool:
        """Whether anything that a pattern may stand for leads outside. Nothing outside is listed for it."""
        if not self._here:
            return self._outside(self._start / _MAGIC.split(text, maxsplit=1)[0]) or ".." in text
        steps = text.split("/")
        first = next(number for number, step in enumerate(steps) if _MAGIC.search(step))
        begin = self._start / ("/".join(steps[:first]) or ("/" if text.startswith("/") else "."))
        paths, seen = [begin], 0
        for step in steps[first:]:
            if any(self._outside(path) for path in paths):
                return True
            following = [path / name for path in paths for name in _matching(path, step)]
            seen += len(following)
            if seen > MOST_MATCHES:
                return True
            paths = following
        return any(self._outside(path) for path in paths) or any(path.name.startswith("-") for path in paths)


def _candidates(word: str) -> Iterator[str]:
    """What in a word may be a path: all of it, what follows a sign that sets it apart, what is glued to an option."""
    if word.startswith("-") and not word.startswith("--") and ("/" in word or ".." in word):
        if len(word) > LONGEST_OPTION:
            raise ValueError("too long to be looked through")
        yield from (word[start:] for start in range(1, len(word)))
        return
    if not word.startswith("-"):
        yield word
    yield from (word[found.end() :] for found in _SEPARATORS.finditer(word))


def _matching(directory: Path, step: str) -> list[str]:
    """The names in a directory that a step of a pattern stands for, or more: the shell reads brackets differently."""
    if not _MAGIC.search(step):
        return [step or "."]
    wide = _BRACKET.sub("*", step)
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    dotted = [".", ".."] if step.startswith(".") else []
    return [name for name in (*names, *dotted) if fnmatchcase(name, wide)]


def _real(path: Path) -> Path:
    """The path with its links resolved; as far as it goes, for one that does not exist."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return Path(os.path.normpath(path))


def _plain(path: Path) -> Path:
    return Path(os.path.normpath(path))
