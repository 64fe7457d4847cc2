"""Anthropic's messages, and whoever else speaks that protocol."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from hermes_ws.agent.models import anthropic_format
from hermes_ws.agent.models.anthropic_stream import AnthropicStream
from hermes_ws.agent.models.chat_format import Reasoning
from hermes_ws.agent.models.dialect import Dialect

VERSION: Final = "2023-06-01"
"""Of the protocol; the provider keeps it, and adds to it."""


def anthropic(
    *, reasoning: Reasoning | None = None, temperature: float | None = None, max_tokens: int | None = None
) -> Dialect:
    """Messages, with these settings in each request."""
    return Dialect(
        provider="anthropic",
        path="/messages",
        what="answer of the messages protocol",
        headers=_headers,
        body=partial(anthropic_format.body, reasoning=reasoning, temperature=temperature, max_tokens=max_tokens),
        reply=AnthropicStream,
    )


def _headers(key: str | None) -> Mapping[str, str]:
    said = {"anthropic-version": VERSION}
    return said if key is None else {**said, "x-api-key": key}
