"""One WebSocket: a reader task, a writer task, and what they share.

The reader always reads, whatever the writer is waiting for. Only plain non-blocking writes reach the socket: whoever
has something to say writes it at once if the socket takes it, and the writer task goes on with what it did not take. So
no write can be cancelled half-way, and a stalled client costs its own connection and nothing else (FLOW-01, FLOW-02).
`life.py` tells how a connection begins and ends.
"""

from __future__ import annotations

import contextlib
import logging
import math
import secrets
import socket
import struct
import time
from typing import Final, final

import trio
from websockets.protocol import State
from websockets.server import ServerProtocol

from hermes_ws.contract.methods.runtime import Transport
from hermes_ws.journal.tail import Address, LiveMarks, ThreadTail
from hermes_ws.server.delivery import Delivery, Subscription
from hermes_ws.server.entry import Principal
from hermes_ws.server.inbound import REASON_BYTES, Violation, has_come
from hermes_ws.server.intake import Intake
from hermes_ws.server.life import OVERLOADED, RESUME, SEND_STALLED, TRANSITIONS, ConnectionStatistics, Life, Turn
from hermes_ws.server.limits import Limits, too_large
from hermes_ws.server.outbox import Outbox
from hermes_ws.server.ports import Dispatcher, ReadPage, Welcome
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import Frame
from hermes_ws.wire.negotiation import Negotiated

READ_BYTES: Final = 64 * 1024
"""What is read at once; a burst of some hundred requests."""

_PING: Final = b"\x89\x00"
"""A ping without payload; any byte that comes back is an answer."""

_PONG_HEAD: Final = 0x8A
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)
_OPEN: Final = Life.OPEN
"""To look up a member of an enumeration takes ten times as long."""

_log = logging.getLogger(__name__)


@final
class Connection:
    """A client that is past the handshake. `profile` is the one its path binds it to, if it does."""

    transport: Transport = "websocket"

    __slots__ = (
        "__weakref__",
        "_answered",
        "_bell",
        "_close_by",
        "_compressed",
        "_corked",
        "_delivery",
        "_dispatcher",
        "_ended",
        "_heard",
        "_intake",
        "_limits",
        "_nursery",
        "_outbox",
        "_ping_at",
        "_pinged",
        "_protocol",
        "_stream",
        "began",
        "id",
        "life",
        "principal",
        "profile",
    )

    def __init__(
        self,
        stream: trio.SocketStream,
        protocol: ServerProtocol,
        *,
        principal: Principal,
        profile: str | None,
        dispatcher: Dispatcher,
        limits: Limits,
    ) -> None:
        self.id: Final = f"c-{secrets.token_hex(8)}"
        self.principal: Final = principal
        self.profile: Final = profile
        self.began: Final = time.time()
        self.life = Life.OPEN
        self._stream = stream
        self._protocol = protocol
        self._dispatcher = dispatcher
        self._limits = limits
        self._compressed = bool(protocol.extensions)
        self._outbox = Outbox(stream.socket)
        self._intake = Intake(self, protocol, dispatcher, self._outbox, limits)
        # With compression each write costs the processor; then it is the writer who pays, not whoever has news.
        self._delivery = Delivery(
            outbox=None if self._compressed else self._outbox,
            wake=self._ring if self._compressed else self._pump,
            alarm=self._ring,
            start=self._start_reading,
            failed=self._lost,
        )
        self._nursery: trio.Nursery | None = None
        self._bell = trio.Event()
        self._ended = trio.Event()
        self._answered = False
        self._corked = True
        self._heard = True
        self._pinged = False
        self._ping_at = math.inf
        self._close_by = math.inf

    # --- what the dispatcher uses ------------------------------------------------------------------------------------

    @property
    def lasting(self) -> bool:
        """A WebSocket stays."""
        return True

    @property
    def askable(self) -> bool:
        """Once it has said what it can do, or has asked for something without saying that."""
        return self._answered or self.negotiated.spoken

    @property
    def negotiated(self) -> Negotiated:
        """What is in force on this connection."""
        return self._delivery.negotiated

    @negotiated.setter
    def negotiated(self, value: Negotiated) -> None:
        self._delivery.negotiated = value

    def may_address(self, profile: str) -> bool:
        """Whether a profile can be reached from here: the principal may, and the path binds to no other."""
        return self.profile in (None, profile) and self.principal.may_address(profile)

    def reply(self, frame: Frame) -> None:
        """Send the answer to a request. Goes before events, never fails for lack of room; no effect once closing."""
        if len(frame.json) > self._limits.frame_bytes:
            frame = too_large(frame, self._limits.frame_bytes)
        self._answered = True
        self._intake.owed -= 1
        if self._corked and not self._compressed:
            if self.life is _OPEN:
                self._outbox.put(frame.ws)  # the reader writes what it has put together
        else:
            self._put(frame)

    def notify(self, frame: Frame) -> None:
        """Send something that is no answer: a notification, or a question. Goes before what the threads have."""
        if self._outbox.frames >= self._limits.unread_frames:
            self.close(OVERLOADED, "too much is waiting to be read")
        elif frame.type not in self.negotiated.opt_out:
            self._put(frame)

    def subscribe(self, tail: ThreadTail, start: Cursor, marks: LiveMarks, read: ReadPage) -> None:
        """Send what follows `start` in a thread, from now on. To be called after the reply that tells so was given.

        `read` gives what is older than the tail's memory. An earlier subscription to the thread is replaced.
        """
        if self.life is Life.OPEN:
            self._delivery.subscribe(tail, start, marks, read)

    def unsubscribe(self, address: Address) -> bool:
        """End a subscription; false when there was none."""
        return self._delivery.unsubscribe(address)

    def subscriptions(self) -> tuple[Address, ...]:
        """The threads that this connection follows."""
        return self._delivery.addresses()

    def close(self, code: int, reason: str = "") -> None:
        """Say goodbye: what is queued goes out, then the close frame; the client has `close_deadline` to hang up."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(code, reason.encode()[:REASON_BYTES].decode(errors="ignore"))
            self._control()
            self._pump()

    def cut(self, why: str = "the server ends") -> None:
        """End now, without a goodbye."""
        self._end(Turn.CUT, why)

    async def wait_ended(self) -> None:
        """Return when the connection has ended."""
        await self._ended.wait()

    def fileno(self) -> int:
        """The descriptor of its socket; -1 once it has ended. For those who look at sockets from outside."""
        return self._stream.socket.fileno()

    def statistics(self) -> ConnectionStatistics:
        """Counts of what waits and what is owed."""
        waits, size = self._outbox.frames, self._outbox.bytes
        return ConnectionStatistics(self.life, waits, size, self._intake.owed, self._delivery.statistics())

    # --- life --------------------------------------------------------------------------------------------------------

    async def run(self, welcome: Welcome, early: bytes = b"", *, refused: str | None = None) -> None:
        """Serve the connection to its end. `early` was read beyond the handshake; `refused` is why it is to come back.
        Cancelling ends it at once, without a close frame; call `close` and `wait_ended` before for a clean end.
        """
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self._outbox.put(self._encoded(welcome(self)))
                self._ping_at = trio.current_time() + self._limits.ping_every
                self._corked = False
                if refused is not None:
                    self.close(OVERLOADED, refused)
                nursery.start_soon(self._write, name=f"{self.id} writer")
                nursery.start_soon(self._read, early, name=f"{self.id} reader")
        finally:
            self.life = Life.ENDED
            self._delivery.end()
            self._outbox.end()
            self._stream.socket.close()
            self._ended.set()
            self._dispatcher.gone(self)

    def _turn(self, turn: Turn) -> bool:
        new = TRANSITIONS.get((self.life, turn))
        if new is None:
            return False
        self.life = new
        return True

    def _end(self, turn: Turn, why: str) -> None:
        if self._nursery is not None and self._turn(turn):
            _log.debug("connection %s ended: %s", self.id, why)
            self._nursery.cancel_scope.cancel()

    def _abort(self, why: str) -> None:
        """End now, and let the kernel forget what it still holds for the client."""
        with contextlib.suppress(OSError):
            self._stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self._end(Turn.DEADLINE, why)

    # --- reading -----------------------------------------------------------------------------------------------------

    async def _read(self, early: bytes) -> None:
        if early:
            self._received(early)
        try:
            while data := await self._stream.receive_some(READ_BYTES):
                self._received(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._end(Turn.HUNG_UP, "the socket broke")
        else:
            self._end(Turn.HUNG_UP, "the client hung up")

    def _received(self, data: bytes | bytearray) -> None:
        self._heard = True
        self._corked = True
        try:
            self._intake.received(data)
        except Violation as violation:
            self.close(violation.code, violation.reason)
            self._intake.let_go()
        finally:
            self._corked = False
            self._dispatcher.rested(self)
        self._control()
        self._pump()

    # --- writing -----------------------------------------------------------------------------------------------------

    def _encoded(self, frame: Frame) -> bytes:
        if not self._compressed:
            return frame.ws
        self._protocol.send_text(frame.json)
        return b"".join(self._protocol.data_to_send())

    def _put(self, frame: Frame) -> None:
        if self.life is not Life.OPEN or self._protocol.state is not State.OPEN:
            return
        self._outbox.put(self._encoded(frame))
        if self._intake.owed > 0:
            # Others are about to be answered: let the writer send them together, in a moment.
            self._ring()
        else:
            self._pump()

    def _ring(self) -> None:
        self._bell.set()

    def _control(self) -> None:
        """Queue what the protocol has to say by itself: pongs, and the close frame."""
        for data in self._protocol.data_to_send():
            if data and data[0] == _PONG_HEAD:
                self._outbox.put_pong(data)
            elif data:
                self._outbox.put_last(data)
        if self._protocol.state is not State.OPEN:
            said = Turn.CLOSE_RECEIVED if self._protocol.close_rcvd_then_sent else Turn.CLOSE_SENT
            if self._turn(said):
                self._close_by = trio.current_time() + self._limits.close_deadline
                self._delivery.end()
            self._ring()

    def _pump(self) -> None:
        """Write what there is and the socket takes; what is left is the writer's. Answers first, then events."""
        if self._corked or self.life is Life.ENDED:
            return
        outbox = self._outbox
        ready = self._delivery.ready
        try:
            if not outbox.flush():
                self._ring()
            elif ready and self.life is Life.OPEN:
                frames = self._delivery.gather()
                data = [self._encoded(each) for each in frames] if self._compressed else [each.ws for each in frames]
                if (data and not outbox.write(data)) or ready:
                    self._ring()
        except OSError:
            self._end(Turn.HUNG_UP, "the socket broke")

    async def _write(self) -> None:
        """Go on with what was left, and keep the times. Waits for one thing at a time."""
        while True:
            self._bell = trio.Event()
            self._pump()
            if not self._outbox.idle:
                await self._wait_for_room()
                continue
            if self._protocol.eof_sent:
                self._hang_up()
            if self._bell.is_set():
                await trio.lowlevel.checkpoint()
                continue
            with trio.move_on_at(min(self._ping_at, self._close_by, self._delivery.due)):
                await self._bell.wait()
            self._tick(trio.current_time())

    async def _wait_for_room(self) -> None:
        deadline = min(trio.current_time() + self._limits.send_deadline, self._close_by)
        with trio.move_on_at(deadline) as scope:
            await trio.lowlevel.wait_writable(self._stream.socket)
        if scope.cancelled_caught:
            self._stalled()
            await trio.lowlevel.checkpoint()

    def _stalled(self) -> None:
        statistics = self.statistics()
        _log.info(
            "connection %s took nothing for too long and is closed: %d answers of %d bytes and %d threads wait",
            self.id,
            statistics.unread_frames,
            statistics.unread_bytes,
            statistics.delivery.ready,
        )
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(SEND_STALLED, "nothing was read for too long")
            if self._outbox.farewell(b"".join(self._protocol.data_to_send())):
                self._end(Turn.DEADLINE, "send deadline")
                return
        self._abort("send deadline")

    def _hang_up(self) -> None:
        """Nothing more will be said; the reader waits for the client to hang up as well."""
        try:
            self._stream.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._end(Turn.HUNG_UP, "closed")

    def _tick(self, now: float) -> None:
        if now >= self._close_by:
            self._abort("close deadline")
            return
        self._delivery.tick(now)
        if now < self._ping_at or self.life is not Life.OPEN:
            return
        if self._pinged and not self._heard and not has_come(self.fileno()):
            # Half-open: the client's machine is gone, and nobody will ever say so (FLOW-13).
            self._abort("no answer to a ping")
            return
        self._heard = False
        self._pinged = True
        self._ping_at = now + self._limits.ping_every
        self._outbox.put(_PING)

    # --- the database ------------------------------------------------------------------------------------------------

    def _start_reading(self, subscription: Subscription) -> None:
        assert self._nursery is not None, "subscriptions begin after the connection runs"
        self._nursery.start_soon(self._delivery.fill, subscription, name=f"{self.id} catching up")

    def _lost(self, why: str) -> None:
        self.close(RESUME, why)
