"""What goes out on a stream that carries one frame after the other: answers first, then events, as there is room.

The other half of `connection.py` for transports that are no WebSocket: nothing is sent but by the one task that runs
this, and nothing is encoded before it can be sent.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Final, final

import trio
from websockets.frames import CloseCode

from hermes_ws.server.delivery import Delivery, Subscription
from hermes_ws.server.life import OVERLOADED, RESUME
from hermes_ws.server.limits import Limits
from hermes_ws.wire.frames import Frame
from hermes_ws.wire.negotiation import Negotiated

Send = Callable[[bytes], Awaitable[None]]
"""Sends all of it. Raises `trio.BrokenResourceError` when that failed."""

Encode = Callable[[Frame], bytes]


@final
class Output:
    """The frames that wait for one stream, and the subscriptions that give more of them."""

    def __init__(self, limits: Limits, negotiated: Negotiated, name: str) -> None:
        self._limits = limits
        self._name = name
        self._nursery: trio.Nursery | None = None
        self._bell = trio.Event()
        self._queued: list[Frame] = []
        self._goodbye: tuple[int, str] | None = None
        self.delivery: Final = Delivery(
            outbox=None, wake=self._ring, alarm=self._ring, start=self._start_reading, failed=self._lost
        )
        self.delivery.negotiated = negotiated

    @property
    def bytes(self) -> int:
        """Bytes that wait and come from no thread."""
        return sum(map(len, self._queued))

    @property
    def closing(self) -> bool:
        """Whether a goodbye is said or about to be."""
        return self._goodbye is not None

    def put(self, frame: Frame) -> None:
        """Queue a frame; closes when nothing is read for too long. No effect once closing."""
        if self._goodbye is not None:
            return
        if len(self._queued) >= self._limits.unread_frames:
            self.close(OVERLOADED, "too much is waiting to be read")
            return
        self._queued.append(frame)
        self._ring()

    def close(self, code: int, reason: str) -> None:
        """End after what is queued. The first reason counts."""
        if self._goodbye is None:
            self._goodbye = (code, reason)
            self._ring()

    async def run(
        self,
        nursery: trio.Nursery,
        send: Send,
        encode: Encode,
        *,
        beat_s: float = math.inf,
        beat: bytes = b"",
        follows: bool = False,
    ) -> tuple[int, str]:
        """Send until `close`; its code and reason. After `beat_s` seconds of silence `beat` is sent. One that `follows`
        threads, and is there for nothing else, ends with the last of them.

        Pages from the database are read in `nursery`. Raises `BrokenResourceError`.
        """
        self._nursery = nursery
        due = trio.current_time() + beat_s
        while True:
            self._bell = trio.Event()
            queued, self._queued = self._queued, []
            frames = (*queued, *(self.delivery.gather() if self._goodbye is None else ()))
            if frames:
                await send(b"".join([encode(each) for each in frames]))
                due = trio.current_time() + beat_s
                if follows and not self.delivery.addresses():
                    self.close(CloseCode.NORMAL_CLOSURE, "there is nothing left to follow")
            elif self._goodbye is not None:
                return self._goodbye
            elif self.delivery.ready:
                await trio.lowlevel.checkpoint()  # one that gave nothing in its turn, and has more
            else:
                with trio.move_on_at(min(due, self.delivery.due)):
                    await self._bell.wait()
            now = trio.current_time()
            self.delivery.tick(now)
            if now >= due:
                await send(beat)
                due = now + beat_s

    def end(self) -> None:
        """End the subscriptions."""
        self.delivery.end()

    def _ring(self) -> None:
        self._bell.set()

    def _start_reading(self, subscription: Subscription) -> None:
        assert self._nursery is not None, "subscriptions begin after the stream runs"
        self._nursery.start_soon(self.delivery.fill, subscription, name=f"{self._name} catching up")

    def _lost(self, why: str) -> None:
        self.close(RESUME, why)
