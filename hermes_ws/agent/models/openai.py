"""Any endpoint that speaks OpenAI's chat completions: OpenAI, OpenRouter, vLLM, llama.cpp, Ollama."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from hermes_ws.agent.models import chat_format
from hermes_ws.agent.models.chat_format import Reasoning
from hermes_ws.agent.models.chat_stream import ChatStream
from hermes_ws.agent.models.dialect import Dialect


def openai(
    *, reasoning: Reasoning | None = None, temperature: float | None = None, max_tokens: int | None = None
) -> Dialect:
    """Chat completions, with these settings in each request."""
    return Dialect(
        provider="openai",
        path="/chat/completions",
        what="chat completion",
        headers=_headers,
        body=partial(chat_format.body, reasoning=reasoning, temperature=temperature, max_tokens=max_tokens),
        reply=ChatStream,
    )


def _headers(key: str | None) -> Mapping[str, str]:
    return {} if key is None else {"Authorization": f"Bearer {key}"}
