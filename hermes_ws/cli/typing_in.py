"""Lines from standard input, whatever it is: a terminal, a pipe, a file, nothing."""

from __future__ import annotations

import os
from typing import final

import anyio

from hermes_ws.cli import editor

READ_BYTES = 65536
"""As much as a pipe holds."""

LINE_BYTES = 4 * 1024 * 1024
"""A line without an end is cut here; no prompt may be as long."""


@final
class Lines:
    """An async iterator of lines, without their ends. Waiting can be cancelled; no thread is left behind."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = b""
        self._ended = False
        self._offered: str | None = None
        self._prompt = ""
        self.prompting = False
        """Whether the next line comes with a prompt of its own, being edited."""

    def offer(self, text: str, prompt: str) -> bool:
        """Let the next line begin with this text. Not possible where lines were typed ahead, or without readline."""
        if self._buffer or not editor.can_edit():
            return False
        self._offered = text
        self._prompt = prompt
        self.prompting = True
        return True

    def __aiter__(self) -> Lines:
        return self

    async def __anext__(self) -> str:
        if self._offered is not None:
            return await self._edited(self._offered)
        while b"\n" not in self._buffer and len(self._buffer) < LINE_BYTES and not self._ended:
            piece = await self._read()
            self._buffer += piece
            self._ended = not piece
        if not self._buffer:
            raise StopAsyncIteration
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")

    async def _edited(self, text: str) -> str:
        """What became of the text; nothing where the line was given up."""
        try:
            return await editor.edited(text, self._prompt, self._descriptor) or ""
        except editor.Ended:
            raise StopAsyncIteration from None
        finally:
            self._offered = None
            self.prompting = False

    async def _read(self) -> bytes:
        try:
            await anyio.wait_readable(self._descriptor)
        except OSError:
            await anyio.lowlevel.checkpoint()  # a file or /dev/null: it never blocks, and cannot be waited for
        try:
            return os.read(self._descriptor, READ_BYTES)
        except OSError:
            return b""  # the terminal is gone
