"""The stream of a chat completion, piece by piece: chunks in, pieces out, no I/O.

Providers differ in the details, and the reader takes what can be understood: calls in fragments by index, by id or
whole; reasoning under either of its names; usage in the last chunk or in every one; a whole message instead of deltas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast, final

from pydantic import JsonValue

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

ARGUMENT_CHARACTERS: Final = 4_000_000
"""Of all calls of one reply together: more than a model says, less than hurts."""

CALLS: Final = 256
"""Calls that are collected of one reply, for the same reason."""

_HIGH: Final = re.compile("[\ud800-\udbff]\\Z")


@final
@dataclass(slots=True)
class _Fragments:
    """A call as it comes."""

    call_id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])


@final
class ChatStream:
    """Reads one stream of chunks; see `ReplyStream`."""

    def __init__(self) -> None:
        self.began = False
        self.finished = False
        self.over = False
        self._reason: EndReason = "stop"
        self._calls: list[_Fragments] = []
        self._by_index: dict[int, _Fragments] = {}
        self._usage: UsagePiece | None = None
        self._held_text = ""
        self._held_reasoning = ""
        self._characters = 0

    def feed(self, data: str) -> list[Piece]:
        """One chunk. Raises Malformed for what is none, ModelFailed or Transient for an error in it."""
        if data.strip() == "[DONE]":
            # The provider says that the stream is over, perhaps without having said why.
            self.over, self.finished = True, self.finished or self.began
            return []
        chunk = record(_parsed(data))
        if chunk is None:
            raise Malformed
        wrong = error_in(chunk)
        if wrong is not None:
            failed = ModelFailed(f"The model broke off: {wrong}")
            raise Transient(failed) if may_pass(chunk) and not self.began else failed
        self._usage = _usage(chunk.get("usage")) or self._usage
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            if self._usage is None and "choices" not in chunk:
                raise Malformed
            return []
        for choice in cast("list[object]", choices):
            fields = record(choice)
            if fields is not None and fields.get("index", 0) in (0, None):
                return self._choice(fields)
        return []

    def end(self) -> list[Piece]:
        """What was held back, the calls, and the last pieces of a whole reply. Call it once `finished`."""
        pieces: list[Piece] = []
        if self._held_reasoning:
            pieces.append(ReasoningPiece(self._held_reasoning))
        if self._held_text:
            pieces.append(TextPiece(self._held_text))
        pieces.extend(read_arguments(each.call_id, each.name, "".join(each.arguments)) for each in self._calls)
        if self._usage is not None:
            pieces.append(self._usage)
        reason = "tool_calls" if self._calls and self._reason == "stop" else self._reason
        return [*pieces, EndPiece(reason)]

    def _choice(self, choice: Mapping[str, object]) -> list[Piece]:
        delta = record(choice.get("delta")) or record(choice.get("message")) or {}
        pieces: list[Piece] = []
        thought = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
        if thought:
            self.began = True
            whole, self._held_reasoning = _whole(self._held_reasoning + thought)
            pieces.extend([ReasoningPiece(whole)] if whole else [])
        said = _text(delta.get("content")) + _text(delta.get("refusal"))
        if said:
            self.began = True
            whole, self._held_text = _whole(self._held_text + said)
            pieces.extend([TextPiece(whole)] if whole else [])
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            for call in cast("list[object]", calls):
                pieces.extend(self._fragment(record(call) or {}))
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finished = True
            self._reason = _reason(reason)
        return pieces

    def _fragment(self, call: Mapping[str, object]) -> list[Piece]:
        function = record(call.get("function")) or {}
        call_id, name = _text(call.get("id")), _text(function.get("name"))
        fragments = self._slot(call.get("index"), call_id, name)
        self.began = True
        named = [] if fragments.name or not name else [ToolNamePiece(name)]
        fragments.call_id = fragments.call_id or call_id
        fragments.name = fragments.name or name
        arguments = function.get("arguments")
        text = json.dumps(arguments) if isinstance(arguments, dict) else _text(arguments)
        self._characters += len(text)
        if self._characters > ARGUMENT_CHARACTERS:
            raise ModelFailed(f"The model's calls are longer than {ARGUMENT_CHARACTERS:,} characters; it was ended.")
        if text:
            fragments.arguments.append(text)
        return [*named]

    def _slot(self, index: object, call_id: str, name: str) -> _Fragments:
        """The call that a fragment belongs to. Some providers give every call the index 0, some give none at all."""
        known = self._by_index.get(index) if isinstance(index, int) else (self._calls[-1] if self._calls else None)
        if known is not None and not (call_id and known.call_id and call_id != known.call_id and name):
            return known
        if len(self._calls) >= CALLS:
            raise ModelFailed(f"The model made more than {CALLS} calls in one reply.")
        fresh = _Fragments()
        self._calls.append(fresh)
        if isinstance(index, int):
            self._by_index[index] = fresh
        return fresh


def read_arguments(call_id: str, name: str, text: str) -> ToolCallPiece:
    """A whole call; one that cannot be made says why, so that the model can mend it."""
    problem = ""
    arguments: object = {}
    if not name:
        problem = "it names no tool."
    elif text.strip():
        arguments = _parsed(text)
        if not isinstance(arguments, dict):
            problem = f"its arguments are not a JSON object. They began with: {text[:200]}"
            arguments = {}
    read = cast("dict[str, JsonValue]", arguments)
    return ToolCallPiece(call_id, name or "(unnamed)", read, problem)


def _parsed(text: str) -> object:
    """The JSON value of a text; None when it is none."""
    try:
        return cast("object", json.loads(text, parse_constant=_no_number))
    except (ValueError, RecursionError):
        return None


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not JSON (RFC 8259, section 6)")


def record(value: object) -> dict[str, object] | None:
    """The value, if it is a JSON object."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def _text(value: object) -> str:
    """A text, or the texts of a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts: Sequence[object] = cast("list[object]", value)
        return "".join(_text((record(part) or {}).get("text")) for part in parts)
    return ""


def _whole(text: str) -> tuple[str, str]:
    """`text` without, and what it ends with of, half a character: escaped pairs are split between chunks."""
    return (text[:-1], text[-1]) if _HIGH.search(text) else (joined(text), "")


def joined(text: str) -> str:
    """The text with surrogate pairs as the characters they are, and lone ones replaced."""
    if max(text, default="") < "\ud800":
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _usage(value: object) -> UsagePiece | None:
    usage = record(value)
    if usage is None:
        return None
    details = record(usage.get("prompt_tokens_details")) or {}
    return UsagePiece(
        count(usage.get("prompt_tokens")), count(usage.get("completion_tokens")), count(details.get("cached_tokens"))
    )


def count(value: object) -> int:
    """A number of tokens; 0 for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else 0


def _reason(text: str) -> EndReason:
    if text in ("length", "max_tokens"):
        return "length"
    if text == "content_filter":
        return "filtered"
    return "tool_calls" if text in ("tool_calls", "function_call") else "stop"
