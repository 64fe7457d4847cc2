"""The tools that read what the profile knows: its skills, and what was said in its sessions."""

from __future__ import annotations

import time
from typing import Final

from pydantic import Field

from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.ports import Library, Said
from hermes_ws.agent.tools.output import fit
from hermes_ws.agent.tools.tool import Need, Subject, ToolContext, tool
from hermes_ws.contract.errors import NotFound
from hermes_ws.contract.model import Params

_READS: Final[frozenset[Need]] = frozenset({"reads"})
_OWN: Final[frozenset[Need]] = frozenset({"remembers"})
"""The profile's own: nothing outside of the conversation is touched, so nobody is asked."""


class ListSkillsParams(Params):
    """There is nothing to choose."""


class ViewSkillParams(Params):
    """A skill, or one of the files beside it."""

    name: str = Field(min_length=1, max_length=200)
    file: str | None = Field(default=None, min_length=1, max_length=1000, description="A file of it; its text else.")


class SearchSessionsParams(Params):
    """Words to look for."""

    query: str = Field(min_length=1, max_length=400, description="Words that a message must all have.")
    limit: int = Field(default=10, ge=1, le=50)


def _library(context: ToolContext) -> Library:
    if context.library is None:
        raise NotFound("This session has neither skills nor a history to search.")
    return context.library


async def _list(params: ListSkillsParams, context: ToolContext) -> ToolOutcome:
    lines = [f"{name}: {description}" for name, description in await _library(context).skills()]
    fitted = fit("\n".join(lines) or "[there are no skills]", context.redact)
    return ToolOutcome(fitted.text, truncated=fitted.cut)


async def _view(params: ViewSkillParams, context: ToolContext) -> ToolOutcome:
    fitted = fit(await _library(context).skill(params.name, params.file), context.redact, budget=100_000)
    return ToolOutcome(fitted.text, truncated=fitted.cut)


async def _search(params: SearchSessionsParams, context: ToolContext) -> ToolOutcome:
    hits = await _library(context).search(params.query, params.limit * 2)
    # What is said here the model has before it anyway, the question itself among it.
    found = [each for each in hits if each.session_id != context.session_id][: params.limit]
    lines = [_line(each) for each in found]
    fitted = fit("\n".join(lines) or "[nothing was found]", context.redact)
    return ToolOutcome(fitted.text, truncated=fitted.cut)


def _line(said: Said) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime(said.at))
    return f"{day} {said.title or said.session_id} ({said.role}): {' '.join(said.snippet.split())}"


SKILLS_LIST: Final = tool(
    "skills_list",
    ListSkillsParams,
    toolset="skills",
    needs=_READS,
    doc="List the skills of this profile: instructions for kinds of work, each with a sentence on when to use it.",
    subject=lambda params: Subject("skills_list", "List the skills", _OWN),
    run=_list,
)

SKILL_VIEW: Final = tool(
    "skill_view",
    ViewSkillParams,
    toolset="skills",
    needs=_READS,
    doc="Read a skill before doing that kind of work.",
    subject=lambda params: Subject("skill_view", f"Read skill {params.name}", _OWN),
    run=_view,
)

SESSION_SEARCH: Final = tool(
    "session_search",
    SearchSessionsParams,
    toolset="memory",
    needs=_READS,
    doc="Find what was said in earlier sessions of this profile, by words.",
    subject=lambda params: Subject("session_search", f"Search earlier sessions for {params.query}", _OWN),
    run=_search,
)
