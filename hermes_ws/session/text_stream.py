"""Bytes of a child as they come, told as text."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import final

from hermes_ws.scope.redaction import Redactor


@final
class TextStream:
    """No character is split, and no secret is told in two halves. Without a redactor the text is told as it is."""

    def __init__(self, redactor: Redactor | None, tell: Callable[[str], None]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._redactor = redactor
        self._tell = tell

    def feed(self, data: bytes) -> None:
        """More output."""
        text = self._decoder.decode(data)
        self._say(text if self._redactor is None else self._redactor.feed(text))

    def flush(self) -> None:
        """There is no more."""
        text = self._decoder.decode(b"", final=True)
        self._say(text if self._redactor is None else self._redactor.feed(text) + self._redactor.flush())

    def _say(self, text: str) -> None:
        if text:
            self._tell(text)
