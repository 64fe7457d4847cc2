"""A turn and everything around it: the loopback model or a prepared one, and twins of the ports."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio

from hermes_ws.agent.approvals import SessionApprovals
from hermes_ws.agent.history import repaired
from hermes_ws.agent.models.loopback import LoopbackModel
from hermes_ws.agent.models.model import (
    EndPiece,
    EndReason,
    Model,
    ModelRequest,
    Piece,
    ToolCallPiece,
)
from hermes_ws.agent.turn import TurnEnd, TurnRequest, run_turn
from tests.agent.twins import (
    AskerTwin,
    HandsTwin,
    NarratorTwin,
    request,
)


class Replies:
    """A model that gives prepared replies, and keeps what it was asked."""

    provider = "prepared"
    name = "prepared-1"

    def __init__(self, *replies: Sequence[Piece | Exception | Callable[[], Any]]) -> None:
        self._replies = list(replies)
        self.requests: list[ModelRequest] = []
        self.closed = 0

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[Piece], None]:
        self.requests.append(ModelRequest(request.system, list(request.messages), list(request.tools)))
        yield self._pieces(self._replies.pop(0))

    async def _pieces(self, pieces: Sequence[Any]) -> AsyncIterator[Piece]:
        for piece in pieces:
            await trio.lowlevel.checkpoint()
            if isinstance(piece, Exception):
                raise piece
            if callable(piece):
                await piece()
            else:
                yield piece

    async def aclose(self) -> None:
        self.closed += 1


def call(name: str, /, call_id: str = "c1", problem: str = "", **arguments: Any) -> ToolCallPiece:
    return ToolCallPiece(call_id, name, arguments, problem)


def done(reason: EndReason = "stop") -> Sequence[Piece]:
    return [EndPiece(reason)]


class Scene:
    """A turn and everything around it."""

    def __init__(
        self, *asked: Any, hands: HandsTwin | None = None, asker: AskerTwin | None = None, **more: Any
    ) -> None:
        self.narrator = NarratorTwin()
        self.hands = hands or HandsTwin()
        self.asker = asker or AskerTwin()
        self.approvals = SessionApprovals()
        self.more = more

    async def run(self, what: TurnRequest | str, model: Model | None = None) -> TurnEnd:
        asked = request(what) if isinstance(what, str) else what
        self.narrator.history = [*asked.history]
        return await run_turn(
            asked,
            narrator=self.narrator,
            hands=self.hands,
            asker=self.asker,
            approvals=self.approvals,
            model=model or LoopbackModel(),
            **self.more,
        )

    def assert_valid(self) -> None:
        """Every call has its result, so that nothing has to be mended for the next request."""
        assert [(each.role, each.content) for each in self.narrator.history if each.text or each.content] == [
            (each.role, each.content) for each in repaired(self.narrator.history)
        ]
