"""The tools that list and search files."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from hermes_ws.agent.deeds import ListedEntry, ToolOutcome
from hermes_ws.agent.tools.files import place
from hermes_ws.agent.tools.output import fit
from hermes_ws.agent.tools.tool import Need, Subject, ToolContext, tool
from hermes_ws.contract.model import Params

LISTED: Final = 1000
"""Entries of one listing; more than anybody reads, and some 15,000 tokens."""

FOUND: Final = 500
"""Lines of one search, for the same reason."""

_READS: Final[frozenset[Need]] = frozenset({"reads"})


class ListParams(Params):
    """A directory, and what of it."""

    path: str = Field(default=".", min_length=1, max_length=4096, description="The session's by default.")
    depth: int = Field(default=1, ge=1, le=16, description="How many levels below it.")
    pattern: str | None = Field(default=None, min_length=1, max_length=500, description="For example *.py")
    hidden: bool = Field(default=False, description="Also names that begin with a dot.")
    limit: int = Field(default=200, ge=1, le=LISTED)


class SearchParams(Params):
    """What to look for, and where."""

    expression: str = Field(min_length=1, max_length=2000, description="A regular expression over single lines.")
    path: str = Field(default=".", min_length=1, max_length=4096, description="A directory or a file.")
    pattern: str | None = Field(default=None, min_length=1, max_length=500, description="Only files like *.py")
    literal: bool = Field(default=False, description="Take the expression as plain text.")
    ignore_case: bool = False
    limit: int = Field(default=100, ge=1, le=FOUND)


def _list_subject(params: ListParams) -> Subject:
    return Subject("list_files", f"List {params.path}", _READS, path=params.path)


async def _list(params: ListParams, context: ToolContext) -> ToolOutcome:
    listing = await context.hands.list_files(
        place(params.path, context.hands.cwd),
        depth=params.depth,
        limit=params.limit,
        hidden=params.hidden,
        pattern=params.pattern,
    )
    lines = [_entry(each) for each in listing.entries] or ["[nothing]"]
    if listing.more:
        lines.append("[there is more: narrow it by path, pattern or depth]")
    fitted = fit("\n".join(lines), context.redact)
    return ToolOutcome(fitted.text, truncated=fitted.cut or listing.more)


def _entry(entry: ListedEntry) -> str:
    match entry.kind:
        case "directory":
            return f"{entry.name}/"
        case "link":
            return f"{entry.name} (link)"
        case "file":
            return f"{entry.name}  {entry.size:,}"
        case "other":
            return f"{entry.name} (neither file nor directory)"


def _search_subject(params: SearchParams) -> Subject:
    return Subject("search_files", f"Search {params.path} for {params.expression}", _READS, path=params.path)


async def _search(params: SearchParams, context: ToolContext) -> ToolOutcome:
    found = await context.hands.search_files(
        place(params.path, context.hands.cwd),
        params.expression,
        literal=params.literal,
        ignore_case=params.ignore_case,
        pattern=params.pattern,
        limit=params.limit,
    )
    lines = [f"{each.name}:{each.line}: {each.text}" for each in found.matches] or ["[nothing was found]"]
    if found.more:
        lines.append("[there is more: narrow it by path, pattern or expression]")
    fitted = fit("\n".join(lines), context.redact)
    return ToolOutcome(fitted.text, truncated=fitted.cut or found.more)


LIST_FILES: Final = tool(
    "list_files",
    ListParams,
    toolset="files",
    needs=_READS,
    doc="List a directory, one entry a line: directories end with a slash, files are followed by their size in bytes.",
    subject=_list_subject,
    run=_list,
)

SEARCH_FILES: Final = tool(
    "search_files",
    SearchParams,
    toolset="files",
    needs=_READS,
    doc="Search files for a regular expression; answers with file, line number and line. Leaves out ignored files.",
    subject=_search_subject,
    run=_search,
)
