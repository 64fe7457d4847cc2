"""A connection, as a handler may use it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, final, runtime_checkable

from hermes_ws.contract.errors import AlreadyNegotiated
from hermes_ws.contract.methods.connection import CapabilitiesParams, CapabilitiesResult
from hermes_ws.journal.address import Address
from hermes_ws.journal.tail import LiveMarks, ThreadTail
from hermes_ws.server.ports import Caller, Page
from hermes_ws.session.thread import Thread
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.negotiation import negotiate


@runtime_checkable
class Listening(Protocol):
    """A caller that can say to what it listens."""

    def subscriptions(self) -> tuple[Address, ...]: ...


@final
@dataclass(frozen=True, slots=True)
class Attached:
    """Negotiating and listening, and nothing else of a connection."""

    connection: Caller
    questions: Callable[[], None]

    @property
    def id(self) -> str:
        return self.connection.id

    def may_address(self, profile: str) -> bool:
        """Whether the principal, on this connection, sees the profile of this name at all."""
        return self.connection.may_address(profile)

    def negotiate(self, params: CapabilitiesParams) -> CapabilitiesResult:
        """Put the capabilities into force, once. Raises `AlreadyNegotiated`, `ProtocolUnsupported`."""
        if self.connection.negotiated.spoken:
            raise AlreadyNegotiated("This connection has said what it can do.")
        self.connection.negotiated = negotiate(params)
        return self.connection.negotiated.answer()

    def show_questions(self) -> None:
        """Have the questions that wait sent to this connection."""
        self.questions()

    def listen(self, thread: Thread, start: Cursor, marks: LiveMarks) -> None:
        """Send what follows `start` in the thread. The thread is held for as long as it is listened to."""

        async def page(after: Cursor, budget: int) -> Page:
            frames, cursor = await thread.page(after, budget)
            return Page(frames, cursor)

        self.connection.subscribe(thread.tail, start, marks, page)

    def look(self, tail: ThreadTail) -> None:
        """Send what a terminal shows or a process writes. There are no committed events, so nothing is ever read from a
        database."""

        async def page(after: Cursor, budget: int) -> Page:
            return Page((), after)

        self.connection.subscribe(tail, Cursor(tail.generation, tail.head), LiveMarks(), page)

    def look_away(self, tail: ThreadTail) -> None:
        """Send no more of that."""
        self.connection.unsubscribe(tail.address)

    def attached_to(self, session_id: str) -> bool:
        """Whether this connection listens to a thread of the session now."""
        if not isinstance(self.connection, Listening):
            return False
        return any(address.session_id == session_id for address in self.connection.subscriptions())

    def stop_listening(self, thread: Thread) -> bool:
        """End the subscription; false when there was none."""
        return self.connection.unsubscribe(thread.tail.address)
