"""Keeping what a child says within bounds, without stopping it from talking."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol, final


class Sink(Protocol):
    """Where the bytes of a pipe go."""

    @property
    def over(self) -> bool:
        """Whether more is only thrown away, so that the reader may take its time."""
        ...

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""
        ...

    def mute(self) -> None:
        """Tell no listener any more; what comes is still kept."""
        ...


@final
class HeadAndTail:
    """Keeps the first and the last half of a limit: what a command began with and how it ended."""

    def __init__(self, limit: int, on_output: Callable[[bytes], None] | None = None) -> None:
        self._head_limit = limit - limit // 2
        self._tail_limit = limit // 2
        self._on_output = on_output
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._dropped = 0

    @property
    def over(self) -> bool:
        """Whether the middle is being left out by now."""
        return self._dropped > 0

    def feed(self, piece: bytes) -> None:
        """Keep what belongs to the head or the tail; tell the listener all of it."""
        if self._on_output is not None:
            self._on_output(piece)
        self._keep(piece)

    def mute(self) -> None:
        """Tell the listener nothing more."""
        self._on_output = None

    def note(self, sentence: str) -> None:
        """Add a line of ours at the end."""
        self._keep(f"\n[{sentence}]\n".encode())

    def _keep(self, piece: bytes) -> None:
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        if piece:
            self._tail.append(piece)
            self._tail_size += len(piece)
        while self._tail_size > self._tail_limit:
            oldest = self._tail.popleft()
            excess = min(self._tail_size - self._tail_limit, len(oldest))
            if excess < len(oldest):
                self._tail.appendleft(oldest[excess:])
            self._tail_size -= excess
            self._dropped += excess

    def result(self) -> bytes:
        """Everything, or head, a line that says how many bytes are missing, and tail."""
        missing = f"\n[... {self._dropped} bytes left out ...]\n".encode() if self._dropped else b""
        return bytes(self._head) + missing + b"".join(self._tail)


@final
class Bounded:
    """Keeps at most `limit` bytes, for answers whose size is known; more means that the sender is not what it was."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self._over = False

    @property
    def over(self) -> bool:
        """Whether more came than may."""
        return self._over

    def feed(self, piece: bytes) -> None:
        """Keep what fits."""
        room = self._limit - len(self._data)
        self._over = self._over or len(piece) > room
        self._data += piece[:room]

    def mute(self) -> None:
        """Nobody listens anyway."""

    def result(self) -> bytes:
        """What was kept."""
        return bytes(self._data)


@final
class Discard:
    """Keeps nothing: for what a command says while it is being ended and nobody listens any more."""

    over = True

    def feed(self, piece: bytes) -> None:
        """Forget it."""

    def mute(self) -> None:
        """Nobody listens anyway."""
