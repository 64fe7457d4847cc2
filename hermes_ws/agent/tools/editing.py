"""Exact replacements in a text, all or none, and why one does not apply. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, final

from hermes_ws.contract.errors import InvalidParams

SHOWN_LINES: Final = 12
"""Lines of the file that are shown beside a text that was not found: enough to see what is different."""

LINES_COMPARED: Final = 3000
"""Lines that are looked through for one that is merely similar; comparing takes ten microseconds each."""

PLACES_NAMED: Final = 8
"""Places of a text that stands in a file several times that are named."""

SECRET_MARK: Final = "«secret:"
"""How a secret shows in what a model reads (`scope.redaction`)."""


@final
@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `old` by `new`: at its only place, or at every place with `every`."""

    old: str
    new: str
    every: bool = False


@final
@dataclass(frozen=True, slots=True)
class Edited:
    """The new text, and where each edit took effect: the numbers of the lines, as they were when it was its turn."""

    text: str
    places: Sequence[Sequence[int]]


def edited(text: str, edits: Sequence[Edit]) -> Edited:
    """Apply edits in order, each to what the one before left. Raises InvalidParams that says which does not, and why.

    A file with Windows line ends keeps them: the edits may say line ends either way.
    """
    crlf = "\r\n" in text and text.count("\r\n") == text.count("\n")
    now = text.replace("\r\n", "\n") if crlf else text
    places: list[Sequence[int]] = []
    for number, edit in enumerate(edits, 1):
        old, new = (each.replace("\r\n", "\n") if crlf else each for each in (edit.old, edit.new))
        found = _starts(now, old)
        problem = _problem(now, Edit(old, new, edit.every), found)
        if problem:
            which = f"Edit {number} of {len(edits)} was" if len(edits) > 1 else "The edit was"
            raise InvalidParams(f"{which} not made, and nothing was changed: {problem}", path=f"edits.{number - 1}.old")
        places.append([now.count("\n", 0, at) + 1 for at in found])
        now = now.replace(old, new)
    return Edited(now.replace("\n", "\r\n") if crlf else now, places)


def _starts(text: str, old: str) -> list[int]:
    """Where a text stands, without overlaps, as `str.replace` finds it."""
    found: list[int] = []
    at = text.find(old) if old else -1
    while at >= 0:
        found.append(at)
        at = text.find(old, at + len(old))
    return found


def _problem(text: str, edit: Edit, found: Sequence[int]) -> str:
    if edit.old == edit.new:
        return "`old` and `new` are the same."
    if not found:
        return _missing(text, edit.old)
    if len(found) > 1 and not edit.every:
        lines = [str(text.count("\n", 0, at) + 1) for at in found[:PLACES_NAMED]]
        more = " and more" if len(found) > PLACES_NAMED else ""
        return (
            f"`old` stands there {len(found)} times (lines {', '.join(lines)}{more}). Give more of the lines around "
            "the one that is meant, or set `every`."
        )
    return ""


def _missing(text: str, old: str) -> str:
    """Why a text is not found: the most likely place, and what is different there."""
    if SECRET_MARK in old:
        return f"`old` holds {SECRET_MARK}…», which stands for a secret that is not shown. Leave that line out of it."
    lines, wanted = text.split("\n"), old.strip("\n").split("\n")
    spaced = _match(lines, wanted, lambda line: "".join(line.split()))
    if spaced is not None:
        return f"`old` differs from {_range(spaced, wanted)} only in white space. There stands:\n{_show(lines, spaced)}"
    cased = _match(lines, wanted, lambda line: line.strip().casefold())
    if cased is not None:
        return f"`old` differs from {_range(cased, wanted)} only in capitals. There stands:\n{_show(lines, cased)}"
    near = _nearest(lines, wanted)
    if near is None:
        return "`old` does not stand in the file, nor anything like it. Read the file again."
    start, same = near
    said = f"{same} of its {len(wanted)} lines stand" if same else "something similar stands"
    return f"`old` does not stand in the file; {said} around line {start + 1}:\n{_show(lines, start, len(wanted))}"


def _match(lines: Sequence[str], wanted: Sequence[str], form: Callable[[str], str]) -> int | None:
    """Where the wanted lines stand when both are looked at in this form; None where nowhere."""
    looked = [form(line) for line in lines]
    sought = [form(line) for line in wanted]
    if not any(sought):
        return None
    last = len(looked) - len(sought)
    return next((at for at in range(last + 1) if looked[at : at + len(sought)] == sought), None)


def _nearest(lines: Sequence[str], wanted: Sequence[str]) -> tuple[int, int] | None:
    """Where most of the wanted lines stand, and how many; else where a similar one does, and 0."""
    sought = [line.strip() for line in wanted]
    telling = [(offset, line) for offset, line in enumerate(sought) if len(line) > 3]
    counts: dict[int, int] = {}
    at: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        at.setdefault(line.strip(), []).append(number)
    for offset, line in telling:
        for number in at.get(line, [])[:PLACES_NAMED]:
            start = max(0, number - offset)
            counts[start] = counts.get(start, 0) + 1
    if counts:
        best = max(counts, key=lambda start: (counts[start], -start))
        return best, counts[best]
    for offset, line in telling[:3]:
        near = get_close_matches(line, list(at)[:LINES_COMPARED], n=1, cutoff=0.6)
        if near:
            return max(0, at[near[0]][0] - offset), 0
    return None


def _range(start: int, wanted: Sequence[str]) -> str:
    return f"line {start + 1}" if len(wanted) == 1 else f"lines {start + 1}–{start + len(wanted)}"


def _show(lines: Sequence[str], start: int, count: int = SHOWN_LINES) -> str:
    """Some lines with their numbers, and white space that can be seen where it matters."""
    shown = lines[start : start + min(max(count, 1), SHOWN_LINES)]
    return "\n".join(f"{start + offset + 1:>5}: {_visible(line)}" for offset, line in enumerate(shown))


def _visible(line: str) -> str:
    body = line.rstrip(" \t")
    indent = body[: len(body) - len(body.lstrip(" \t"))].replace("\t", "→")
    tail = line[len(body) :].replace("\t", "→").replace(" ", "·")
    return f"{indent}{body.lstrip(' ' + chr(9))}{tail}"
