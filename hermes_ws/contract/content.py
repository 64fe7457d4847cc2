"""What a message is made of: text, reasoning, a tool call, a tool's result. The same blocks on the wire and on disk."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from hermes_ws.contract.model import Result


class TextBlock(Result):
    """Words of the user or the model."""

    type: Literal["text"] = "text"
    text: str


class ReasoningBlock(Result):
    """What the model thought aloud, where its provider shows it. Some providers want it back as they signed it."""

    type: Literal["reasoning"] = "reasoning"
    text: str
    signature: str | None = None


class ImageBlock(Result):
    """A picture that the user attached or a tool gave: the hash of its content, which `blob.get` gives; its type."""

    type: Literal["image"] = "image"
    blob: str
    media_type: str
    name: str = ""


class FileBlock(Result):
    """A file that the user attached, likewise. `size` counts bytes."""

    type: Literal["file"] = "file"
    blob: str
    media_type: str
    name: str
    size: int


class ToolCallBlock(Result):
    """A call that the model asked for. `arguments` is what it sent, parsed."""

    type: Literal["tool_call"] = "tool_call"
    call_id: str
    name: str
    arguments: dict[str, JsonValue]


class ToolResultBlock(Result):
    """What a tool answered, as the model sees it. For the person: `images` are the pictures that came with it,
    `diff` is what changed in a file that was replaced."""

    type: Literal["tool_result"] = "tool_result"
    call_id: str
    name: str
    output: str
    is_error: bool = False
    images: list[ImageBlock] = []
    diff: str | None = None


Attachment = Annotated[ImageBlock | FileBlock, Field(discriminator="type")]

Block = Annotated[
    TextBlock | ReasoningBlock | ImageBlock | FileBlock | ToolCallBlock | ToolResultBlock, Field(discriminator="type")
]

Role = Literal["user", "assistant", "tool"]


class Message(Result):
    """One message of a thread. `text` is its text blocks joined, for those who show nothing else."""

    message_id: str
    role: Role
    text: str
    content: list[Block] = []


SUMMARY_ID = "summary"
"""The id of the message that a summary becomes for a model. No stored message has it."""


def summary_message(text: str) -> Message:
    """A summary of the older messages, as a model reads it in their place."""
    words = f"Summary of the conversation so far; what follows it is verbatim.\n\n{text}"
    return Message(message_id=SUMMARY_ID, role="user", text=words, content=[TextBlock(text=words)])


class Usage(Result):
    """What a step or an execution consumed. Tokens are counts; `cost_usd` is null where the price is not known.

    `tokens_per_second` is the pace of the output from its first token on; null where that took no time that was
    measured.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    model: str = ""
    duration_ms: int = 0
    time_to_first_token_ms: int | None = None
    tokens_per_second: float | None = None
