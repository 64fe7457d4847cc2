"""What callers have in common whose answers leave by a way of their own: streams of events, and pipes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import trio

from hermes_ws.server.entry import Principal
from hermes_ws.server.output import Output
from hermes_ws.server.ports import ReadPage
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import Frame
from hermes_ws.wire.negotiation import Negotiated

if TYPE_CHECKING:
    from hermes_ws.journal.tail import Address, LiveMarks, ThreadTail


class Apart:
    """A caller whose frames an `Output` writes; who derives from it reads, and sees to the life of both."""

    def __init__(self, id: str, principal: Principal, profile: str | None, output: Output) -> None:
        self.id: Final = id
        self.principal: Final = principal
        self.profile: Final = profile
        self.began: Final = time.time()
        self._output = output
        self._nursery: trio.Nursery | None = None
        self._ended = trio.Event()

    @property
    def negotiated(self) -> Negotiated:
        """What is in force."""
        return self._output.delivery.negotiated

    @negotiated.setter
    def negotiated(self, value: Negotiated) -> None:
        self._output.delivery.negotiated = value

    def may_address(self, profile: str) -> bool:
        """Whether a profile can be reached from here."""
        return self.profile in (None, profile) and self.principal.may_address(profile)

    def notify(self, frame: Frame) -> None:
        """Send a notification, or a question."""
        if frame.type not in self.negotiated.opt_out:
            self._output.put(frame)

    def subscribe(self, tail: ThreadTail, start: Cursor, marks: LiveMarks, read: ReadPage) -> None:
        """Send what follows `start` in a thread. An earlier subscription to it is replaced."""
        if not self._ended.is_set():
            self._output.delivery.subscribe(tail, start, marks, read)

    def unsubscribe(self, address: Address) -> bool:
        """End a subscription; false when there was none."""
        return self._output.delivery.unsubscribe(address)

    def subscriptions(self) -> tuple[Address, ...]:
        """The threads that are followed."""
        return self._output.delivery.addresses()

    def close(self, code: int, reason: str = "") -> None:
        """Send what is queued, then why it is closed, and end."""
        self._output.close(code, reason)

    def cut(self, why: str = "the server ends") -> None:
        """End now."""
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()

    async def wait_ended(self) -> None:
        """Return when it has ended."""
        await self._ended.wait()
