"""Writing to a stream that may be a terminal, a file or a pipe that somebody closed.

Append-only: what is printed stays, so that scroll-back, pipes and screen readers work. Colours are put on a terminal
only. After the reader of a pipe is gone, writing goes on into nothing: work that runs is not ended by that.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TextIO, final

from hermes_ws.cli.environment import Surroundings

USUAL_COLUMNS = 80
"""The width where none is known."""

FEWEST_COLUMNS = 20
"""Below this nothing can be laid out; lines are cut as if it were this wide."""


@final
class Style(Enum):
    """What a piece of text is, as the escape that shows it."""

    PLAIN = ""
    DIM = "2"
    STRONG = "1"
    WARNING = "33"
    ERROR = "31"


@final
@dataclass(slots=True)
class _Place:
    """Where the next text comes: at the beginning of a line, or not."""

    at_start: bool = True


@final
class Screen:
    """One stream. All text that is given to it must be harmless already.

    `beside` is another one; where both are the terminal, what is unfinished on one is ended before the other writes.
    """

    def __init__(self, stream: TextIO, surroundings: Surroundings, *, beside: Screen | None = None) -> None:
        self._stream = stream
        self._open = True
        self.interactive = stream.isatty()
        shared = beside is not None and beside.interactive and self.interactive
        self._place = beside._place if beside is not None and shared else _Place()
        self._coloured = self.interactive and not surroundings.plain
        self._fixed_columns = surroundings.columns

    @property
    def columns(self) -> int:
        """The width now; it is asked each time because windows change."""
        width = self._fixed_columns
        if width is None and self.interactive:
            with suppress(OSError):
                width = os.get_terminal_size(self._stream.fileno()).columns
        return max(width or USUAL_COLUMNS, FEWEST_COLUMNS)

    def write(self, text: str, style: Style = Style.PLAIN) -> None:
        """Go on writing where the last text ended."""
        if not text or not self._open:
            return
        shown = f"\x1b[{style.value}m{text}\x1b[0m" if self._coloured and style.value else text
        try:
            self._stream.write(shown)
            self._stream.flush()
        except (OSError, ValueError):
            self._give_up()  # a pipe whose reader went away, a terminal that was closed, a disk that is full
        self._place.at_start = text.endswith("\n")

    def line(self, text: str = "", style: Style = Style.PLAIN) -> None:
        """One line of its own; an unfinished one before it is ended first."""
        self.finish_line()
        self.write(text, style)
        self.write("\n")

    @property
    def at_start(self) -> bool:
        """Whether the next text begins a line."""
        return self._place.at_start

    def finish_line(self) -> None:
        """Be at the beginning of a line."""
        if not self._place.at_start:
            self.write("\n")

    def returned(self) -> None:
        """The person ended the line by typing; the cursor is at the beginning of the next one."""
        self._place.at_start = True

    def _give_up(self) -> None:
        # The interpreter flushes once more at exit, and would complain there; let it write into nothing.
        self._open = False
        with suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, self._stream.fileno())
            os.close(nothing)
