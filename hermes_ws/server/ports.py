"""What the transport is given by the rest of the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, final, runtime_checkable

from hermes_ws.server.entry import Principal
from hermes_ws.server.static_files import StaticFile
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import Frame, RequestId
from hermes_ws.wire.negotiation import Negotiated
from hermes_ws.wire.peer import Request, Response

if TYPE_CHECKING:
    from hermes_ws.contract.methods.runtime import Transport
    from hermes_ws.journal.tail import Address, LiveMarks, ThreadTail


class Caller(Protocol):
    """Whoever asks, by whichever transport: a WebSocket, a pair of pipes, an event stream, or one HTTP request."""

    @property
    def id(self) -> str: ...
    @property
    def principal(self) -> Principal: ...
    @property
    def profile(self) -> str | None:
        """The profile that its path binds it to, if it does."""
        ...

    @property
    def lasting(self) -> bool:
        """Whether there is a connection that stays; one HTTP request has none that could be changed."""
        ...

    @property
    def askable(self) -> bool:
        """Whether it counts among those who could be asked a question. One that has only just come does not: nobody
        knows yet what it can show, and a question that it alone could answer is not given up for that."""
        ...

    @property
    def negotiated(self) -> Negotiated: ...
    @negotiated.setter
    def negotiated(self, value: Negotiated) -> None: ...

    def may_address(self, profile: str) -> bool:
        """Whether a profile can be reached from here: the principal may, and the path binds to no other."""
        ...

    def reply(self, frame: Frame) -> None:
        """Take the answer to a request."""
        ...

    def notify(self, frame: Frame) -> None:
        """Take something that is no answer: a notification, or a question."""
        ...

    def subscribe(self, tail: ThreadTail, start: Cursor, marks: LiveMarks, read: ReadPage) -> None:
        """Have what follows `start` in a thread sent. An earlier subscription to the thread is replaced."""
        ...

    def unsubscribe(self, address: Address) -> bool:
        """End a subscription; false when there was none."""
        ...

    def close(self, code: int, reason: str = "") -> None:
        """Say goodbye. `code` is a close code of the contract, whatever carries it."""
        ...


@runtime_checkable
class Attending(Protocol):
    """What there is to tell of a caller that stays."""

    @property
    def principal(self) -> Principal: ...
    @property
    def profile(self) -> str | None: ...
    @property
    def negotiated(self) -> Negotiated: ...
    @property
    def transport(self) -> Transport: ...
    @property
    def began(self) -> float: ...
    def subscriptions(self) -> tuple[Address, ...]: ...


class Attendee(Caller, Protocol):
    """A caller that stays until it goes, or is told to."""

    def cut(self, why: str = "the server ends") -> None:
        """End now, without a goodbye."""
        ...

    async def wait_ended(self) -> None:
        """Return when it has ended."""
        ...


Welcome = Callable[[Caller], Frame]
"""Makes `gateway.ready`, the first frame of every connection."""


class Dispatcher(Protocol):
    """Who takes what a connection reads. Called by the reader, in order of arrival; nothing here may wait or raise."""

    def accept(self, connection: Caller, request: Request, size: int) -> None:
        """A request of `size` bytes. It gets exactly one `connection.reply`, or the connection is closed."""
        ...

    def rested(self, connection: Caller) -> None:
        """What was read at once has been taken. Whatever is found for several requests together is let go now."""
        ...

    def answered(self, connection: Caller, response: Response) -> None:
        """An answer to a question."""
        ...

    def cancelled(self, connection: Caller, id: RequestId) -> None:
        """The client no longer wants the answer to request `id`."""
        ...

    def gone(self, connection: Caller) -> None:
        """The connection has ended; called once, last."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Page:
    """Committed events from the database, as frames in order, and the cursor of one who has them."""

    frames: tuple[Frame, ...]
    cursor: Cursor


ReadPage = Callable[[Cursor, int], Awaitable[Page]]
"""Reads what follows a cursor, up to about so many bytes, but at least one event if there is one.

Raises `HermesError` when it cannot; the connection is then closed and its client resumes."""


@final
@dataclass(frozen=True, slots=True)
class Pages:
    """What the HTTP side shows. Each is called per request and must be quick."""

    ready: Callable[[], bool]
    openrpc: Callable[[], bytes]
    asyncapi: Callable[[], bytes]
    files: Mapping[str, StaticFile]
    """The dashboard, by path."""
