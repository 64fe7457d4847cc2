"""Where a client stands in the journal of a thread."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, final

from hermes_ws.contract.errors import InvalidParams

_TEXT: Final = re.compile(r"([0-9]{1,20}):([0-9]{1,20})", re.ASCII)

LARGEST: Final = 2**63 - 1
"""The largest number that SQLite stores as an integer; a larger one was never given out."""


@final
@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """`generation:sequence`. Ordered; `g:0` is the beginning of generation g, and g starts at 1.

    Cursors of one thread compare as they follow each other; those of different threads have nothing to do with each
    other, which is for the caller to know.
    """

    generation: int
    seq: int

    @classmethod
    def parse(cls, text: str, *, path: str = "after") -> Cursor:
        """Read a cursor as a client sends it. Raises `InvalidParams` with `path` for anything else."""
        matched = _TEXT.fullmatch(text)
        if matched is None:
            raise _refused(path)
        generation, seq = int(matched[1]), int(matched[2])
        if not 1 <= generation <= LARGEST or seq > LARGEST:
            raise _refused(path)
        return cls(generation, seq)

    def __str__(self) -> str:
        return f"{self.generation}:{self.seq}"


def _refused(path: str) -> InvalidParams:
    return InvalidParams(
        "This is no cursor.",
        hint='A cursor is "generation:sequence", as an event or a snapshot gave it.',
        path=path,
    )
