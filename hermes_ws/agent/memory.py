"""What an agent remembers between sessions: two small files of the home, made of entries.

`MEMORY.md` is what it learnt of its work, `USER.md` what it knows of the person. Entries are parted by a line with `§`.
A change is made under a lock and replaces the file at once, so that two sessions lose nothing of each other. Everything
here reads and writes files of the home: call it with the home bound, in a worker thread.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, final

import trio

from hermes_ws.contract.errors import InvalidParams, LimitReached, NotFound
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.private_file import read_regular, write_private

Which = Literal["memory", "user"]
Action = Literal["add", "replace", "remove"]

DELIMITER: Final = "\n§\n"

CHARACTERS: Final = 8_000
"""Of one file. It is part of every request, so it has to stay what fits on two pages."""

FILE_BYTES: Final = 262_144
"""A file that somebody made larger by hand is refused instead of read."""


def read(home: ProfileHome, which: Which) -> str:
    """A whole file; empty when there is none. Raises ProfileUnusable."""
    path = _path(home, which)
    if not home.contains(path):
        return ""
    data = read_regular(path, limit=FILE_BYTES)
    return "" if data is None else data.decode("utf-8-sig", errors="replace").strip()


def write(home: ProfileHome, which: Which, text: str) -> None:
    """Replace a whole file. Raises LimitReached."""
    with _locked(home):
        _store(home, which, text.strip())


def change(home: ProfileHome, which: Which, action: Action, text: str, old: str) -> str:
    """Add an entry, replace the one that holds `old`, or remove it. Returns the new content of the file.

    Raises InvalidParams for something that is missing or of which `old` fits several, NotFound, LimitReached.
    """
    with _locked(home):
        entries = [each for each in read(home, which).split(DELIMITER) if each.strip()]
        if action != "remove" and not text.strip():
            raise InvalidParams("The text of the entry is missing.", path="text")
        if "§" in text:
            raise InvalidParams("An entry holds no §; that parts the entries.", path="text")
        if action == "add":
            if text.strip() not in entries:
                entries.append(text.strip())
        else:
            index = _entry(entries, old)
            entries[index : index + 1] = [text.strip()] if action == "replace" else []
        content = DELIMITER.join(entries)
        _store(home, which, content)
        return content


@final
class MemoryFiles:
    """The memory of one home, for turns: each call hops to a thread."""

    def __init__(self, home: ProfileHome, limiter: trio.CapacityLimiter) -> None:
        self._home = home
        self._limiter = limiter

    async def change(self, which: Which, action: Action, text: str, old: str) -> str:
        """As `change` of this module."""
        return await in_thread(self._limiter, change, self._home, which, action, text, old)


def _entry(entries: list[str], old: str) -> int:
    if not old.strip():
        raise InvalidParams("Say which entry, by words that only it has.", path="old")
    found = [index for index, each in enumerate(entries) if old.strip() in each]
    if not found:
        raise NotFound(f"No entry holds {old[:100]!r}.", hint="Read the memory again; it may have been changed.")
    if len(found) > 1:
        raise InvalidParams(f"{len(found)} entries hold {old[:100]!r}.", path="old")
    return found[0]


def _store(home: ProfileHome, which: Which, content: str) -> None:
    if len(content) > CHARACTERS:
        raise LimitReached(
            f"{_path(home, which).name} would have {len(content):,} characters; {CHARACTERS:,} is the most.",
            hint="Replace or remove entries that are no longer worth it.",
            limit=CHARACTERS,
        )
    write_private(_path(home, which), (content + "\n").encode(errors="replace") if content else b"")


def _path(home: ProfileHome, which: Which) -> Path:
    return home.memories / ("MEMORY.md" if which == "memory" else "USER.md")


@contextmanager
def _locked(home: ProfileHome) -> Generator[None]:
    """One change at a time. The lock is on the directory, and gone with its descriptor whatever happens."""
    home.memories.mkdir(mode=0o700, exist_ok=True)
    if not home.contains(home.memories):
        raise NotFound("The directory of memories leads out of the home.")
    fd = os.open(home.memories, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
