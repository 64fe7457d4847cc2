"""What a client sends, put together: fragments into texts, within bounds (RFC 6455, section 5.4).

`ServerProtocol` bounds the bytes of a message; it neither joins fragments nor counts them, and it accepts endless empty
ones.
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


@final
class Assembly:
    """The message that is arriving, if one is."""

    __slots__ = ("_count", "_most", "_parts")

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._count = 0

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
