"""One reply of a model, from its stream to a committed message.

Text and reasoning go out as they come, redacted. However the stream ends, what went out is committed: whole, or as a
partial message when an interrupt or a failure cut it off. Calls count only when the reply is whole.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, assert_never, cast, final

import trio
from pydantic import JsonValue

from hermes_ws.agent.models.model import (
    EndPiece,
    EndReason,
    Model,
    ModelRequest,
    Piece,
    ReasoningPiece,
    RetryPiece,
    TextPiece,
    ToolCallPiece,
    ToolNamePiece,
    UsagePiece,
)
from hermes_ws.agent.ports import Consumed, Narrator, Redaction
from hermes_ws.agent.pricing import UNPRICED, Prices
from hermes_ws.contract.content import Block, Message, ReasoningBlock, TextBlock, ToolCallBlock, Usage
from hermes_ws.contract.errors import ModelFailed, StorageUnavailable
from hermes_ws.wire.frames import scrub

CLOSING_S: Final = 10.0
"""Seconds that committing what there is may take after an interrupt. A commit takes milliseconds; a disk that needs
longer than this is as good as gone, and an interrupt must end."""

REPLY_CHARACTERS: Final = 4_000_000
"""Text and reasoning of one reply: beyond any model's output, and the end of one that floods."""

SHORTEST_PACE_S: Final = 0.05
"""Seconds that an answer must take for its pace to mean anything: what came at once was made before."""

Meter = Callable[[Usage], tuple[int, int]]
"""Told what a reply consumed; says how full the context is and what fits into it."""

CALLS: Final = 128
"""Calls of one reply, for the same reason."""

CALL_ID_CHARACTERS: Final = 128
"""Longest id of a call that is taken over; providers use some thirty characters."""


@final
@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A call as the model made it. `block` is redacted and committed; `arguments` are what the tool is given."""

    block: ToolCallBlock
    arguments: dict[str, JsonValue]
    problem: str


@final
@dataclass(frozen=True, slots=True)
class Reply:
    """A committed reply. `message` is None when nothing came; `empty` when neither words nor calls did."""

    message: Message | None
    calls: tuple[RequestedCall, ...]
    usage: Usage
    reason: EndReason
    empty: bool


async def commit(work: Callable[[], Awaitable[None]]) -> None:
    """Do this also when cancelled, within CLOSING_S. Raises StorageUnavailable when the time did not suffice."""
    with trio.move_on_after(CLOSING_S, shield=True) as limit:
        await work()
    if limit.cancelled_caught:
        raise StorageUnavailable(f"Nothing could be stored for {CLOSING_S:g} seconds.")


async def receive(
    model: Model,
    request: ModelRequest,
    *,
    narrator: Narrator,
    redaction: Redaction,
    meter: Meter = lambda counted: (0, 0),
    prices: Prices = UNPRICED,
) -> Reply:
    """Stream one reply, tell it as it comes, and commit it.

    Raises ModelFailed and its kinds; what had come by then is committed as partial first, as it is on cancellation.
    Once the whole message is committed this is not cancelled any more: whoever gets a reply owes its calls results.
    """
    receiving = _Receiving(model, narrator, redaction, prices)
    try:
        async with model.stream(request) as pieces:
            async for piece in pieces:
                await receiving.take(piece)
        receiving.check_whole()
    except BaseException:
        await receiving.commit(partial=True)
        raise
    reply = receiving.reply()
    # Not to be interrupted: an interrupt must not pass between calls that are committed and their results.
    await receiving.commit(partial=False, used=Consumed(reply.usage, *meter(reply.usage)))
    return reply


def paced(tokens: int, seconds: float) -> float | None:
    """Tokens a second, to a tenth; None where too little was said, or in too short a time, to tell."""
    return round(tokens / seconds, 1) if tokens > 1 and seconds >= SHORTEST_PACE_S else None


def pace_of(first: Usage, second: Usage) -> float | None:
    """The pace of both together; that of one where the other has none."""
    known = [(each.output_tokens, each.tokens_per_second) for each in (first, second) if each.tokens_per_second]
    seconds = sum(tokens / rate for tokens, rate in known if rate)
    return paced(sum(tokens for tokens, _ in known), seconds)


@final
class _Receiving:
    """What has come of a reply so far."""

    def __init__(self, model: Model, narrator: Narrator, redaction: Redaction, prices: Prices) -> None:
        self._prices = prices
        self._model = model
        self._narrator = narrator
        self._redaction = redaction
        self._redact_text = redaction.redactor()
        self._redact_reasoning = redaction.redactor()
        self._began = trio.current_time()
        self._first: float | None = None
        self._message_id: str | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._thought: list[str] = []
        self._signature = ""
        self._calls: list[RequestedCall] = []
        self._characters = 0
        self._usage = UsagePiece(0, 0)
        self._end: EndReason | None = None

    async def take(self, piece: Piece) -> None:
        """The next piece. Raises ModelFailed when the model floods."""
        match piece:
            case TextPiece(text):
                await self._begin(len(text))
                self._say(self._redact_text.feed(scrub(text)))
            case ReasoningPiece(text, signature):
                await self._begin(len(text))
                self._thought.append(text)
                self._signature = signature or self._signature
                self._think(self._redact_reasoning.feed(scrub(text)))
            case ToolNamePiece(name):
                await self._begin(0)
                self._narrator.tool_generating(self._redaction.redact(scrub(name)))
            case ToolCallPiece():
                await self._begin(0)
                if len(self._calls) >= CALLS:
                    raise ModelFailed(f"The model made more than {CALLS} calls in one reply.")
                self._calls.append(self._call(piece))
            case UsagePiece():
                self._usage = piece
            case RetryPiece(reason, delay_s):
                await self._narrator.status("model_retry", f"{reason} Trying again in {delay_s:.1f} s.")
            case EndPiece(reason):
                self._end = reason
            case _:
                assert_never(piece)

    def check_whole(self) -> None:
        """Raises ModelFailed when the stream ended without its last piece."""
        if self._end is None:
            raise ModelFailed("The model's answer broke off.")

    async def commit(self, *, partial: bool, used: Consumed | None = None) -> None:
        """Commit the message, if one began, and what was consumed."""
        self._flush()
        message_id = self._message_id
        if message_id is not None:
            content = self._content(with_calls=not partial)
            await commit(lambda: self._narrator.message_complete(message_id, content, partial=partial, used=used))
        elif used is not None:
            full, limit = used.context_tokens, used.context_limit
            await commit(lambda: self._narrator.usage(used.usage, context_tokens=full, context_limit=limit))

    def _flush(self) -> None:
        """Say what was held back while it might have become a secret."""
        self._say(self._redact_text.flush())
        self._think(self._redact_reasoning.flush())

    def _content(self, *, with_calls: bool) -> list[Block]:
        content: list[Block] = []
        if self._reasoning:
            shown = "".join(self._reasoning)
            # Signed are the very words: a thought from which a secret was taken cannot be given back.
            signature = self._signature if with_calls and shown == "".join(self._thought) else ""
            content.append(ReasoningBlock(text=shown, signature=signature or None))
        if self._text:
            content.append(TextBlock(text="".join(self._text)))
        if with_calls:
            content.extend(call.block for call in self._calls)
        return content

    def reply(self) -> Reply:
        """The whole reply, which is still to be committed."""
        self._flush()
        now = trio.current_time()
        speaking = 0.0 if self._first is None else now - self._first
        usage = Usage(
            input_tokens=self._usage.input_tokens,
            output_tokens=self._usage.output_tokens,
            cached_tokens=self._usage.cached_tokens,
            cost_usd=self._prices.cost(self._model, self._usage),
            model=self._model.name,
            duration_ms=round((now - self._began) * 1000),
            time_to_first_token_ms=None if self._first is None else round((self._first - self._began) * 1000),
            tokens_per_second=paced(self._usage.output_tokens, speaking),
        )
        text = "".join(self._text)
        message = None
        if self._message_id is not None:
            content = self._content(with_calls=True)
            message = Message(message_id=self._message_id, role="assistant", text=text, content=content)
        empty = not self._calls and not text.strip()
        return Reply(message, tuple(self._calls), usage, self._end or "stop", empty)

    async def _begin(self, characters: int) -> None:
        self._characters += characters
        if self._characters > REPLY_CHARACTERS:
            raise ModelFailed(f"The model's answer is longer than {REPLY_CHARACTERS:,} characters; it was ended.")
        if self._message_id is None:
            self._first = trio.current_time()
            self._message_id = await self._narrator.message_start()

    def _say(self, text: str) -> None:
        if text and self._message_id is not None:
            self._text.append(text)
            self._narrator.text(self._message_id, text)

    def _think(self, text: str) -> None:
        if text and self._message_id is not None:
            self._reasoning.append(text)
            self._narrator.reasoning(self._message_id, text)

    def _call(self, piece: ToolCallPiece) -> RequestedCall:
        arguments = cast("dict[str, JsonValue]", _each_text(dict(piece.arguments), scrub))
        shown = cast("dict[str, JsonValue]", _each_text(arguments, self._redaction.redact))
        name = self._redaction.redact(scrub(piece.name))
        block = ToolCallBlock(call_id=self._call_id(piece), name=name, arguments=shown)
        return RequestedCall(block, arguments, piece.problem)

    def _call_id(self, piece: ToolCallPiece) -> str:
        """The provider's id; one of ours where it gave none, or the same one twice, since results go by it."""
        given = scrub(piece.call_id)[:CALL_ID_CHARACTERS]
        if given and all(call.block.call_id != given for call in self._calls):
            return given
        return f"{self._message_id}-call-{len(self._calls) + 1}"


def _each_text(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    """`value` with every text in it changed, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_text(each, change) for each in value]
    if isinstance(value, dict):
        return {change(key): _each_text(each, change) for key, each in value.items()}
    return value
