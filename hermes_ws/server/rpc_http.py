"""One request as one HTTP request: the same contract for `curl`, and for those behind proxies that break WebSockets.

The body is one JSON-RPC request, the answer is its response, with status 200 also when it is an error: the request was
understood and answered. There is no connection that a method could change or subscribe; whoever wants events follows
them with `GET /events`, from the cursor that a snapshot gave.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, final

import trio

from hermes_ws.contract.errors import InvalidRequest
from hermes_ws.server.entry import Principal
from hermes_ws.server.http import Answer
from hermes_ws.server.ports import Dispatcher, ReadPage
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import Frame, error_frame
from hermes_ws.wire.negotiation import UNSPOKEN, Negotiated
from hermes_ws.wire.peer import Refused, Request, Response, parse

if TYPE_CHECKING:
    from hermes_ws.journal.tail import Address, LiveMarks, ThreadTail

JSON: Final = "application/json"


@final
class SingleCall:
    """The caller of one request. What it asks for is done also when it hangs up before the answer."""

    __slots__ = ("_answered", "_frame", "id", "negotiated", "principal", "profile")

    def __init__(self, principal: Principal, profile: str | None) -> None:
        self.id: Final = f"h-{secrets.token_hex(8)}"
        self.principal: Final = principal
        self.profile: Final = profile
        self.negotiated: Negotiated = UNSPOKEN
        self._answered = trio.Event()
        self._frame: Frame | None = None

    @property
    def lasting(self) -> bool:
        """It ends with its answer."""
        return False

    @property
    def askable(self) -> bool:
        """Nothing can be sent to it but its answer."""
        return False

    def may_address(self, profile: str) -> bool:
        """Whether a profile can be reached from here."""
        return self.profile in (None, profile) and self.principal.may_address(profile)

    def reply(self, frame: Frame) -> None:
        """Take the answer."""
        self._frame = frame
        self._answered.set()

    def notify(self, frame: Frame) -> None:
        """No effect: an HTTP response carries the answer and nothing else."""

    def subscribe(self, tail: ThreadTail, start: Cursor, marks: LiveMarks, read: ReadPage) -> None:
        """No effect: `GET /events` follows a thread."""

    def unsubscribe(self, address: Address) -> bool:
        """There never is a subscription."""
        return False

    def close(self, code: int, reason: str = "") -> None:
        """No effect: it ends by itself."""

    async def answer(self) -> Frame:
        """Wait for the answer."""
        await self._answered.wait()
        assert self._frame is not None
        return self._frame


async def call(dispatcher: Dispatcher, principal: Principal, profile: str | None, body: bytes) -> Answer:
    """Answer the request in `body`. Cancelling gives up waiting; what has begun is finished."""
    try:
        message = parse(body)
    except Refused as refused:
        return _json(error_frame(refused.id, refused.error.to_wire()))
    if isinstance(message, Response):
        hint = "Answer with the method question.answer; nothing is asked over a single HTTP request."
        return _json(error_frame(None, InvalidRequest("This is an answer and no request.", hint=hint).to_wire()))
    if not isinstance(message, Request):
        return Answer(204, b"", JSON)
    caller = SingleCall(principal, profile)
    try:
        dispatcher.accept(caller, message, len(body))
        return _json(await caller.answer())
    finally:
        dispatcher.gone(caller)


def _json(frame: Frame) -> Answer:
    return Answer(200, frame.json, JSON)
