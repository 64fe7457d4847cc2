"""What is told of subagents, in the thread that delegated to them."""

from __future__ import annotations

from typing import Literal

from hermes_ws.contract.content import Usage
from hermes_ws.contract.model import Result


class SubagentStart(Result):
    """A subagent begins: a thread of this session, which can be read and talked to like any other."""

    subagent_id: str
    thread_id: str
    parent_id: str
    call_id: str
    goal: str
    agent: str
    depth: int
    task_index: int
    task_count: int


class SubagentProgress(Result):
    """What a subagent does, a line for each step, after what this subscriber has; all of it is in its thread."""

    subagent_id: str
    offset: int
    text: str


class SubagentComplete(Result):
    """What came of a subagent's task. Its thread stays, with all that it did."""

    subagent_id: str
    thread_id: str
    status: Literal["completed", "failed", "interrupted"]
    summary: str
    tool_count: int
    last_tool: str | None
    usage: Usage
    duration_s: float
