"""Putting text together that comes in pieces, over several connections, and then once more as a whole.

A piece starts where this reader's text ends; `offset` is the check. After a resume the text so far comes in the
snapshot, and the committed message has all of it. Whoever prints and cannot take back needs only what is new.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Ending:
    """What is left to print of a finished text. `anew`: what was printed before is not its beginning."""

    rest: str
    anew: bool


@final
class LiveTexts:
    """The texts in progress of one thread, by id."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def text(self, id: str) -> str:
        """What came so far."""
        return self._texts.get(id, "")

    def grow(self, id: str, offset: int, piece: str) -> str:
        """Take a piece; gives the part that is new. A piece beyond a gap gives nothing: the whole comes in the end."""
        had = self._texts.setdefault(id, "")
        if offset > len(had):
            return ""
        new = piece[len(had) - offset :]
        self._texts[id] = had + new
        return new

    def end(self, id: str, whole: str) -> Ending:
        """The text is finished; gives what was not seen of it."""
        had = self._texts.pop(id, "")
        if whole.startswith(had):
            return Ending(whole[len(had) :], anew=False)
        return Ending(whole, anew=True)

    def drop(self) -> None:
        """Forget everything."""
        self._texts.clear()
