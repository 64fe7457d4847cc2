"""What the server asks of a warden about files: each an order with a deadline of its own, answered through a pipe."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import final

from hermes_ws.contract import errors
from hermes_ws.warden import answers, orders
from hermes_ws.warden.check import checked_path
from hermes_ws.warden.grants import Entry, FileRead, FileWritten, Found, Listed, Looking, Match
from hermes_ws.warden.output import Bounded, Sink

FILE_DEADLINE_S = 30.0
"""Seconds for one file operation: a network file system that takes longer has gone away."""

READ_BYTES = 1024 * 1024
"""What one reading of a file returns unless asked otherwise."""

FILE_BYTES = 32 * 1024 * 1024
"""The most that one operation reads or writes: it is in memory on both sides."""

TOLD_BYTES = 8 * 1024 * 1024
"""The most that a listing or a search answers with: ten thousand lines of eight hundred bytes."""

NAME_CHARACTERS = 4096
"""The longest path of the kernel; a longer name is not from us."""

LINE_CHARACTERS = 1000
"""What is believed of a line that matches; the warden sends less."""

Perform = Callable[[dict[str, object], Sequence[bytes], Sink, float], Awaitable[tuple[answers.Ended, bool]]]
"""Give an order and see it through: how it ended, and whether its deadline passed."""


@final
class Filing:
    """The files that one warden may touch."""

    def __init__(self, perform: Perform) -> None:
        self._perform = perform

    async def read(self, path: Path, offset: int, limit: int) -> FileRead:
        """At most `limit` bytes of a regular file."""
        if not 0 <= limit <= FILE_BYTES or offset < 0:
            raise errors.InvalidParams(f"A file is read from 0 on, at most {FILE_BYTES} bytes at once.")
        order: dict[str, object] = {"op": orders.READ, "path": checked_path(path), "offset": offset, "limit": limit}
        header, data = answers.file_header(await self._operate(order, (), path, limit), path)
        return FileRead(data, _size(header))

    async def write(self, path: Path, data: bytes) -> FileWritten:
        """Replace a file, or make it and its parents."""
        if len(data) > FILE_BYTES:
            raise errors.InvalidParams(f"At most {FILE_BYTES} bytes are written at once.")
        order: dict[str, object] = {"op": orders.WRITE, "path": checked_path(path)}
        header, _ = answers.file_header(await self._operate(order, (data,), path, 0), path)
        return FileWritten(_size(header), header.get("created") is True)

    async def list(self, path: Path, *, depth: int, limit: int, hidden: bool, pattern: str | None) -> Listed:
        """The entries below a directory."""
        order: dict[str, object] = {
            "op": orders.LIST,
            "path": checked_path(path),
            "depth": depth,
            "limit": limit,
            "hidden": hidden,
            "pattern": pattern,
        }
        told, more = answers.lines(await self._operate(order, (), path, TOLD_BYTES), path)
        return Listed(tuple(_entry(line) for line in told[:limit]), more or len(told) > limit)

    async def search(self, path: Path, what: Looking) -> Found:
        """The lines below a directory, or of a file, in which something is found."""
        order: dict[str, object] = {
            "op": orders.SEARCH,
            "path": checked_path(path),
            "expression": what.expression,
            "literal": what.literal,
            "ignore_case": what.ignore_case,
            "pattern": what.pattern,
            "limit": what.limit,
        }
        told, more = answers.lines(await self._operate(order, (), path, TOLD_BYTES), path)
        return Found(tuple(_match(line) for line in told[: what.limit]), more or len(told) > what.limit)

    async def _operate(self, order: dict[str, object], contents: Sequence[bytes], path: Path, limit: int) -> bytes:
        kept = Bounded(limit + orders.HEADER_BYTES)
        ended, timed_out = await self._perform(order, contents, kept, FILE_DEADLINE_S)
        if timed_out and order["op"] not in (orders.LIST, orders.SEARCH):
            raise errors.FileFailed(f"{path} took longer than {FILE_DEADLINE_S:.0f} s.")
        if ended.stage is not None:
            raise answers.not_started(ended, path)
        return kept.result()


def _size(header: answers.Header) -> int:
    try:
        return orders.integer(header, "size")
    except orders.Malformed as error:
        raise errors.WardenFailed("The warden answered with nonsense.") from error


def _entry(line: answers.Header) -> Entry:
    try:
        kind = orders.text(line, "kind")
        if kind not in ("file", "directory", "link", "other"):
            raise orders.Malformed("no such kind")
        name = orders.text(line, "name")[:NAME_CHARACTERS]
        return Entry(name, kind, orders.integer(line, "size"))
    except orders.Malformed as error:
        raise errors.WardenFailed("The warden answered with nonsense.") from error


def _match(line: answers.Header) -> Match:
    try:
        text = orders.text(line, "text")[:LINE_CHARACTERS]
        return Match(orders.text(line, "name")[:NAME_CHARACTERS], orders.integer(line, "line"), text)
    except orders.Malformed as error:
        raise errors.WardenFailed("The warden answered with nonsense.") from error
