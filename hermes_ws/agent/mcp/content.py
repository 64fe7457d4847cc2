"""What a tool server answered, as a model reads it."""

from __future__ import annotations

import json
from collections.abc import Sequence

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

from hermes_ws.agent.deeds import ToolOutcome


def shown(result: CallToolResult) -> ToolOutcome:
    """Text as it is; pictures and sounds described; structured content where there is nothing else."""
    parts = [_part(each) for each in result.content]
    if not any(parts) and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False, indent=1)]
    return ToolOutcome("\n".join(each for each in parts if each) or "(no output)", is_error=result.is_error)


def _part(content: object) -> str:
    match content:
        case TextContent(text=text):
            return text
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
