"""What a user attached, as a model is given it: pictures as pictures, files as their text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hermes_ws.agent.history import text_of
from hermes_ws.agent.models.model import Attached
from hermes_ws.contract.content import FileBlock, ImageBlock, Message

FILE_CHARACTERS: Final = 60_000
"""Of one file that are shown: some 15,000 tokens. What is longer belongs into the session's directory."""

IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What the providers take as a picture."""

IMAGE_BYTES: Final = 5 * 1024 * 1024
"""The largest picture that every provider takes."""


def words_of(message: Message, attached: Mapping[str, Attached]) -> str:
    """What a message says in words: its text, its files, and what is to be said of pictures that cannot be shown."""
    said = [text_of(message)]
    for block in message.content:
        if isinstance(block, FileBlock):
            said.append(_file(block, attached.get(block.blob)))
        elif isinstance(block, ImageBlock) and block.blob not in attached:
            said.append(f"[The user attached a picture, {block.name or block.media_type}, which is no longer there.]")
    return "\n\n".join(each for each in said if each)


def pictures_of(message: Message, attached: Mapping[str, Attached]) -> list[tuple[str, bytes]]:
    """The pictures of a message, each as media type and content."""
    images = [block for block in message.content if isinstance(block, ImageBlock)]
    return [(block.media_type, attached[block.blob].data) for block in images if block.blob in attached]


def _file(block: FileBlock, content: Attached | None) -> str:
    head = f"[The user attached {block.name}: {block.media_type}, {block.size:,} bytes"
    if content is None:
        return f"{head}, which is no longer there.]"
    if content.text is None:
        return f"{head}. It is no text, so its content is not shown.]"
    cut = content.text[:FILE_CHARACTERS]
    more = f"\n[… {len(content.text) - len(cut):,} characters more]" if len(cut) < len(content.text) else ""
    return f"{head}:]\n{cut}{more}"
