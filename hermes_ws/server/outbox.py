"""What waits for one socket: whole frames, in order, and at most one pong.

Writing is a plain non-blocking write, so that whoever has something to say can say it at once; nothing here waits.
Whatever the socket does not take stays, and the writer task goes on with it when there is room. A frame is never given
up half-way: either all of it is written in the end, or the socket is closed.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Sequence
from typing import Final, final

import trio

from hermes_ws.wire.frames import Frame

SEND_BYTES: Final = 256 * 1024
"""What is joined into one write. More than a socket takes at once, so that joining more would only copy."""

_ROOM_FOR_FAREWELL: Final = 256 * 1024
"""What a socket's send buffer is widened by to hold the rest of a frame and the close frame (see `farewell`)."""


@final
class Outbox:
    """The frames of one socket. `bytes` and `frames` count what waits and has not been handed to the socket at all."""

    __slots__ = ("_chunk", "_closed", "_fd", "_parts", "_pong", "_sent", "_socket", "bytes", "idle", "queue")

    def __init__(self, socket: trio.socket.SocketType) -> None:
        self._socket = socket
        self._fd = socket.fileno()
        self.queue: Final[list[bytes]] = []  # a deque is 600 bytes for each idle connection
        """The frames that wait, to be looked at only."""
        self._pong: bytes | None = None
        self._chunk = b""
        self._parts: Sequence[bytes] = ()
        self._sent = 0
        self._closed = False
        self.bytes = 0
        self.idle = True
        """Whether everything has been handed to the socket."""

    @property
    def frames(self) -> int:
        """How many frames wait."""
        return len(self.queue)

    def put(self, frame: bytes) -> None:
        """Queue a whole frame."""
        if self._closed:
            return
        self.queue.append(frame)
        self.bytes += len(frame)
        self.idle = False

    def put_pong(self, frame: bytes) -> None:
        """Answer a ping. Only the latest one needs an answer (RFC 6455, section 5.5.3): an unsent pong is replaced."""
        if not self._closed:
            self._pong = frame
            self.idle = False

    def put_last(self, frame: bytes) -> None:
        """Queue the close frame. Whatever is put after it is dropped."""
        self.put(frame)
        self._closed = True

    def flush(self) -> bool:
        """Write what the socket takes now. True when nothing is left. Raises OSError when the socket is broken."""
        if self._chunk or self._load():
            self.idle = self._drain()
        return self.idle

    def write(self, frames: Sequence[bytes]) -> bool:
        """Write these frames now, when nothing else waits. True when the socket took all; else the rest waits first."""
        assert not self._chunk, "something else is half-written; flush first"
        if not self._closed:
            self._parts = frames
            self._chunk = frames[0] if len(frames) == 1 else b"".join(frames)
        return self.flush()

    def write_at_once(self, frames: Sequence[Frame]) -> bool:
        """The same for an `idle` outbox, as short as it can be: this is what an event costs per subscriber.

        A broken socket raises nothing here: it is found at the next `flush`, by the connection that it belongs to.
        """
        data = frames[0].ws if len(frames) == 1 else b"".join([each.ws for each in frames])
        try:
            count = os.write(self._fd, data)
        except OSError:
            count = 0
        if count == len(data):
            return True
        self._parts = [each.ws for each in frames]
        self._chunk = data
        self._sent = count
        self.idle = False
        return False

    def _drain(self) -> bool:
        while True:
            chunk = self._chunk
            rest = memoryview(chunk)[self._sent :] if self._sent else chunk
            try:
                self._sent += os.write(self._fd, rest)
            except (BlockingIOError, InterruptedError):
                return False
            if self._sent == len(chunk):
                self._chunk = b""
                self._parts = ()
                self._sent = 0
                if not self._load():
                    return True

    def _load(self) -> bool:
        """Make the next write of what is queued. False when nothing is."""
        queue = self.queue
        if not queue and self._pong is None:
            return False
        count = size = 0
        for frame in queue:
            if count and size + len(frame) > SEND_BYTES:
                break
            count += 1
            size += len(frame)
        parts = queue[:count]
        del queue[:count]
        self.bytes -= size
        if self._pong is not None:
            parts.insert(0, self._pong)
            self._pong = None
        self._parts = parts
        self._chunk = parts[0] if len(parts) == 1 else b"".join(parts)
        return True

    def farewell(self, close: bytes) -> bool:
        """Give up on a socket that takes nothing: finish the frame that is half-written, say why, drop the rest.

        The kernel is asked for room, so that the client finds out when it looks again. False when there is none; the
        socket is then reset. Nothing is to be written after this.
        """
        last = b""
        offset = 0
        if self._sent:
            for part in self._parts:
                offset += len(part)
                if offset >= self._sent:
                    last = self._chunk[self._sent : offset]
                    break
        self.queue.clear()
        self._parts = ()
        self._chunk = b""
        self._pong = None
        self._closed = True
        self.bytes = 0
        self.idle = True
        data = last + close
        self._widen(len(data))
        try:
            return os.write(self._fd, data) == len(data)
        except OSError:
            return False

    def end(self) -> None:
        """The socket is about to be closed: its descriptor may be another's from then on."""
        self._fd = -1
        self._closed = True

    def _widen(self, size: int) -> None:
        with contextlib.suppress(OSError):
            now = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, now + size + _ROOM_FOR_FAREWELL)
        with contextlib.suppress(OSError, AttributeError):
            # trio sets this mark low; above it the kernel takes nothing although its buffer has room.
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 2**31 - 1)
