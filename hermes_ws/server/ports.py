"""What the transport is given by the rest of the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, final

from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import Frame, RequestId
from hermes_ws.wire.peer import Request, Response

if TYPE_CHECKING:
    from hermes_ws.server.connection import Connection

Welcome = Callable[["Connection"], Frame]
"""Makes `gateway.ready`, the first frame of every connection."""


class Dispatcher(Protocol):
    """Who takes what a connection reads. Called by the reader, in order of arrival; nothing here may wait or raise."""

    def accept(self, connection: Connection, request: Request, size: int) -> None:
        """A request of `size` bytes. It gets exactly one `connection.reply`, or the connection is closed."""
        ...

    def answered(self, connection: Connection, response: Response) -> None:
        """An answer to a question."""
        ...

    def cancelled(self, connection: Connection, id: RequestId) -> None:
        """The client no longer wants the answer to request `id`."""
        ...

    def gone(self, connection: Connection) -> None:
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
