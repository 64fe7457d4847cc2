"""What a client sends, cut into frames and put together into texts, within bounds (RFC 6455, sections 5.2 and 5.4).

Nearly every frame that arrives is a whole text: final, masked, not compressed. To unmask it takes a tenth of what the
protocol takes for it, so it is done here; every other frame is given to `ServerProtocol`, one at a time and whole, and
whatever breaks a rule is left to it as soon as that can be seen. It bounds the bytes of a message; it neither joins
fragments nor counts them, and it accepts endless empty ones.
"""

from __future__ import annotations

import select
from typing import Final, final

from websockets.frames import CloseCode, Frame, Opcode


def has_come(fd: int) -> bool:
    """Whether a socket has something to read. A loop that was held up has not read what came meanwhile, and must not
    take its client for dead (FLOW-03).
    """
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


@final
class Violation(Exception):
    """The client broke a rule; the connection is closed with `code` and `reason`."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code: Final = code
        self.reason: Final = reason


REASON_BYTES: Final = 123
"""What a close frame has room for beside its code (RFC 6455, section 5.5)."""

WHOLE_TEXT: Final = 0x81
"""First byte of a final text frame without extension."""

_OPCODE: Final = 0x0F

MASKED: Final = 0x80
"""In the second byte: whether the payload is masked, as all that a client sends is."""

_OPCODES: Final = frozenset(Opcode)
_MASK: Final = 4
_BRIEF: Final = 126
_LONG: Final = 127


def extent(data: bytes | bytearray, at: int, most: int) -> int | None:
    """How many bytes the frame that begins at `at` has; None when its head does not tell yet.

    All that there is, for a frame that the protocol refuses by its head alone (not masked, of no known kind, or of more
    than `most` bytes), so that it is refused at once. The first two bytes of the head must be there.
    """
    size = data[at + 1] & ~MASKED
    if not data[at + 1] & MASKED or data[at] & _OPCODE not in _OPCODES:
        return len(data) - at
    start = at + 2
    if size >= _BRIEF:
        start += 8 if size == _LONG else 2
        if len(data) < start:
            return None
        size = int.from_bytes(data[at + 2 : start], "big")
    return start + _MASK - at + size if size <= most else len(data) - at


@final
class Assembly:
    """The message that is arriving, if one is."""

    __slots__ = ("_count", "_most", "_parts")

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._count = 0

    @property
    def begun(self) -> bool:
        """Whether a part of a message is here and the rest is to come."""
        return self._count > 0

    def feed(self, frame: Frame) -> bytes | None:
        """Take a frame; the whole text when it was the last of one. Raises `Violation`. Control frames give None."""
        opcode = frame.opcode
        if opcode is Opcode.TEXT:
            if frame.fin:
                return bytes(frame.data)
        elif opcode is Opcode.BINARY:
            raise Violation(CloseCode.UNSUPPORTED_DATA, "only text messages are understood")
        elif opcode is not Opcode.CONT:
            return None
        self._count += 1
        if self._count > self._most:
            raise Violation(CloseCode.MESSAGE_TOO_BIG, "too many fragments")
        if frame.data:
            self._parts.append(bytes(frame.data))
        if not frame.fin:
            return None
        whole = b"".join(self._parts)
        self._parts = []
        self._count = 0
        return whole
