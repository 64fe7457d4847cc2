"""The skills of a profile."""

from __future__ import annotations

from hermes_ws.agent import skills
from hermes_ws.contract.methods.agents import OfProfile
from hermes_ws.contract.methods.skills import (
    SKILLS_LIST,
    SKILLS_VIEW,
    SkillList,
    SkillParams,
    SkillRow,
    SkillView,
)
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall
from hermes_ws.scope.current import in_thread


@handles(SKILLS_LIST)
async def list_skills(call: ProfileCall, params: OfProfile) -> SkillList:
    """By name, also those that are to be mended."""
    found = await in_thread(call.runtime.limiter, skills.list, call.runtime.home)
    return SkillList(
        skills=[
            SkillRow(name=each.name, description=each.description, category=each.category, problem=each.problem)
            for each in found
        ]
    )


@handles(SKILLS_VIEW)
async def view(call: ProfileCall, params: SkillParams) -> SkillView:
    """The text of a skill, or of one of its files."""
    found = await in_thread(call.runtime.limiter, skills.view, call.runtime.home, params.name, params.file)
    return SkillView(
        name=found.skill.name, description=found.skill.description, text=found.text, files=list(found.files)
    )
