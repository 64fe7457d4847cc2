"""A client at the other end of two pipes: one JSON object per line, both ways (`hermes-ws stdio`).

The same contract as on a WebSocket, without its frames: `gateway.ready` is the first line, and the last one before the
server hangs up is the notification `$/closed` with the code and the reason that a close frame would carry.
"""

from __future__ import annotations

import contextlib
import secrets
from typing import Final, final

import trio
from websockets.frames import CloseCode

from hermes_ws.contract.errors import Overloaded
from hermes_ws.contract.methods.connection import GATEWAY_PING, Pong
from hermes_ws.contract.methods.runtime import Transport
from hermes_ws.server.apart import Apart
from hermes_ws.server.entry import Principal
from hermes_ws.server.limits import Limits, too_large
from hermes_ws.server.output import Output
from hermes_ws.server.ports import Dispatcher, Welcome
from hermes_ws.wire.frames import Frame, error_frame, notification_frame, reply_frame
from hermes_ws.wire.negotiation import UNSPOKEN
from hermes_ws.wire.peer import CANCEL, Notification, Refused, Request, Response, parse

READ_BYTES: Final = 64 * 1024
"""What is read at once: what a pipe holds."""

RETRY_AFTER: Final = 1.0
"""Seconds after which a client that has not read its answers may ask again."""

CLOSED: Final = "$/closed"
"""The last thing said, with `{code, reason}`."""


@final
class PipeConnection(Apart):
    """One client, from its first line to its last. It ends when its input has and every request of it is answered, or
    after `close`.
    """

    def __init__(
        self,
        incoming: trio.abc.ReceiveStream,
        outgoing: trio.abc.SendStream,
        *,
        principal: Principal,
        profile: str | None,
        dispatcher: Dispatcher,
        limits: Limits,
    ) -> None:
        id = f"p-{secrets.token_hex(8)}"
        super().__init__(id, principal, profile, Output(limits, UNSPOKEN, id))
        self._incoming = incoming
        self._outgoing = outgoing
        self._dispatcher = dispatcher
        self._limits = limits
        self._owed = 0
        self._answered = False
        self._heard_all = False

    # --- what the dispatcher uses ------------------------------------------------------------------------------------

    @property
    def lasting(self) -> bool:
        """Pipes stay."""
        return True

    @property
    def transport(self) -> Transport:
        """How it came in."""
        return "stdio"

    @property
    def askable(self) -> bool:
        """Once it has said what it can do, or has asked for something without saying that."""
        return self._answered or self.negotiated.spoken

    def reply(self, frame: Frame) -> None:
        """Send the answer to a request."""
        most = self._limits.frame_bytes
        if len(frame) > most:
            frame = too_large(frame, most)
        self._owed -= 1
        self._answered = True
        self._output.put(frame)
        self._end_if_done()

    # --- life --------------------------------------------------------------------------------------------------------

    async def run(self, welcome: Welcome) -> None:
        """Serve it to its end. The pipes are closed by whoever opened them."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self._output.put(welcome(self))
                nursery.start_soon(self._read)
                with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    code, reason = await self._output.run(nursery, self._send, _line)
                    await self._send(_line(notification_frame(CLOSED, {"code": code, "reason": reason})))
                nursery.cancel_scope.cancel()
        finally:
            self._output.end()
            self._ended.set()
            self._dispatcher.gone(self)

    async def _send(self, data: bytes) -> None:
        with trio.move_on_after(self._limits.send_deadline):
            await self._outgoing.send_all(data)
            return
        raise trio.BrokenResourceError("nothing was read for too long")

    async def _read(self) -> None:
        buffer = bytearray()
        searched = 0
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while data := await self._incoming.receive_some(READ_BYTES):
                buffer += data
                while (end := buffer.find(b"\n", searched)) >= 0:
                    line = bytes(buffer[:end]).strip()
                    del buffer[: end + 1]
                    searched = 0
                    if line and not self._output.closing:
                        self._take(line)
                self._dispatcher.rested(self)
                searched = len(buffer)
                if searched > self._limits.frame_bytes:
                    self.close(CloseCode.MESSAGE_TOO_BIG, "a line is longer than a frame may be")
                    return
        self._heard_all = True
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self._heard_all and not self._owed:
            self.close(CloseCode.NORMAL_CLOSURE, "the input has ended")

    def _take(self, line: bytes) -> None:
        if len(line) > self._limits.frame_bytes:
            self.close(CloseCode.MESSAGE_TOO_BIG, "a line is longer than a frame may be")
            return
        try:
            message = parse(line)
        except Refused as refused:
            self._owed += 1
            try:
                line.decode()
            except UnicodeDecodeError:
                self.close(CloseCode.INVALID_DATA, "the text is not UTF-8")
                return
            self.reply(error_frame(refused.id, refused.error.to_wire()))
            return
        if isinstance(message, Request):
            self._request(message, len(line))
        elif isinstance(message, Response):
            if message.id is not None:
                self._dispatcher.answered(self, message)
        else:
            self._notification(message)

    def _request(self, request: Request, size: int) -> None:
        self._owed += 1
        if request.method == GATEWAY_PING.name and not request.params:
            self.reply(reply_frame(request.id, Pong()))
        elif self._output.bytes >= self._limits.unread_bytes:
            error = Overloaded("Too many answers are waiting to be read.", retry_after_s=RETRY_AFTER)
            self.reply(error_frame(request.id, error.to_wire()))
        else:
            self._dispatcher.accept(self, request, size)

    def _notification(self, notification: Notification) -> None:
        id = notification.params.get("id")
        if notification.method == CANCEL and isinstance(id, int | str) and not isinstance(id, bool):
            self._dispatcher.cancelled(self, id)


def _line(frame: Frame) -> bytes:
    return frame.json + b"\n"
