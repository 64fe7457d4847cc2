"""The tools that read and write one file."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path
from typing import Final

from pydantic import Field

from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.tools.output import fit
from hermes_ws.agent.tools.tool import Need, Subject, ToolContext, tool
from hermes_ws.contract.errors import HermesError, InvalidParams
from hermes_ws.contract.model import Params

READ_BYTES: Final = 2 * 1024 * 1024
"""How far into a file lines are looked for. Decoding this much takes milliseconds; beyond it the terminal is better."""

WRITE_CHARACTERS: Final = 1_000_000
"""Longest content of one write, well above what a model can say in one reply."""

COMPARED_BYTES: Final = 256 * 1024
"""Largest file of which it is told what changes in it."""

COMPARED_LINES: Final = 4000
"""Of either side: comparing twice as many takes four times as long, and nothing else runs meanwhile."""

DIFF_CHARACTERS: Final = 16 * 1024
"""Of a difference that is told: some hundred lines, more than anybody reads of one call."""

_READS: Final[frozenset[Need]] = frozenset({"reads"})
_WRITES: Final[frozenset[Need]] = frozenset({"writes"})

PathText = Field(min_length=1, max_length=4096, description="Absolute, or relative to the session's directory.")


class ReadParams(Params):
    """A file and, optionally, a range of its lines."""

    path: str = PathText
    offset: int = Field(default=1, ge=1, description="First line to return, counted from 1.")
    limit: int | None = Field(default=None, ge=1, description="How many lines to return; all when left out.")


class WriteParams(Params):
    """A file and its whole new content."""

    path: str = PathText
    content: str = Field(max_length=WRITE_CHARACTERS, description="The whole new content.")


def place(path: str, cwd: Path) -> Path:
    """Where `path` is meant to be. Raises InvalidParams for what a shell would have expanded, and for NUL."""
    if path.startswith("~"):
        raise InvalidParams(f"{path} is not expanded here; give an absolute or a relative path.", path="path")
    if "\0" in path:
        raise InvalidParams("A path holds no NUL.", path="path")
    return cwd / path


def _read_subject(params: ReadParams) -> Subject:
    return Subject("read_file", f"Read {params.path}", _READS, path=params.path)


async def _read(params: ReadParams, context: ToolContext) -> ToolOutcome:
    path = place(params.path, context.hands.cwd)
    # Always from the start: a range cut by bytes could split a secret, and half of one is not recognised.
    read = await context.hands.read(path, offset=0, limit=READ_BYTES)
    if read.text is None:
        return ToolOutcome(f"{params.path} is not text: {read.size:,} bytes of binary data.")
    whole = read.size <= READ_BYTES
    lines = read.text.splitlines(keepends=True)
    first = params.offset - 1
    if lines and first >= len(lines):
        beyond = "" if whole else f" within its first {READ_BYTES:,} bytes; use the terminal to look further"
        return ToolOutcome(f"{params.path} has {len(lines):,} lines{beyond}.", is_error=True)
    chosen = lines[first : None if params.limit is None else first + params.limit]
    fitted = fit("".join(chosen), context.redact)
    notes: list[str] = []
    if not read.size:
        notes.append("[the file is empty]")
    if not whole:
        notes.append(f"[the file has {read.size:,} bytes; only its first {READ_BYTES:,} were looked at]")
    if first or len(chosen) < len(lines):
        notes.append(f"[lines {first + 1}–{first + len(chosen)} of {len(lines):,}{'' if whole else ' or more'}]")
    text = "\n".join([fitted.text, *notes]) if fitted.text else "\n".join(notes)
    return ToolOutcome(text, truncated=fitted.cut)


def _write_subject(params: WriteParams) -> Subject:
    size = len(params.content)
    return Subject("write_file", f"Write {size:,} characters to {params.path}", _WRITES, path=params.path)


async def _write(params: WriteParams, context: ToolContext) -> ToolOutcome:
    path = place(params.path, context.hands.cwd)
    before = await _before(path, context)
    written = await context.hands.write(path, params.content)
    if written.created:
        return ToolOutcome(f"Made {params.path}: {written.size:,} bytes.")
    told = f"Replaced {params.path}: {written.size:,} bytes."
    return ToolOutcome(told, diff=_difference(before, context.redact(params.content), params.path))


async def _before(path: Path, context: ToolContext) -> str | None:
    """What the file holds, for the person to see what becomes of it; None where that cannot be shown."""
    try:
        read = await context.hands.read(path, offset=0, limit=COMPARED_BYTES)
    except HermesError:
        # Whatever the reason is, it does not keep the file from being written; what does is told by that.
        return None
    return context.redact(read.text) if read.text is not None and read.size <= COMPARED_BYTES else None


def _difference(before: str | None, after: str, name: str) -> str:
    """A unified difference, cut at the end of a line where it is long; empty where it cannot be said."""
    if before is None or len(after) > COMPARED_BYTES:
        return ""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(old), len(new)) > COMPARED_LINES:
        return ""
    lines: list[str] = []
    size = 0
    for line in unified_diff(old, new, name, name):
        size += len(line)
        if size > DIFF_CHARACTERS:
            break
        lines.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(lines)


READ_FILE: Final = tool(
    "read_file",
    ReadParams,
    toolset="files",
    needs=_READS,
    doc="Read a text file, or a range of its lines. Says what it is when it is no text.",
    subject=_read_subject,
    run=_read,
)

WRITE_FILE: Final = tool(
    "write_file",
    WriteParams,
    toolset="files",
    needs=_WRITES,
    doc="Write a text file: makes it, and the directories above it, or replaces its whole content.",
    subject=_write_subject,
    run=_write,
)
