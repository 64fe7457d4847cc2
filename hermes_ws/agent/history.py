"""Keeping a history valid for the next request, whatever interrupted the last one.

Every call must be followed by its result, and every result must answer a call; providers refuse anything else. A turn
leaves it so by itself. What a crash left behind is mended here, when it is read, and never on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hermes_ws.contract.content import Message, TextBlock, ToolCallBlock, ToolResultBlock

LOST: Final = (
    "The result of this call is not known: the server ended while it ran. It may or may not have taken effect."
)


def calls_of(message: Message) -> list[ToolCallBlock]:
    """The calls that a message makes, in order."""
    return [block for block in message.content if isinstance(block, ToolCallBlock)]


def results_of(message: Message) -> list[ToolResultBlock]:
    """The results that a message brings, in order."""
    return [block for block in message.content if isinstance(block, ToolResultBlock)]


def text_of(message: Message) -> str:
    """The words of a message."""
    return "".join(block.text for block in message.content if isinstance(block, TextBlock)) or message.text


def repaired(messages: Sequence[Message]) -> list[Message]:
    """The same history with a result after each call, no result without one, and no message that says nothing."""
    mended: list[Message] = []
    waiting: Message | None = None
    answers: dict[str, ToolResultBlock] = {}
    for message in messages:
        if message.role == "tool" and waiting is not None:
            for result in results_of(message):
                answers.setdefault(result.call_id, result)
            continue
        if waiting is not None:
            mended.append(_answered(waiting, answers))
            waiting = None
        if message.role == "tool":
            continue
        if message.role == "assistant" and not text_of(message) and not calls_of(message):
            continue
        mended.append(message)
        if calls_of(message):
            waiting, answers = message, {}
    if waiting is not None:
        mended.append(_answered(waiting, answers))
    return mended


def _answered(asked: Message, answers: dict[str, ToolResultBlock]) -> Message:
    results = [
        answers.get(call.call_id) or ToolResultBlock(call_id=call.call_id, name=call.name, output=LOST, is_error=True)
        for call in calls_of(asked)
    ]
    return Message(message_id=f"{asked.message_id}-results", role="tool", text="", content=list(results))
