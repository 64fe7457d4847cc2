"""The tool that has others do a part of the work."""

from __future__ import annotations

from typing import Final

from pydantic import Field, model_validator

from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.support import Delegated, Task
from hermes_ws.agent.tools.output import fit
from hermes_ws.agent.tools.tool import Need, Subject, ToolContext, tool
from hermes_ws.contract.model import Params

GOALS: Final = 8
"""Most tasks of one call; how many run at once is a setting."""

_NEEDS: Final[frozenset[Need]] = frozenset({"delegates"})


class TaskParams(Params):
    """One task for a subagent."""

    goal: str = Field(min_length=1, max_length=100_000, description="What is to be achieved, in full sentences.")
    context: str = Field(
        default="", max_length=100_000, description="What the subagent must know; it sees nothing else."
    )
    agent: str | None = Field(default=None, max_length=64, description="The agent definition; your own when left out.")


class DelegateParams(Params):
    """One goal, or several tasks that do not depend on each other."""

    goal: str | None = Field(default=None, min_length=1, max_length=100_000, description="One task, in full sentences.")
    context: str = Field(
        default="", max_length=100_000, description="What the subagent must know; it sees nothing else."
    )
    agent: str | None = Field(default=None, max_length=64, description="The agent definition; your own when left out.")
    tasks: list[TaskParams] | None = Field(
        default=None, min_length=1, max_length=GOALS, description="Several tasks, worked on at the same time."
    )

    @model_validator(mode="after")
    def _one_way(self) -> DelegateParams:
        if (self.goal is None) == (self.tasks is None):
            raise ValueError("give either goal or tasks")
        return self

    def all(self) -> list[Task]:
        """The tasks, whichever way they came."""
        if self.tasks is None:
            return [Task(self.goal or "", self.context, self.agent)]
        return [Task(each.goal, each.context, each.agent) for each in self.tasks]


def _subject(params: DelegateParams) -> Subject:
    return Subject("delegate_task", f"Have a subagent do: {params.all()[0].goal[:500]}", _NEEDS)


async def _run(params: DelegateParams, context: ToolContext) -> ToolOutcome:
    if context.delegates is None:
        return ToolOutcome("There are no subagents in this conversation.", is_error=True)
    done = await context.delegates.delegate(context.call_id, params.all())
    fitted = fit("\n\n".join(_told(each) for each in done), context.redact)
    return ToolOutcome(fitted.text, all(each.status != "completed" for each in done), fitted.cut)


def _told(each: Delegated) -> str:
    return f"[{each.subagent_id}: {each.status}]\n{each.result or '(said nothing)'}"


DELEGATE_TASK: Final = tool(
    "delegate_task",
    DelegateParams,
    toolset="delegate",
    needs=_NEEDS,
    doc=(
        "Have subagents work on one or several tasks, each with a fresh context of its own, and wait for what they "
        "report. They know nothing of this conversation but what you tell them."
    ),
    subject=_subject,
    run=_run,
)
