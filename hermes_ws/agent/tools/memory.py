"""The tool that notes what should outlive the session."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.memory import CHARACTERS
from hermes_ws.agent.tools.tool import Need, Subject, ToolContext, tool
from hermes_ws.contract.model import Params

_NEEDS: Final[frozenset[Need]] = frozenset({"remembers"})


class MemoryParams(Params):
    """One change of one of the two files."""

    action: Literal["add", "replace", "remove"]
    target: Literal["memory", "user"] = Field(
        default="memory",
        description="`memory` for what you learnt of the work, `user` for what you know of the person.",
    )
    content: str = Field(default="", max_length=CHARACTERS, description="The entry, for add and replace.")
    old: str = Field(default="", max_length=CHARACTERS, description="Words that only the entry to change has.")


def _subject(params: MemoryParams) -> Subject:
    return Subject("memory", f"Note ({params.action}, {params.target}): {params.content or params.old}", _NEEDS)


async def _run(params: MemoryParams, context: ToolContext) -> ToolOutcome:
    if context.memory is None:
        return ToolOutcome("There is no memory in this conversation.", is_error=True)
    content = await context.memory.change(
        params.target, params.action, context.redact(params.content), context.redact(params.old)
    )
    return ToolOutcome(
        f"Noted. The file now has {len(content):,} of {CHARACTERS:,} characters:\n\n{content or '(empty)'}"
    )


MEMORY: Final = tool(
    "memory",
    MemoryParams,
    toolset="memory",
    needs=_NEEDS,
    doc=(
        "Keep what should be known in later sessions: facts of the work (memory) and of the person (user). Add, "
        "replace or remove one entry. Never note secrets, or what the project's own files say."
    ),
    subject=_subject,
    run=_run,
)
