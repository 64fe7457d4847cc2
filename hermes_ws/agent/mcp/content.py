"""What a tool server answered, as a model reads it."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from hermes_ws.agent.attachments import IMAGE_BYTES, IMAGE_TYPES
from hermes_ws.agent.deeds import Picture, ToolOutcome

PICTURES: Final = 20
"""Pictures of one answer that are kept: more are a film, and a transcript is not looked at for one."""


def shown(result: CallToolResult) -> ToolOutcome:
    """Text as it is; pictures for the person; what cannot be shown described; structured content where there is
    nothing else."""
    pictures = [picture for each in result.content if (picture := _picture(each)) is not None][:PICTURES]
    parts = [_part(each) for each in result.content]
    if not any(parts) and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False, indent=1)]
    return ToolOutcome(
        "\n".join(each for each in parts if each) or "(no output)",
        is_error=result.is_error,
        pictures=tuple(pictures),
    )


def _picture(content: object) -> Picture | None:
    """A picture of a kind that is shown, and small enough for that."""
    if not isinstance(content, ImageContent) or content.mime_type not in IMAGE_TYPES:
        return None
    if _bytes(content.data) > IMAGE_BYTES:
        return None
    with suppress(ValueError):
        return Picture(content.mime_type, base64.b64decode(content.data, validate=True))
    return None


def _part(content: object) -> str:
    match content:
        case TextContent(text=text):
            return text
        case ImageContent(mime_type=kind, data=data) if _picture(content) is not None:
            return f"[{kind}, {_bytes(data):,} bytes, shown to the person]"
        case ImageContent(mime_type=kind, data=data) | AudioContent(mime_type=kind, data=data):
            return f"[{kind}, {_bytes(data):,} bytes, not shown]"
        case ResourceLink(uri=uri, name=name):
            return f"[{name}: {uri}]"
        case EmbeddedResource(resource=TextResourceContents(text=text)):
            return text
        case EmbeddedResource(resource=BlobResourceContents(mime_type=kind, blob=data)):
            return f"[{kind or 'binary data'}, {_bytes(data):,} bytes, not shown]"
        case _:
            return ""


def _bytes(encoded: Sequence[str] | str) -> int:
    """How many bytes base64 text stands for."""
    return len(encoded) * 3 // 4
