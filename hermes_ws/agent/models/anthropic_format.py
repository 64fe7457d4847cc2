"""A conversation in the form of Anthropic's messages: what is sent.

The ends of the tools, of the system prompt and of the two last turns are marked for the provider's cache, so that a
step of a turn pays for what is new. What the model thought goes back only as the provider signed it, which it wants for
the calls of the turn under way; where that is missing (another model, a secret in the words) the request does without
thinking.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from hermes_ws.agent.attachments import pictures_of, words_of
from hermes_ws.agent.history import calls_of, results_of
from hermes_ws.agent.models.chat_format import Reasoning
from hermes_ws.agent.models.model import ModelRequest
from hermes_ws.contract.content import Message, ReasoningBlock
from hermes_ws.wire.frames import encode

MAX_TOKENS: Final = 8192
"""Tokens that an answer may have when the profile does not say: the protocol wants a number, and all models take it."""

THINKING: Final = MappingProxyType({"low": 2048, "medium": 8192, "high": 24_576})
"""Tokens that a model may think, by how much it is asked to; the least that the provider takes is 1,024."""

_STRANGE: Final = re.compile(r"[^a-zA-Z0-9_-]")

Json = dict[str, JsonValue]


def body(
    model: str,
    request: ModelRequest,
    *,
    reasoning: Reasoning | None,
    temperature: float | None,
    max_tokens: int | None,
) -> bytes:
    """The body of one request. Lone surrogates in what was said become U+FFFD: a provider refuses them for ever."""
    budget = THINKING.get(reasoning or "") if _may_think(request.messages) else None
    most = max_tokens or MAX_TOKENS
    content: Json = {"model": model, "stream": True, "max_tokens": most if budget is None else most + budget}
    content["messages"] = _marked(_messages(request, thinking=budget is not None))
    if request.system:
        content["system"] = [{"type": "text", "text": request.system, "cache_control": _mark()}]
    if request.tools:
        tools: list[JsonValue] = [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
            for tool in request.tools
        ]
        last = tools[-1]
        if isinstance(last, dict):
            last["cache_control"] = _mark()
        content["tools"] = tools
    if budget is not None:
        content["thinking"] = {"type": "enabled", "budget_tokens": budget}
    elif temperature is not None:  # Both together are refused.
        content["temperature"] = min(temperature, 1.0)
    return encode(content)


def _mark() -> Json:
    """The end of what the provider may keep in its cache."""
    return {"type": "ephemeral"}


def call_id(given: str) -> str:
    """An id as this provider takes it; those of others may hold more characters."""
    return _STRANGE.sub("_", given)


def _may_think(messages: Sequence[Message]) -> bool:
    """Whether the calls since the last words of the user are all led by a signed thought, or there are none."""
    for message in reversed(messages):
        if message.role == "user":
            return True
        if message.role == "assistant" and calls_of(message) and _thought(message) is None:
            return False
    return True


def _thought(message: Message) -> Json | None:
    for block in message.content:
        if isinstance(block, ReasoningBlock) and block.signature:
            return {"type": "thinking", "thinking": block.text, "signature": block.signature}
    return None


def _messages(request: ModelRequest, *, thinking: bool) -> list[Json]:
    sent: list[Json] = []
    for message in request.messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, request, thinking=thinking)
        if not blocks:
            continue  # Nothing of it can be said; an empty message is refused.
        last = sent[-1]["content"] if sent and sent[-1]["role"] == role else None
        if isinstance(last, list):
            last.extend(blocks)
        else:
            sent.append({"role": role, "content": blocks})
    return sent


def _blocks(message: Message, request: ModelRequest, *, thinking: bool) -> list[JsonValue]:
    if message.role == "tool":
        return [_result(each.call_id, each.output, is_error=each.is_error) for each in results_of(message)]
    blocks: list[JsonValue] = []
    if message.role == "user":
        for media_type, data in pictures_of(message, request.attached):
            source: Json = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
            blocks.append({"type": "image", "source": source})
    else:
        thought = _thought(message) if thinking else None
        blocks.extend([] if thought is None else [thought])
    text = words_of(message, request.attached)
    if text.strip():
        blocks.append({"type": "text", "text": text})
    blocks.extend(
        {"type": "tool_use", "id": call_id(call.call_id), "name": call.name, "input": dict(call.arguments)}
        for call in calls_of(message)
    )
    return blocks


def _result(given: str, output: str, *, is_error: bool) -> Json:
    result: Json = {"type": "tool_result", "tool_use_id": call_id(given), "content": output or "(nothing)"}
    if is_error:
        result["is_error"] = True
    return result


def _marked(messages: list[Json]) -> list[JsonValue]:
    """The messages, with marks at the end of the last turn and of the user's turn before it."""
    users = [message for message in messages if message["role"] == "user"]
    for message in users[-2:]:
        blocks = message["content"]
        last = blocks[-1] if isinstance(blocks, list) else None
        if isinstance(last, dict):
            last["cache_control"] = _mark()
    return [*messages]
