"""Text that is still growing, and how far each subscriber has read it.

A live text is never stored. It is kept as the pieces that came, so that growing costs the same however long it is, and
given out as the piece after the offset that a subscriber has. Offsets count code points and never go back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, final

from hermes_ws.journal.address import Address
from hermes_ws.wire.frames import Frame, event_frame

LiveKind = Literal[
    "message.delta", "reasoning.delta", "tool.progress", "terminal.output", "process.output", "subagent.progress"
]

LIVE_PIECE = 16 * 1024
"""Code points in one live event: at worst a tenth of what a frame may carry, so a long text goes in turns."""

PROGRESS_KEPT = 64 * 1024
"""Code points of a running tool's output that a late subscriber can still get; the whole comes with `tool.complete`."""

_WHOLE: Final = frozenset(("message.delta", "reasoning.delta"))
"""Kinds of which everything is kept until they end."""

PIECES_CACHED = 16
"""Encoded pieces kept until the text grows. Subscribers that are up to date share one; the others are few offsets."""

MERGE_PIECES = 512
"""Loose pieces after which they are joined into one: a list of single characters costs 60 times its text."""

_ID_FIELD: Final[Mapping[str, str]] = MappingProxyType(
    {
        "message.delta": "message_id",
        "reasoning.delta": "message_id",
        "tool.progress": "call_id",
        "terminal.output": "terminal_id",
        "process.output": "process_id",
        "subagent.progress": "subagent_id",
    }
)


@final
class LiveText:
    """One growing text. `begin` is the first offset that is kept, `end` the offset after the last code point."""

    __slots__ = (
        "_admission_id",
        "_cache",
        "_execution_generation",
        "_kept",
        "_loose",
        "_pieces",
        "_starts",
        "began_at",
        "begin",
        "end",
        "id",
        "kind",
        "ts",
    )

    def __init__(
        self,
        kind: LiveKind,
        id: str,
        *,
        execution_generation: int | None,
        admission_id: str | None,
        began_at: int,
        ts: float,
    ) -> None:
        self.kind: Final = kind
        self.id: Final = id
        self.began_at: Final = began_at
        """The thread's head when the text began: who stands before it has not seen the event that announced it."""
        self.ts = ts
        self.begin = 0
        self.end = 0
        self._execution_generation = execution_generation
        self._admission_id = admission_id
        self._kept: int | None = None if kind in _WHOLE else PROGRESS_KEPT
        self._pieces: list[str] = []
        self._starts: list[int] = []
        self._loose = 0
        """Pieces at the end of the list that were not joined with others yet."""
        self._cache: dict[int, tuple[int, Frame]] = {}

    def append(self, text: str, ts: float) -> None:
        """Grow by `text`, which is not empty."""
        self._pieces.append(text)
        self._starts.append(self.end)
        self.end += len(text)
        self.ts = ts
        if self._cache:
            self._cache.clear()
        self._loose += 1
        if self._kept is not None and self.end - self.begin > 2 * self._kept:
            self._forget(self._kept)
        elif self._loose >= MERGE_PIECES:
            self._merge(self._loose)

    def text(self) -> str:
        """All that is kept; for a message that is all of it. What a tool printed before is left out."""
        if self._kept is not None:
            self._forget(self._kept)
        elif len(self._pieces) > 1:
            self._merge(len(self._pieces))
        return self._pieces[0] if self._pieces else ""

    def piece(self, after: int, address: Address) -> tuple[int, Frame]:
        """The next piece for a subscriber that has `after` code points: the offset it has then, and the frame.

        `after` is below `end`. The same frame goes to every subscriber at the same offset until the text grows.
        """
        cached = self._cache.get(after)
        if cached is not None:
            return cached
        first = self.begin if self._kept is None else max(self.begin, self.end - self._kept)
        start = max(after, first)
        text = self._slice(start, min(start + LIVE_PIECE, self.end))
        frame = event_frame(
            {
                "type": self.kind,
                "profile": address.profile,
                "session_id": address.session_id or None,
                "thread_id": address.thread_id,
                "execution_generation": self._execution_generation,
                "admission_id": self._admission_id,
                "ts": self.ts,
                "payload": {_ID_FIELD[self.kind]: self.id, "offset": start, "text": text},
            }
        )
        made = (start + len(text), frame)
        if len(self._cache) >= PIECES_CACHED:
            self._cache.clear()
        self._cache[after] = made
        return made

    def _slice(self, start: int, end: int) -> str:
        index = bisect_right(self._starts, start) - 1
        offset = start - self._starts[index]
        if len(self._pieces[index]) - offset >= end - start:
            return self._pieces[index][offset : offset + end - start]
        parts = [self._pieces[index][offset:]]
        reached = self._starts[index] + len(self._pieces[index])
        while reached < end:
            index += 1
            parts.append(self._pieces[index][: end - reached])
            reached += len(parts[-1])
        return "".join(parts)

    def _merge(self, count: int) -> None:
        """Join the last `count` pieces into one."""
        self._pieces[-count:] = ["".join(self._pieces[-count:])]
        del self._starts[len(self._pieces) :]
        self._loose = 0

    def _forget(self, kept: int) -> None:
        """Keep the last `kept` code points only; offsets go on."""
        first = max(self.begin, self.end - kept)
        if first == self.begin and len(self._pieces) <= 1:
            return
        self._pieces, self._starts, self._loose = [self._slice(first, self.end)], [first], 0
        self.begin = first


@final
class LiveMarks:
    """How far one subscriber has read what is live. It belongs to the subscription and is moved by `ThreadTail.take`.

    A subscriber that was given the text of the message in progress with its snapshot starts from there: `given`.
    """

    __slots__ = ("offsets", "passed")

    def __init__(self) -> None:
        self.offsets: dict[tuple[LiveKind, str], int] = {}
        self.passed = 0
        """How many of the events that were told in passing it has had, or was too late for."""

    @classmethod
    def given(cls, message_id: str, text: str) -> LiveMarks:
        """The marks of a subscriber that has `text` of the message already."""
        marks = cls()
        marks.offsets["message.delta", message_id] = len(text)
        return marks
