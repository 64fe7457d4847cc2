"""Agent definitions of a profile."""

from __future__ import annotations

from hermes_ws.agent import definition
from hermes_ws.agent.definition import AgentDefinition
from hermes_ws.contract.errors import HermesError
from hermes_ws.contract.methods.agents import (
    AGENT_DELETE,
    AGENT_GET,
    AGENT_LIST,
    AGENT_PUT,
    Agent,
    AgentDeleted,
    AgentList,
    AgentParams,
    AgentRow,
    OfProfile,
    PutAgentParams,
)
from hermes_ws.methods.authority import demand
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.home import ProfileHome


@handles(AGENT_LIST)
async def list_agents(call: ProfileCall, params: OfProfile) -> AgentList:
    """Also those whose definition is to be mended, with what is wrong."""
    return AgentList(agents=await in_thread(call.runtime.limiter, _rows, call.runtime.home))


@handles(AGENT_GET)
async def get(call: ProfileCall, params: AgentParams) -> Agent:
    """The definition as it would be used now."""
    return await in_thread(call.runtime.limiter, _agent, call.runtime.home, params.name)


@handles(AGENT_PUT)
async def put(call: ProfileCall, params: PutAgentParams) -> Agent:
    """Write it, unless it decides about approvals and the caller may not."""
    home = call.runtime.home
    parsed = definition.check(home, params.name, params.text)
    if parsed.approvals is not None:
        demand(call, AGENT_PUT, "text")
    await in_thread(call.runtime.limiter, definition.put, home, params.name, params.text)
    return await in_thread(call.runtime.limiter, _agent, home, params.name)


@handles(AGENT_DELETE)
async def delete(call: ProfileCall, params: AgentParams) -> AgentDeleted:
    """Remove the file."""
    return AgentDeleted(
        deleted=await in_thread(call.runtime.limiter, definition.delete, call.runtime.home, params.name)
    )


def _rows(home: ProfileHome) -> list[AgentRow]:
    rows: list[AgentRow] = []
    for name in definition.list_names(home):
        try:
            found = definition.load(home, name)
        except HermesError as error:
            rows.append(AgentRow(name=name, description="", problem=error.message))
        else:
            rows.append(AgentRow(name=name, description=found.description, model=found.model, provider=found.provider))
    return rows


def _agent(home: ProfileHome, name: str) -> Agent:
    found: AgentDefinition = definition.load(home, name)
    return Agent(
        name=found.name,
        description=found.description,
        instructions=found.instructions,
        model=found.model,
        provider=found.provider,
        reasoning=found.reasoning,
        toolsets=None if found.toolsets is None else list(found.toolsets),
        max_turns=found.max_turns,
        approvals=found.approvals,
        subagents=None if found.subagents is None else list(found.subagents),
        text=definition.text_of(home, name),
    )
