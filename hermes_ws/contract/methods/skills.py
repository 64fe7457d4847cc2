"""The skills of a profile."""

from __future__ import annotations

from hermes_ws.contract.errors import NotFound, ProfileUnusable
from hermes_ws.contract.methods.agents import OfProfile
from hermes_ws.contract.model import Identifier, Result
from hermes_ws.contract.registry import Order, Right, Scope, method


class SkillRow(Result):
    """One skill. `problem` says what is wrong with one that cannot be used."""

    name: str
    description: str
    category: str | None = None
    problem: str = ""


class SkillList(Result):
    """The skills, by name."""

    skills: list[SkillRow]


class SkillParams(OfProfile):
    """A skill, or with `file` a file beside its SKILL.md."""

    name: Identifier
    file: str | None = None


class SkillView(Result):
    """The text, and the files that go with the skill."""

    name: str
    description: str
    text: str
    files: list[str]


SKILLS_LIST = method(
    "skills.list",
    OfProfile,
    SkillList,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    doc="The skills of the profile.",
)

SKILLS_VIEW = method(
    "skills.view",
    SkillParams,
    SkillView,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(NotFound, ProfileUnusable),
    doc="A skill in full, or one of its files.",
)
