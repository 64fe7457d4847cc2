"""What is attached to inputs: checked when it is admitted, read when a turn begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hermes_ws.agent.attachments import IMAGE_BYTES, IMAGE_TYPES
from hermes_ws.agent.models.model import Attached
from hermes_ws.contract.content import Attachment, FileBlock, ImageBlock, Message
from hermes_ws.contract.errors import InvalidParams, NotFound
from hermes_ws.contract.methods import prompts
from hermes_ws.journal.blobs import Blob, Blobs
from hermes_ws.scope.secrets import Secrets

FILE_BYTES: Final = 1024 * 1024
"""Read of one file: more than a model is shown of it."""

TURN_BYTES: Final = 32 * 1024 * 1024
"""Of all that is attached in a thread, read for one turn, the newest first; providers take no larger request."""


async def checked(blobs: Blobs, attached: Sequence[prompts.Attached]) -> list[tuple[Attachment, Blob]]:
    """Blocks for what is attached. Raises `InvalidParams` for a blob that is not there, or a picture nobody takes."""
    found: list[tuple[Attachment, Blob]] = []
    for number, each in enumerate(attached):
        path = f"attached.{number}"
        size = await blobs.size(each.blob)
        if size is None:
            raise InvalidParams("There is no such blob.", path=f"{path}.blob", hint="Put it with blob.put first.")
        block: Attachment
        if each.media_type in IMAGE_TYPES:
            if size > IMAGE_BYTES:
                raise InvalidParams(f"A picture has at most {IMAGE_BYTES:,} bytes.", path=f"{path}.blob")
            block = ImageBlock(blob=each.blob, media_type=each.media_type, name=each.name)
        else:
            name = each.name or "a file"
            block = FileBlock(blob=each.blob, media_type=each.media_type, name=name, size=size)
        found.append((block, Blob(each.blob, size)))
    return found


async def read(blobs: Blobs, history: Sequence[Message], secrets: Secrets) -> Mapping[str, Attached]:
    """The contents of what is attached in a history, by hash. Text is redacted like everything a model reads."""
    found: dict[str, Attached] = {}
    left = TURN_BYTES
    for message in reversed(history):
        for block in message.content:
            if not isinstance(block, ImageBlock | FileBlock) or block.blob in found or left <= 0:
                continue
            most = IMAGE_BYTES if isinstance(block, ImageBlock) else FILE_BYTES
            try:
                data = await blobs.read(block.blob, 0, min(most, left))
            except NotFound:
                continue
            left -= len(data)
            text = None if isinstance(block, ImageBlock) else _text(data)
            found[block.blob] = Attached(data, None if text is None else secrets.redact(text))
    return found


def _text(data: bytes) -> str | None:
    """The words of a file; None for one that is no text."""
    if b"\0" in data[:8192]:
        return None
    return data.decode(errors="replace")
