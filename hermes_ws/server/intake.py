"""What a connection reads, sorted: requests, answers to questions, cancellations, and what is none of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from websockets.frames import CloseCode
from websockets.frames import Frame as WebSocketFrame

from hermes_ws.contract.errors import Overloaded
from hermes_ws.contract.methods.connection import GATEWAY_PING, Pong
from hermes_ws.server.inbound import Assembly, Violation
from hermes_ws.server.life import OVERLOADED
from hermes_ws.server.limits import Limits
from hermes_ws.server.outbox import Outbox
from hermes_ws.server.ports import Dispatcher
from hermes_ws.wire.frames import error_frame, reply_frame
from hermes_ws.wire.peer import CANCEL, Notification, Refused, Request, Response, parse

if TYPE_CHECKING:
    from hermes_ws.server.connection import Connection

RETRY_AFTER: Final = 1.0
"""Seconds after which a client that has not read its answers may ask again."""

_PONG: Final = Pong()


@final
class Intake:
    """The inner half of the reader of one connection.

    `owed` counts the requests that have no answer yet. Answers that nobody reads are bounded here: beyond
    `unread_bytes` further requests are refused, beyond `unread_frames` the connection is closed.
    """

    __slots__ = ("_assembly", "_connection", "_dispatcher", "_limits", "_outbox", "owed")

    def __init__(self, connection: Connection, dispatcher: Dispatcher, outbox: Outbox, limits: Limits) -> None:
        self._connection = connection
        self._dispatcher = dispatcher
        self._outbox = outbox
        self._limits = limits
        self._assembly = Assembly(limits.fragments)
        self.owed = 0

    def take(self, frame: WebSocketFrame) -> None:
        """Take one frame. Raises `Violation` when the client broke a rule of the protocol below."""
        text = self._assembly.feed(frame)
        if text is None:
            return
        try:
            message = parse(text)
        except Refused as refused:
            _check_utf8(text)
            self._refuse(refused)
            return
        if isinstance(message, Request):
            self._request(message, len(text))
        elif isinstance(message, Response):
            if message.id is not None:
                self._dispatcher.answered(self._connection, message)
        else:
            self._notification(message)

    def _request(self, request: Request, size: int) -> None:
        self.owed += 1
        if self._outbox.frames >= self._limits.unread_frames:
            self._connection.close(OVERLOADED, "too many answers are waiting to be read")
        elif request.method == GATEWAY_PING.name and not request.params:
            self._connection.reply(reply_frame(request.id, _PONG))
        elif self._outbox.bytes >= self._limits.unread_bytes:
            error = Overloaded("Too many answers are waiting to be read.", retry_after_s=RETRY_AFTER)
            self._connection.reply(error_frame(request.id, error.to_wire()))
        else:
            self._dispatcher.accept(self._connection, request, size)

    def _refuse(self, refused: Refused) -> None:
        self.owed += 1
        if self._outbox.frames >= self._limits.unread_frames:
            self._connection.close(OVERLOADED, "too many answers are waiting to be read")
        else:
            self._connection.reply(error_frame(refused.id, refused.error.to_wire()))

    def _notification(self, notification: Notification) -> None:
        id = notification.params.get("id")
        if notification.method == CANCEL and isinstance(id, int | str) and not isinstance(id, bool):
            self._dispatcher.cancelled(self._connection, id)


def _check_utf8(text: bytes) -> None:
    # Only looked at when the text could not be read: what was read as JSON is UTF-8.
    try:
        text.decode()
    except UnicodeDecodeError:
        raise Violation(CloseCode.INVALID_DATA, "the text is not UTF-8") from None
