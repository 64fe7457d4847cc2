"""A conversation in the form of chat completions: what is sent."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import JsonValue

from hermes_ws.agent.attachments import pictures_of, words_of
from hermes_ws.agent.history import calls_of, results_of
from hermes_ws.agent.models.model import Attached, ModelRequest, ToolSpec
from hermes_ws.contract.content import Message
from hermes_ws.wire.frames import encode

Reasoning = Literal["none", "low", "medium", "high"]


def body(
    model: str,
    request: ModelRequest,
    *,
    reasoning: Reasoning | None,
    temperature: float | None,
    max_tokens: int | None,
) -> bytes:
    """The body of one request. Lone surrogates in what was said become U+FFFD: a provider refuses them for ever."""
    content: dict[str, JsonValue] = {
        "model": model,
        "messages": _messages(request),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        tools: list[JsonValue] = [_tool(tool) for tool in request.tools]
        content["tools"] = tools
    if reasoning is not None:
        content["reasoning_effort"] = reasoning
    if temperature is not None:
        content["temperature"] = temperature
    if max_tokens is not None:
        content["max_tokens"] = max_tokens
    return encode(content)


def _messages(request: ModelRequest) -> list[JsonValue]:
    sent: list[JsonValue] = []
    if request.system:
        sent.append({"role": "system", "content": request.system})
    for message in request.messages:
        sent.extend(_message(message, request.attached))
    return sent


def _message(message: Message, attached: Mapping[str, Attached]) -> Sequence[dict[str, JsonValue]]:
    if message.role == "tool":
        return [
            {"role": "tool", "tool_call_id": result.call_id, "content": result.output} for result in results_of(message)
        ]
    text = words_of(message, attached)
    if message.role == "user":
        pictures: list[JsonValue] = [
            {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{base64.b64encode(data).decode()}"}}
            for kind, data in pictures_of(message, attached)
        ]
        if pictures:
            return [{"role": "user", "content": [{"type": "text", "text": text}, *pictures]}]
        return [{"role": "user", "content": text}]
    # What the model thought is not sent back: the providers that show it refuse it or charge for it.
    said: dict[str, JsonValue] = {"role": "assistant", "content": text or None}
    calls: list[JsonValue] = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for call in calls_of(message)
    ]
    if calls:
        said["tool_calls"] = calls
    return [said]


def _tool(tool: ToolSpec) -> dict[str, JsonValue]:
    function: dict[str, JsonValue] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}
