"""The one interface behind which every provider stands.

A model is stateless: it is given the whole history with each request and streams one reply. It belongs to one turn,
which closes it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol, final

from pydantic import JsonValue

from hermes_ws.contract.content import Message


@final
@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it: `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]


@final
@dataclass(frozen=True, slots=True)
class Attached:
    """The content of an image or a file. `text` is what it says, redacted; None where it is no text."""

    data: bytes
    text: str | None = None


@final
@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request. `messages` is a valid history, oldest first: every call in it has its result.

    `attached` are the contents of the images and files in it, by their hash.
    """

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    attached: Mapping[str, Attached] = field(default_factory=dict[str, Attached])


@final
@dataclass(frozen=True, slots=True)
class TextPiece:
    """The next words of the reply."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class ReasoningPiece:
    """The next words of what the model thinks. `signature` is the provider's, over all of it; it comes at the end."""

    text: str
    signature: str = ""


@final
@dataclass(frozen=True, slots=True)
class ToolNamePiece:
    """The model has begun to write a call of this tool; the whole call comes when it is written."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class ToolCallPiece:
    """One whole call. `problem` says why the arguments could not be read; `arguments` is empty then."""

    call_id: str
    name: str
    arguments: Mapping[str, JsonValue]
    problem: str = ""


@final
@dataclass(frozen=True, slots=True)
class UsagePiece:
    """Tokens of this reply, as the provider counts them."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0


@final
@dataclass(frozen=True, slots=True)
class RetryPiece:
    """Nothing has come yet and the request is made again after `delay_s` seconds, because of `reason` (a sentence)."""

    reason: str
    delay_s: float


EndReason = Literal["stop", "tool_calls", "length", "filtered"]


@final
@dataclass(frozen=True, slots=True)
class EndPiece:
    """The reply is whole. Exactly one, and the last piece; a stream without it raised."""

    reason: EndReason


Piece = TextPiece | ReasoningPiece | ToolNamePiece | ToolCallPiece | UsagePiece | RetryPiece | EndPiece


class Model(Protocol):
    """A provider, a model's name, and what is needed to reach it."""

    @property
    def provider(self) -> str: ...

    @property
    def name(self) -> str: ...

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[Piece]]:
        """Stream one reply. Leaving the block, also by cancellation, ends the request.

        Raises ModelFailed and its kinds, from entering the block or from the iterator; what came before stands.
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections. May be called more than once."""
        ...
