"""The model of the tests' chat server, and ways to answer for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import h11

from hermes_ws.agent.models.endpoint import Endpoint, Patience
from hermes_ws.agent.models.http_model import HttpModel
from hermes_ws.agent.models.model import (
    Model,
    ModelRequest,
    Piece,
    TextPiece,
    ToolSpec,
)
from hermes_ws.agent.models.openai import openai
from hermes_ws.contract.content import Message
from hermes_ws.contract.errors import ModelFailed
from hermes_ws.scope.secrets import Secrets
from tests.agent.chat_server import Answer, ChatServer, Wire
from tests.agent.twins import user

KEY = "sk-test_4711-abcdefgh"


def model_of(server: ChatServer, *, key: str | None = KEY, **more: Any) -> HttpModel:
    reach = Endpoint(server.base_url, "127.0.0.1", key, {"X-Extra": "yes"}, "KEY in .env (providers.mine.api_key)")
    settings = {name: more.pop(name) for name in ("reasoning", "temperature", "max_tokens") if name in more}
    values: dict[str, Any] = {"patience": Patience(), "redact": Secrets({"KEY": KEY}).redact, **more}
    return HttpModel("tiny-1", reach, openai(**settings), **values)


async def ask(model: Model, *messages: Message, tools: Sequence[ToolSpec] = ()) -> list[Piece]:
    try:
        async with model.stream(ModelRequest("Be brief.", list(messages) or [user("hi")], tools)) as pieces:
            return [piece async for piece in pieces]
    finally:
        await model.aclose()


async def ask_until_failure(model: Model) -> tuple[list[Piece], ModelFailed]:
    """The pieces that came, and what ended them."""
    came: list[Piece] = []
    try:
        async with model.stream(ModelRequest("", [user("hi")])) as pieces:
            async for piece in pieces:
                came.append(piece)  # noqa: PERF401 - what came before the failure is what is looked at
    except ModelFailed as failed:
        return came, failed
    finally:
        await model.aclose()
    raise AssertionError("it did not fail")


def text(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


def saying(*words: str) -> Answer:
    async def answer(wire: Wire) -> None:
        await wire.begin()
        for word in words:
            await wire.delta(content=word)
        await wire.delta("stop")
        await wire.end()

    return answer


def sending(*events: object, end: bool = True) -> Answer:
    """Chunks as they are given: values as JSON, bytes as they are."""

    async def answer(wire: Wire) -> None:
        await wire.begin()
        for event in events:
            await (wire.raw(event) if isinstance(event, bytes) else wire.chunk(event))
        if end:
            await wire.end()
        else:
            await wire.send(h11.EndOfMessage())

    return answer


def refusing(status: int, body: object = "", **headers: str) -> Answer:
    async def answer(wire: Wire) -> None:
        await wire.refuse(status, body, **headers)

    return answer


async def hang(wire: Wire) -> None:
    await wire.gone()


def delta(finish_reason: str | None = None, **fields: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]}
