"""Replacing secrets in text by `«secret:NAME»`, in one piece or as it streams.

Both give the same result however a text is cut. Where two secrets overlap, all of both is covered by one mark, named
after the one that begins first. Nothing here reads or writes anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import final

from hermes_ws.scope.plain import plainly_no_secret

SHORTEST = 8
"""Characters from which a value is replaced; shorter ones occur by chance in any text."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class Patterns:
    """The texts to be replaced, each with the name that is shown instead. Made once per load, never changed."""

    texts: tuple[tuple[str, str], ...]
    firsts: re.Pattern[str] | None
    by_first: Mapping[str, tuple[str, ...]]
    longest: int

    @classmethod
    def of(cls, values: Mapping[str, str], *, plain: frozenset[str]) -> Patterns:
        """What must not be seen of `values`: all but short values, names in `plain` and what is plainly no secret."""
        names: dict[str, str] = {}
        for name, value in sorted(values.items()):
            if name not in plain and len(value) >= SHORTEST and not plainly_no_secret(value):
                for form in _forms(value):
                    names.setdefault(form, name)
        by_first: dict[str, tuple[str, ...]] = {}
        for text in names:
            by_first[text[0]] = (*by_first.get(text[0], ()), text)
        firsts = re.compile("[" + "".join(map(re.escape, by_first)) + "]") if by_first else None
        return cls(tuple(names.items()), firsts, by_first, max(map(len, names), default=0))

    def __repr__(self) -> str:
        return f"Patterns({len(self.texts)})"

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """Where secrets stand in `text`, overlapping ones merged, in order."""
        found: list[tuple[int, int, str]] = []
        for secret, name in self.texts:
            at = text.find(secret)
            while at >= 0:
                found.append((at, at + len(secret), name))
                at = text.find(secret, at + 1)
        if len(found) < 2:
            return found
        found.sort()
        merged = [found[0]]
        for start, end, name in found[1:]:
            last_start, last_end, last_name = merged[-1]
            if start < last_end:
                merged[-1] = (last_start, max(end, last_end), last_name)
            else:
                merged.append((start, end, name))
        return merged

    def unfinished(self, text: str) -> int:
        """Where the last part of `text` begins that may be the beginning of a secret; its length when there is none."""
        if self.firsts is None:
            return len(text)
        for candidate in self.firsts.finditer(text, max(0, len(text) - self.longest + 1)):
            tail = text[candidate.start() :]
            for secret in self.by_first[tail[0]]:
                if len(tail) < len(secret) and secret.startswith(tail):
                    return candidate.start()
        return len(text)

    def redact(self, text: str) -> str:
        """`text` with every secret replaced."""
        spans = self.spans(text)
        return _covered(text, spans, 0, len(text)) if spans else text


@final
@dataclass(slots=True)
class Redactor:
    """Redacts a text that comes in pieces. Owned by the one task that feeds it.

    What may be the beginning of a secret is held back, at most one character less than the longest secret; `flush`
    gives it out when the text has ended.
    """

    patterns: Patterns
    _held: str = field(default="", repr=False)
    _hidden: int = 0
    """How many characters at the start of what is held are covered by a mark that was given out already."""

    def feed(self, text: str) -> str:
        """The part of what came so far that can be told, without what was told before."""
        return self._advance(self._held + text, final=False)

    def flush(self) -> str:
        """What was held back, when nothing more comes. The redactor can be used for another text afterwards."""
        return self._advance(self._held, final=True)

    def _advance(self, text: str, *, final: bool) -> str:
        held_from = len(text) if final else self.patterns.unfinished(text)
        spans = self.patterns.spans(text)
        told_until = hidden_until = held_from
        for start, end, _ in spans:
            # A secret is complete, and its end may be the beginning of another: say the one, remember the other.
            if start < held_from < end:
                told_until = hidden_until = end
        told = _covered(text, spans, self._hidden, told_until)
        self._held = text[held_from:]
        self._hidden = max(hidden_until, min(self._hidden, len(text))) - held_from if self._held else 0
        return told


def _covered(text: str, spans: Iterable[tuple[int, int, str]], hidden: int, until: int) -> str:
    """`text[hidden:until]` with the spans replaced; a span that begins before `hidden` has its mark already."""
    parts: list[str] = []
    at = hidden
    for start, end, name in spans:
        if start >= until:
            break
        if start >= at:
            parts.append(text[at:start])
            parts.append(f"«secret:{name}»")
        at = max(at, end)
    parts.append(text[at:until])
    return "".join(parts)


def _forms(value: str) -> tuple[str, ...]:
    """A value as it stands, as a terminal prints its line ends, and as it looks inside of JSON."""
    escaped = tuple(json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
    return tuple(dict.fromkeys((value, value.replace("\n", "\r\n"), *escaped)))
