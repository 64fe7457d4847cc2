"""The tool by which a model keeps a plan."""

from __future__ import annotations

from typing import Final

from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.tools.plan import TodoParams
from hermes_ws.agent.tools.tool import Need, Subject, ToolContext, tool

_CHANGES: Final[frozenset[Need]] = frozenset({"writes"})
"""Keeps it in order with the other calls of a batch."""

_OWN: Final[frozenset[Need]] = frozenset({"remembers"})


def _subject(params: TodoParams) -> Subject:
    return Subject("todo", "Read the plan" if params.items is None else "Change the plan", _OWN)


async def _run(params: TodoParams, context: ToolContext) -> ToolOutcome:
    if params.items is not None:
        context.plan.items = params.items
    return ToolOutcome(context.plan.shown())


PLAN: Final = tool(
    "todo",
    TodoParams,
    toolset="plan",
    needs=_CHANGES,
    doc="Keep a plan for work of several steps: give all items with their status, or nothing to read it.",
    subject=_subject,
    run=_run,
)
