"""The bounds of the transport, in one value, so that a test can make any of them small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from hermes_ws.contract.errors import LimitReached
from hermes_ws.wire.frames import Frame, error_frame

FRAME_BYTES: Final = 1024 * 1024
"""Largest message in and out: the default limit of client libraries."""

SEND_DEADLINE: Final = 30.0
"""Seconds a socket may take nothing before it is closed. Longer than a laptop's short sleep, shorter than patience."""

PING_EVERY: Final = 20.0
"""Seconds between pings; below the idle time-outs of proxies (60) and of home routers."""

CLOSE_DEADLINE: Final = 10.0
"""Seconds the other side has to answer a close frame and to hang up."""

HANDSHAKE_DEADLINE: Final = 10.0
"""Seconds from the first byte of a request to its end, and from accepting a connection to its first byte."""

HEAD_BYTES: Final = 16 * 1024
"""Largest request head; twice what browsers send with everything they have."""

KEEP_ALIVE: Final = 30.0
"""Seconds an HTTP connection may rest between two requests."""

BODY_BYTES: Final = 64 * 1024
"""Largest request body that is read to its end in order to answer; nothing here takes one."""

FRAGMENTS: Final = 1000
"""Fragments of one message. A frame of the largest size in pieces of 1 KiB fits."""

UNREAD_BYTES: Final = 8 * 1024 * 1024
"""Bytes of answers that may wait on one socket before further requests are refused: eight of the largest."""

UNREAD_FRAMES: Final = 4096
"""Answers that may wait on one socket before it is closed: a client that keeps asking and never reads."""

VISITORS: Final = 512
"""Connections that have not shown a credential yet, together; a flood pushes out its own oldest ones."""


CONNECTIONS: Final = 8192
"""Connections at once, where nobody says how many descriptors there are."""


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, times in seconds."""

    frame_bytes: int = FRAME_BYTES
    send_deadline: float = SEND_DEADLINE
    ping_every: float = PING_EVERY
    close_deadline: float = CLOSE_DEADLINE
    handshake_deadline: float = HANDSHAKE_DEADLINE
    head_bytes: int = HEAD_BYTES
    keep_alive: float = KEEP_ALIVE
    body_bytes: int = BODY_BYTES
    fragments: int = FRAGMENTS
    unread_bytes: int = UNREAD_BYTES
    unread_frames: int = UNREAD_FRAMES
    visitors: int = VISITORS
    connections: int = CONNECTIONS


def too_large(frame: Frame, most: int) -> Frame:
    """What is sent in the place of an answer that is larger than a frame may be."""
    error = LimitReached(f"The answer has {len(frame)} bytes; a frame carries {most}.", hint="Ask for less at a time.")
    return error_frame(frame.id, error.to_wire())
