"""A session as a text to read, or as data to keep."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, final

import orjson
from pydantic import JsonValue

from hermes_ws.contract.content import FileBlock, ImageBlock, Message, ReasoningBlock, TextBlock, ToolCallBlock
from hermes_ws.journal.sessions import SessionRecord

FORMAT: Final = "hermes-ws.session"
VERSION: Final = 1
"""Of the JSON form: what reads it looks here first."""

_WHO: Final = (("user", "User"), ("assistant", "Assistant"), ("tool", "Tools"))
_FENCE: Final = re.compile(r"`{3,}")


@final
@dataclass(frozen=True, slots=True)
class ExportedThread:
    """One thread: its id, its kind, and all that was said in it."""

    thread_id: str
    kind: str
    title: str | None
    messages: Sequence[Message]


def as_json(profile: str, record: SessionRecord, threads: Sequence[ExportedThread]) -> bytes:
    """Everything that was said, whole; a program reads it back."""
    session: dict[str, JsonValue] = {
        "session_id": record.session_id,
        "profile": profile,
        "title": record.title,
        "agent": record.agent,
        "source": record.source,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }
    content = {
        "format": FORMAT,
        "version": VERSION,
        "session": session,
        "threads": [
            {
                "thread_id": each.thread_id,
                "kind": each.kind,
                "title": each.title,
                "messages": [message.model_dump(mode="json") for message in each.messages],
            }
            for each in threads
        ],
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2)


def as_markdown(profile: str, record: SessionRecord, threads: Sequence[ExportedThread]) -> bytes:
    """The conversation, to be read. What tools were called with and gave stands in fenced blocks."""
    when = datetime.fromtimestamp(record.created_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    lines = [f"# {record.title or 'Untitled'}", "", f"Profile {profile}, agent {record.agent}, begun {when}.", ""]
    for each in threads:
        if len(threads) > 1:
            lines += [f"# {each.title or each.thread_id} ({each.kind})", ""]
        for message in each.messages:
            lines += [f"## {dict(_WHO)[message.role]}", "", *_told(message)]
    return "\n".join(lines).encode()


def _told(message: Message) -> Iterator[str]:
    blocks = message.content or [TextBlock(text=message.text)]
    for block in blocks:
        if isinstance(block, TextBlock):
            yield from (block.text, "")
        elif isinstance(block, ReasoningBlock):
            yield from ("".join(f"> {line}\n" for line in block.text.splitlines()), "")
        elif isinstance(block, ToolCallBlock):
            arguments = orjson.dumps(block.arguments, option=orjson.OPT_INDENT_2).decode()
            yield from (f"Calls `{block.name}`:", "", *_fenced(arguments, "json"))
        elif isinstance(block, ImageBlock | FileBlock):
            yield from (f"[{block.name or block.media_type}: {block.blob}]", "")
        else:
            failed = " failed" if block.is_error else ""
            yield from (f"`{block.name}`{failed}:", "", *_fenced(block.output))


def _fenced(text: str, language: str = "") -> Iterator[str]:
    """A block that the text cannot end: its fence is longer than any in it."""
    longest = max((len(found) for found in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    yield from (f"{fence}{language}", text, fence, "")
