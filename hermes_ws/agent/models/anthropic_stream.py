"""The stream of an answer in Anthropic's messages protocol: events in, pieces out, no I/O."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final, cast, final

from hermes_ws.agent.models.chat_stream import ARGUMENT_CHARACTERS, CALLS, count, joined, read_arguments, record
from hermes_ws.agent.models.dialect import Malformed
from hermes_ws.agent.models.endpoint import Transient, error_in, may_pass
from hermes_ws.agent.models.model import (
    EndPiece,
    EndReason,
    Piece,
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    ToolNamePiece,
    UsagePiece,
)
from hermes_ws.contract.errors import ModelFailed

_LENGTH: Final = ("max_tokens", "model_context_window_exceeded")


@final
@dataclass(slots=True)
class _Call:
    call_id: str
    name: str
    given: dict[str, object] | None
    """The arguments, where they came at once."""
    arguments: list[str] = field(default_factory=list[str])


@final
class AnthropicStream:
    """Reads one stream; see `ReplyStream`."""

    def __init__(self) -> None:
        self.began = False
        self.finished = False
        self.over = False
        self._reason: EndReason = "stop"
        self._calls: dict[int, _Call] = {}
        self._thoughts = 0
        self._signature = ""
        self._usage: dict[str, int] = {}
        self._characters = 0

    def feed(self, data: str) -> list[Piece]:
        """One event's data. Raises Malformed for what is none, ModelFailed or Transient for an error in it."""
        try:
            event = record(cast("object", json.loads(data)))
        except (ValueError, RecursionError):
            raise Malformed from None
        kind = None if event is None else event.get("type")
        if event is None or not isinstance(kind, str):
            raise Malformed
        wrong = error_in(event)
        if wrong is not None:
            failed = ModelFailed(f"The model broke off: {wrong}")
            raise Transient(failed) if may_pass(event) and not self.began else failed
        match kind:
            case "message_start":
                self._count((record(event.get("message")) or {}).get("usage"))
            case "content_block_start":
                return self._block(event.get("index"), record(event.get("content_block")) or {})
            case "content_block_delta":
                return self._delta(event.get("index"), record(event.get("delta")) or {})
            case "message_delta":
                self._count(event.get("usage"))
                self._stopped((record(event.get("delta")) or {}).get("stop_reason"))
            case "message_stop":
                self.over, self.finished = True, True
            case "message":
                return self._whole(event)
            case _:
                pass  # A ping, or an event of a later version: the protocol wants both passed over.
        return []

    def end(self) -> list[Piece]:
        """The signature of the thought, the calls, and the last pieces of a whole reply."""
        pieces: list[Piece] = []
        if self._signature and self._thoughts == 1:
            pieces.append(ReasoningPiece("", self._signature))
        pieces.extend(_piece(call) for _, call in sorted(self._calls.items()))
        usage = self._usage
        if usage:
            cached = usage.get("cache_read_input_tokens", 0)
            read = usage.get("input_tokens", 0) + cached + usage.get("cache_creation_input_tokens", 0)
            pieces.append(UsagePiece(read, usage.get("output_tokens", 0), cached))
        reason = "tool_calls" if self._calls and self._reason == "stop" else self._reason
        return [*pieces, EndPiece(reason)]

    def _block(self, index: object, block: dict[str, object]) -> list[Piece]:
        match block.get("type"):
            case "text":
                return self._said(block.get("text"))
            case "thinking":
                self._thoughts += 1
                return self._thought(block.get("thinking"))
            case "redacted_thinking":
                self._thoughts += 2  # It cannot be given back as what it was; so no thought of this reply is.
                self.began = True
            case "tool_use":
                self.began = True
                if len(self._calls) >= CALLS:
                    raise ModelFailed(f"The model made more than {CALLS} calls in one reply.")
                at = index if isinstance(index, int) else len(self._calls)
                name = _text(block.get("name"))
                self._calls[at] = _Call(_text(block.get("id")), name, record(block.get("input")))
                return [ToolNamePiece(name)] if name else []
            case _:
                pass
        return []

    def _delta(self, index: object, delta: dict[str, object]) -> list[Piece]:
        match delta.get("type"):
            case "text_delta":
                return self._said(delta.get("text"))
            case "thinking_delta":
                return self._thought(delta.get("thinking"))
            case "signature_delta":
                self._signature += _text(delta.get("signature"))
            case "input_json_delta":
                call = self._calls.get(index) if isinstance(index, int) else None
                piece = _text(delta.get("partial_json"))
                self._characters += len(piece)
                if self._characters > ARGUMENT_CHARACTERS:
                    raise ModelFailed(
                        f"The model's calls are longer than {ARGUMENT_CHARACTERS:,} characters; it was ended."
                    )
                if call is not None:
                    call.arguments.append(piece)
            case _:
                pass
        return []

    def _whole(self, message: dict[str, object]) -> list[Piece]:
        """An answer that came at once, from a server that does not stream."""
        pieces: list[Piece] = []
        content = message.get("content")
        for index, block in enumerate(cast("list[object]", content) if isinstance(content, list) else []):
            fields = record(block) or {}
            pieces.extend(self._block(index, fields))
            self._signature += _text(fields.get("signature"))
        self._count(message.get("usage"))
        self._stopped(message.get("stop_reason") or "end_turn")
        return pieces

    def _said(self, text: object) -> list[Piece]:
        said = joined(_text(text))
        self.began = self.began or bool(said)
        return [TextPiece(said)] if said else []

    def _thought(self, text: object) -> list[Piece]:
        thought = joined(_text(text))
        self.began = self.began or bool(thought)
        return [ReasoningPiece(thought)] if thought else []

    def _stopped(self, reason: object) -> None:
        if not isinstance(reason, str) or not reason:
            return
        self.finished = True
        if reason in _LENGTH:
            self._reason = "length"
        elif reason == "refusal":
            self._reason = "filtered"
        else:
            self._reason = "tool_calls" if reason == "tool_use" else "stop"

    def _count(self, usage: object) -> None:
        fields = record(usage) or {}
        names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        self._usage.update({name: count(fields[name]) for name in names if fields.get(name) is not None})


def _piece(call: _Call) -> ToolCallPiece:
    text = "".join(call.arguments)
    if not text.strip() and call.given is not None:
        text = json.dumps(call.given)
    return read_arguments(call.call_id, call.name, text)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
