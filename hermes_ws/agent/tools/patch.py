"""The tool that changes parts of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import Field

from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.tools.editing import Edit, Edited, edited
from hermes_ws.agent.tools.files import PathText, place
from hermes_ws.agent.tools.tool import Need, Subject, ToolContext, tool
from hermes_ws.contract.model import Params

EDITS: Final = 50
"""Replacements in one call; a file that changes in more places is written anew."""

EDIT_CHARACTERS: Final = 200_000
"""Of one replacement: more than a model says at once."""

PLACES: Final = 20
"""Lines that are named of an edit that took effect in many places."""

_NEEDS: Final[frozenset[Need]] = frozenset({"reads", "writes"})


class EditParams(Params):
    """One exact replacement."""

    old: str = Field(min_length=1, max_length=EDIT_CHARACTERS, description="The text as it stands in the file.")
    new: str = Field(max_length=EDIT_CHARACTERS, description="What takes its place.")
    every: bool = Field(default=False, description="Replace it wherever it stands; else it must stand there once.")


class PatchParams(Params):
    """A file and what is to be replaced in it, in order."""

    path: str = PathText
    edits: list[EditParams] = Field(min_length=1, max_length=EDITS)


def _subject(params: PatchParams) -> Subject:
    count = len(params.edits)
    return Subject("patch", f"Change {params.path} in {count} place{'s'[: count > 1]}", _NEEDS, path=params.path)


async def _run(params: PatchParams, context: ToolContext) -> ToolOutcome:
    edits = [Edit(each.old, each.new, each.every) for each in params.edits]
    done: list[Edited] = []

    def change(text: str) -> str:
        done.append(edited(text, edits))
        return done[-1].text

    written = await context.hands.edit(place(params.path, context.hands.cwd), change)
    lines = [f"Changed {params.path}: {written.size:,} bytes."]
    lines += [f"edit {number}: line{'s'[: len(at) > 1]} {_listed(at)}" for number, at in enumerate(done[-1].places, 1)]
    return ToolOutcome("\n".join(lines))


def _listed(at: Sequence[int]) -> str:
    more = f" and {len(at) - PLACES} more" if len(at) > PLACES else ""
    return ", ".join(map(str, at[:PLACES])) + more


PATCH: Final = tool(
    "patch",
    PatchParams,
    toolset="files",
    needs=_NEEDS,
    doc=(
        "Replace exact pieces of a text file by others; all of them or none. White space counts. Tells precisely why "
        "a piece was not found."
    ),
    subject=_subject,
    run=_run,
)
