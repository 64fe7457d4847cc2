"""Agent definitions of a profile."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hermes_ws.contract.errors import InvalidParams, NotFound, PermissionDenied, ProfileUnusable
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Needs, Order, Right, Scope, method

DEFINITION_CHARACTERS = 200_000
"""Of one definition: with what goes with it, it fits into a frame in any script."""


class OfProfile(Params):
    """The profile; the connection's when it is not named."""

    profile: Identifier | None = None


class AgentRow(Result):
    """One agent. `problem` says what is wrong with a definition that cannot be used."""

    name: str
    description: str
    model: str | None = None
    provider: str | None = None
    problem: str = ""


class AgentList(Result):
    """The agents of the profile, `default` first."""

    agents: list[AgentRow]


class AgentParams(OfProfile):
    """An agent by its name."""

    name: Identifier


class Agent(Result):
    """A definition, taken apart, and its text as it is written (empty for a `default` without a file)."""

    name: str
    description: str
    instructions: str
    model: str | None = None
    provider: str | None = None
    reasoning: Literal["none", "low", "medium", "high"] | None = None
    toolsets: list[str] | None = None
    max_turns: int | None = None
    approvals: Literal["ask", "auto", "deny"] | None = None
    subagents: list[str] | None = None
    text: str


class PutAgentParams(AgentParams):
    """The whole text of the definition: front matter and instructions."""

    text: Annotated[str, Needs(Right.ANSWER, "a definition that sets approvals")] = Field(
        min_length=1, max_length=DEFINITION_CHARACTERS
    )


class AgentDeleted(Result):
    """Whether there was a file to delete."""

    deleted: bool


AGENT_LIST = method(
    "agent.list",
    OfProfile,
    AgentList,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    doc="The agents that sessions of the profile can be made with.",
)

AGENT_GET = method(
    "agent.get",
    AgentParams,
    Agent,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(NotFound, ProfileUnusable),
    doc="One agent definition.",
)

AGENT_PUT = method(
    "agent.put",
    PutAgentParams,
    Agent,
    scope=Scope.PROFILE,
    right=Right.CONTROL,
    order=Order.PROFILE,
    errors=(InvalidParams, PermissionDenied),
    doc="Write an agent definition. What runs keeps the one it began with.",
)

AGENT_DELETE = method(
    "agent.delete",
    AgentParams,
    AgentDeleted,
    scope=Scope.PROFILE,
    right=Right.CONTROL,
    order=Order.PROFILE,
    doc="Delete an agent definition. `default` goes on without one.",
)
