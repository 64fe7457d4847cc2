"""What comes of what a turn does to the machine: how a command ended, what a file holds, what a tool gave."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, final

from hermes_ws.contract.content import ImageBlock


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a tool gave, of a kind that can be shown."""

    media_type: str
    data: bytes = field(repr=False)

    def block(self) -> ImageBlock:
        """It, as messages and events name it; the content is kept as the blob of this hash."""
        return ImageBlock(blob=hashlib.sha256(self.data).hexdigest(), media_type=self.media_type)


@final
@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool gave: `output` as the model reads it. `truncated` when something was left out of it.

    `whole` is all of it, redacted, with the colours of a terminal, where `output` is less; it is kept as a blob, and so
    are the `pictures`, which the person sees. `diff` is for the person as well: what is different in a file that was
    there before, redacted, as a unified difference; empty where that cannot be said, None where there was none.
    """

    output: str
    is_error: bool = False
    truncated: bool = False
    duration_ms: int = 0
    whole: str | None = None
    pictures: tuple[Picture, ...] = ()
    diff: str | None = None


@final
@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended. `output` is standard output and error in order, decoded and redacted, head and tail kept.

    `explanation` says what a refusal by the confinement means and which setting grants more.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    truncated: bool
    output: str
    duration_ms: int
    explanation: str | None = None


@final
@dataclass(frozen=True, slots=True)
class ReadFile:
    """The bytes asked for, decoded and redacted; `text` is None when they are no text. `size` is the whole file's."""

    text: str | None
    size: int


@final
@dataclass(frozen=True, slots=True)
class Written:
    """What a write left behind. `size` counts bytes."""

    size: int
    created: bool


@final
@dataclass(frozen=True, slots=True)
class ListedEntry:
    """A file or directory, by its path below what was listed. `size` counts bytes."""

    name: str
    kind: Literal["file", "directory", "link", "other"]
    size: int


@final
@dataclass(frozen=True, slots=True)
class Listing:
    """The entries below a directory; `more` when there were more than was asked for."""

    entries: Sequence[ListedEntry]
    more: bool


@final
@dataclass(frozen=True, slots=True)
class FoundLine:
    """A line in which something was found, redacted. Lines are counted from 1."""

    name: str
    line: int
    text: str


@final
@dataclass(frozen=True, slots=True)
class FoundLines:
    """What a search found; `more` when there was more than was asked for."""

    matches: Sequence[FoundLine]
    more: bool


@final
@dataclass(frozen=True, slots=True)
class Background:
    """A command that goes on in the background. `running` is false once it has ended, in one way or another."""

    process_id: str
    command: str
    running: bool
    exit_code: int | None = None
    signal: int | None = None
