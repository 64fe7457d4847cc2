"""The model without a network: deterministic, and able to walk every path of the product.

It says what it was asked and which tools it has, and follows the `/do` lines of the user's text (see `script.py`).
When tools have answered it quotes each answer, so that what a tool saw can be read in the transcript. The same history
and tools always give the same pieces.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Final, final

import trio

from hermes_ws.agent import titling
from hermes_ws.agent.compaction import INSTRUCTIONS
from hermes_ws.agent.history import calls_of, results_of, text_of
from hermes_ws.agent.models.model import (
    EndPiece,
    ModelRequest,
    Piece,
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    ToolNamePiece,
    ToolSpec,
    UsagePiece,
)
from hermes_ws.agent.models.script import Call, Fail, Report, Say, Script, Step, Stream, Think, Wait, read
from hermes_ws.contract.content import Message
from hermes_ws.contract.errors import (
    LaunchCredentialsUnavailable,
    ModelFailed,
    ModelRateLimited,
    ModelUnauthorised,
)

QUOTED_LINES: Final = 12
"""Lines of a tool's answer that are quoted: enough to see what it was, with the whole in the event of the tool."""

QUOTED_CHARACTERS: Final = 2000
"""Characters of a tool's answer that are quoted."""

SUMMARY_LINE: Final = 120
"""Characters of each line of the user that a summary quotes."""

_WORDS: Final = re.compile(r"\s*\S+|\s+\Z")
_FAILURES: Final = (ModelFailed, ModelUnauthorised, ModelRateLimited, LaunchCredentialsUnavailable)


@final
class LoopbackModel:
    """The embedded default."""

    provider = "loopback"

    def __init__(self, name: str = "loopback") -> None:
        self.name = name

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[Piece], None]:
        """Stream one reply; see `Model`. Raises what `/do fail` names."""
        async with aclosing(_reply(request)) as pieces:
            yield pieces

    async def aclose(self) -> None:
        """There is nothing to let go of."""


async def _reply(request: ModelRequest) -> AsyncGenerator[Piece, None]:
    aside = {INSTRUCTIONS: _summary, titling.INSTRUCTIONS: _title}.get(request.system)
    if aside is not None:
        async for piece in aside(request):
            yield piece
        return
    asked = _last_question(request.messages)
    script = read(text_of(request.messages[asked])) if asked is not None else Script("", ())
    since = request.messages[asked + 1 :] if asked is not None else ()
    batches = sum(1 for message in since if message.role == "assistant" and calls_of(message))
    steps = script.reply(batches)
    counted = Report(sum(len(text_of(message).split()) for message in request.messages), 0)
    spoken = 0
    for text in _opening(script, since, batches, request.tools):
        for word in _WORDS.findall(text):
            await trio.lowlevel.checkpoint()
            spoken += 1
            yield TextPiece(word)
    calls = sum(len(calls_of(message)) for message in request.messages)
    for step in steps:
        async with aclosing(_pieces(step, calls + 1)) as pieces:
            async for piece in pieces:
                spoken += isinstance(piece, TextPiece | ReasoningPiece)
                calls += isinstance(piece, ToolCallPiece)
                yield piece
        if isinstance(step, Report):
            counted = step
    yield UsagePiece(counted.input_tokens, counted.output_tokens or spoken)
    yield EndPiece("tool_calls" if steps and isinstance(steps[-1], Call) else "stop")


async def _summary(request: ModelRequest) -> AsyncGenerator[Piece, None]:
    """What a summary of a conversation is made of here: the beginning of what was said in it, in a few words."""
    said = [line for message in request.messages for line in text_of(message).splitlines()]
    words = [line.removeprefix("user> ") for line in said if line.startswith("user> ")]
    quoted = "; ".join(line[:SUMMARY_LINE] for line in words[:QUOTED_LINES])
    await trio.lowlevel.checkpoint()
    yield TextPiece(f"{len(said)} lines were summarised. The user said: {quoted}.")
    yield UsagePiece(sum(len(line.split()) for line in said), 1)
    yield EndPiece("stop")


async def _title(request: ModelRequest) -> AsyncGenerator[Piece, None]:
    """What a conversation is called here: what its user said first."""
    said = [line for message in request.messages for line in text_of(message).splitlines()]
    asked = "\n".join(line.removeprefix("user> ") for line in said if line.startswith("user> "))
    await trio.lowlevel.checkpoint()
    yield TextPiece(titling.first_words(asked))
    yield EndPiece("stop")


def _last_question(messages: Sequence[Message]) -> int | None:
    return next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role == "user"), None)


def _opening(script: Script, since: Sequence[Message], batches: int, tools: Sequence[ToolSpec]) -> list[str]:
    """What a reply begins with: an answer to the words, or what the tools said."""
    if batches:
        answered = next((message for message in reversed(since) if message.role == "tool"), None)
        results = results_of(answered) if answered is not None else []
        return [f"{result.name} → {_first_lines(result.output)}\n\n" for result in results]
    if script.words:
        return [_answer(script, tools)]
    return [] if script.replies else [_answer(script, tools)]


def _answer(script: Script, tools: Sequence[ToolSpec]) -> str:
    asked = f"You asked: “{script.words}”" if script.words else "You asked nothing in words."
    if script.replies:
        return f"{asked}\n\n"
    if tools:
        listed = "\n".join(f"- {tool.name}: {tool.description}" for tool in tools)
        able = f"I have these tools:\n\n{listed}\n\n"
    else:
        able = "I have no tools in this conversation.\n\n"
    return (
        f"{asked}\n\nI am the loopback model. I run inside the server, need no key and no network, and always answer "
        f"the same. {able}Begin a line with /do to have me do something, for example “/do run ls”, or set a provider "
        "in the profile's config.yaml to talk to a real model.\n"
    )


def _first_lines(output: str) -> str:
    lines = output.splitlines()
    quoted = "\n".join(lines[:QUOTED_LINES])[:QUOTED_CHARACTERS]
    return f"{quoted}\n…" if len(quoted) < len(output.rstrip("\n")) else quoted


async def _pieces(step: Step, call_number: int) -> AsyncGenerator[Piece, None]:
    match step:
        case Say(text):
            for word in _WORDS.findall(f"{text}\n"):
                await trio.lowlevel.checkpoint()
                yield TextPiece(word)
        case Think(text):
            for word in _WORDS.findall(f"{text}\n"):
                await trio.lowlevel.checkpoint()
                yield ReasoningPiece(word)
        case Stream(pieces, pause_s, characters):
            for number in range(1, pieces + 1):
                await trio.sleep(pause_s)
                yield TextPiece(f"{number} ".rjust(characters, ".")[-characters:])
        case Wait(seconds):
            await trio.sleep(seconds)
        case Fail(type):
            raise _failure(type)
        case Call(name, arguments):
            yield ToolNamePiece(name)
            yield ToolCallPiece(f"call-{call_number}", name, arguments)
        case Report():
            await trio.lowlevel.checkpoint()


def _failure(type: str) -> ModelFailed:
    for kind in _FAILURES:
        if kind.type == type:
            return kind(f"The script asked for a failure of type {type}.")
    known = ", ".join(kind.type for kind in _FAILURES)
    return ModelFailed(f"The script asked for a failure of type {type[:100]}.", hint=f"Types of failure: {known}.")
