"""Subagents: who works for a session, what they say, and having a word with them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hermes_ws.contract.errors import NotAttached, SessionUnknown, StorageUnavailable
from hermes_ws.contract.methods.prompts import PROMPT_CHARACTERS
from hermes_ws.contract.methods.session_views import OfSession
from hermes_ws.contract.model import Identifier, Result
from hermes_ws.contract.registry import Order, Right, Scope, method

TAIL_BYTES = 16_384
"""Of what a subagent said last; two screens."""

SubagentStatus = Literal["queued", "running", "completed", "failed", "error", "interrupted"]


class SubagentRow(Result):
    """One subagent. Its thread has the same id. `started_at` is in seconds since 1970; `execution_generation` is null
    while nothing of it runs."""

    subagent_id: str
    thread_id: str
    parent_id: str
    depth: int
    goal: str
    agent: str
    delegation_id: str
    model: str
    started_at: float
    status: SubagentStatus
    tool_count: int
    last_tool: str | None
    accepting_steer: bool
    execution_generation: int | None


class SubagentList(Result):
    """All subagents of the session, oldest first. `delegations` is there for older clients, and empty."""

    subagents: list[SubagentRow]
    delegations: list[SubagentRow] = []


class SubagentParams(OfSession):
    """A subagent of the session."""

    subagent_id: Identifier


class Tail(Result):
    """The end of what a subagent that runs has said; not available for any other."""

    subagent_id: str
    available: bool
    text: str
    truncated: bool


class SteerSubagentParams(SubagentParams):
    """Something to tell it. With `execution_generation` only the execution that was seen is told."""

    text: str = Field(min_length=1, max_length=PROMPT_CHARACTERS)
    execution_generation: int | None = Field(default=None, ge=1)


class SteeredSubagent(Result):
    """`queued` means accepted, not delivered: it is taken at the next step. `outcome` says why not."""

    subagent_id: str
    status: Literal["queued", "rejected"]
    text: str
    outcome: Literal["accepted", "no_active_execution", "generation_mismatch", "not_steerable", "finishing"]
    active: int | None = None


class InterruptSubagentParams(SubagentParams):
    """With `execution_generation` only the execution that was seen is ended."""

    execution_generation: int | None = Field(default=None, ge=1)


class InterruptedSubagent(Result):
    """Whether there was an execution to end; `outcome` says why not."""

    subagent_id: str
    found: bool
    outcome: Literal["accepted", "no_active_execution", "generation_mismatch", "not_steerable", "finishing"]
    active: int | None = None


SUBAGENT_LIST = method(
    "subagent.list",
    OfSession,
    SubagentList,
    scope=Scope.SESSION,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(SessionUnknown,),
    doc="Everyone who works or has worked for the session, and how far they are.",
)

SUBAGENT_TAIL = method(
    "subagent.tail",
    SubagentParams,
    Tail,
    scope=Scope.SESSION,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(SessionUnknown,),
    doc="The last 16 KiB of what a running subagent said.",
)

SUBAGENT_STEER = method(
    "subagent.steer",
    SteerSubagentParams,
    SteeredSubagent,
    scope=Scope.SESSION,
    right=Right.CONTROL,
    order=Order.NOW,
    errors=(SessionUnknown, NotAttached, StorageUnavailable),
    doc="Tell a running subagent something. Needs a subscription to the session.",
)

SUBAGENT_INTERRUPT = method(
    "subagent.interrupt",
    InterruptSubagentParams,
    InterruptedSubagent,
    scope=Scope.SESSION,
    right=Right.CONTROL,
    order=Order.NOW,
    errors=(SessionUnknown, NotAttached),
    doc="End what a subagent does; its parent gets what it has until then. Needs a subscription to the session.",
)
