"""What a connection reads, sorted: requests, answers to questions, cancellations, and what is none of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast, final

from websockets.frames import CloseCode
from websockets.frames import Frame as WebSocketFrame
from websockets.protocol import State
from websockets.server import ServerProtocol

from hermes_ws.contract.errors import Overloaded
from hermes_ws.contract.methods.connection import GATEWAY_PING, Pong
from hermes_ws.server.inbound import MASKED, WHOLE_TEXT, Assembly, Violation, extent
from hermes_ws.server.life import OVERLOADED, Life
from hermes_ws.server.limits import Limits
from hermes_ws.server.outbox import Outbox
from hermes_ws.server.ports import Dispatcher
from hermes_ws.wire.frames import error_frame, reply_frame
from hermes_ws.wire.peer import CANCEL, Notification, Refused, Request, Response, parse

try:
    from websockets.speedups import apply_mask
except ImportError:  # a build without its extension; the same in Python
    from websockets.utils import apply_mask

if TYPE_CHECKING:
    from hermes_ws.server.connection import Connection

RETRY_AFTER: Final = 1.0
"""Seconds after which a client that has not read its answers may ask again."""

PING: Final = GATEWAY_PING.name
"""Answered before anything that waits, so that a client can tell a busy server from a dead one."""

SMALLEST_HEAD: Final = 2
"""Bytes of a frame that tell what it is, or that it breaks a rule."""

BRIEF: Final = MASKED | 126
"""From here on the second byte of a head does not tell the size itself."""

_OPEN: Final = Life.OPEN
_PONG: Final = Pong()


@final
class Intake:
    """The inner half of the reader of one connection.

    `owed` counts the requests that have no answer yet. Answers that nobody reads are bounded here: beyond
    `unread_bytes` further requests are refused, beyond `unread_frames` the connection is closed.
    """

    __slots__ = ("_assembly", "_connection", "_dispatcher", "_limits", "_outbox", "_protocol", "_rest", "owed")

    def __init__(
        self,
        connection: Connection,
        protocol: ServerProtocol,
        dispatcher: Dispatcher,
        outbox: Outbox,
        limits: Limits,
    ) -> None:
        self._connection = connection
        self._protocol = protocol
        self._dispatcher = dispatcher
        self._outbox = outbox
        self._limits = limits
        self._assembly = Assembly(limits.fragments)
        self._rest: bytearray | None = None
        self.owed = 0

    def received(self, data: bytes | bytearray) -> None:
        """Take what arrived, as far as frames are whole; the rest waits for what follows. Once the connection closes
        nothing is looked at any more. Raises `Violation` when the client broke a rule that the protocol does not know;
        `let_go` is to be called then, when the goodbye is said.
        """
        rest = self._rest
        if rest is not None:
            rest += data  # whoever sends byte by byte must not have all of it copied each time
            data = rest
        at, end = 0, len(data)
        most = self._limits.frame_bytes
        connection = self._connection
        try:
            while end - at >= SMALLEST_HEAD and connection.life is _OPEN:
                size = data[at + 1]
                if data[at] == WHOLE_TEXT and MASKED <= size < BRIEF and not self._assembly.begun:
                    start = at + 6
                    stop = start + size - MASKED
                    if stop > end:
                        break
                    masked, at = at, stop
                    self._text(apply_mask(data[start:stop], data[masked + 2 : start]))
                    continue
                size = extent(data, at, most)
                if size is None or size > end - at:
                    break
                frame, at = data[at : at + size], at + size
                self._protocol.receive_data(frame)
                for each in self._protocol.events_received():
                    text = self._assembly.feed(cast("WebSocketFrame", each))
                    if text is not None:
                        self._text(text)
                if self._protocol.state is not State.OPEN:
                    break
        finally:
            if at == end:
                self._rest = None
            elif rest is None:
                self._rest = bytearray(data[at:])
            else:
                del rest[:at]
        if self._rest is not None and (connection.life is not _OPEN or self._protocol.state is not State.OPEN):
            self.let_go()

    def let_go(self) -> None:
        """Give what has not been looked at to the protocol, which waits for the client's goodbye."""
        rest, self._rest = self._rest, None
        if rest:
            self._protocol.receive_data(rest)
            self._protocol.events_received()

    def _text(self, text: bytes) -> None:
        try:
            message = parse(text)
        except Refused as refused:
            _check_utf8(text)
            self._refuse(refused)
            return
        if isinstance(message, Request):
            self.owed += 1
            outbox = self._outbox
            if message.method == PING or (outbox.queue and self._unread()):
                self._request(message, len(text))
            else:
                self._dispatcher.accept(self._connection, message, len(text))
        elif isinstance(message, Response):
            if message.id is not None:
                self._dispatcher.answered(self._connection, message)
        else:
            self._notification(message)

    def _unread(self) -> bool:
        """Whether too much waits for the client to read it."""
        outbox, limits = self._outbox, self._limits
        return outbox.bytes >= limits.unread_bytes or len(outbox.queue) >= limits.unread_frames

    def _request(self, request: Request, size: int) -> None:
        """Take a request that is answered here, or not at all."""
        if len(self._outbox.queue) >= self._limits.unread_frames:
            self._connection.close(OVERLOADED, "too many answers are waiting to be read")
        elif request.method == PING and not request.params:
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
