"""Subagents: who works for a session, what they say, and having a word with them."""

from __future__ import annotations

from hermes_ws.contract.errors import NotAttached
from hermes_ws.contract.methods.session_views import OfSession
from hermes_ws.contract.methods.subagents import (
    SUBAGENT_INTERRUPT,
    SUBAGENT_LIST,
    SUBAGENT_STEER,
    SUBAGENT_TAIL,
    InterruptedSubagent,
    InterruptSubagentParams,
    SteeredSubagent,
    SteerSubagentParams,
    SubagentList,
    SubagentParams,
    Tail,
)
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import SessionCall
from hermes_ws.session.roster import Roster


@handles(SUBAGENT_LIST)
async def list_subagents(call: SessionCall, params: OfSession) -> SubagentList:
    """From the journal: the same after a reconnect as before it."""
    return SubagentList(subagents=await _roster(call).rows())


@handles(SUBAGENT_TAIL)
async def tail(call: SessionCall, params: SubagentParams) -> Tail:
    """One answer for a missing, a finished and a foreign one."""
    available, text, truncated = await _roster(call).tail(params.subagent_id)
    return Tail(subagent_id=params.subagent_id, available=available, text=text, truncated=truncated)


@handles(SUBAGENT_STEER)
async def steer(call: SessionCall, params: SteerSubagentParams) -> SteeredSubagent:
    """Admit words for what runs now."""
    _see_attached(call)
    done = await _roster(call).steer(params.subagent_id, params.text, params.execution_generation, call.principal.name)
    return SteeredSubagent(
        subagent_id=params.subagent_id,
        status="queued" if done.outcome == "accepted" else "rejected",
        text=params.text,
        outcome=done.outcome,
        active=done.active,
    )


@handles(SUBAGENT_INTERRUPT)
async def interrupt(call: SessionCall, params: InterruptSubagentParams) -> InterruptedSubagent:
    """End what runs now; the parent goes on with what there is."""
    _see_attached(call)
    done = await _roster(call).interrupt(params.subagent_id, params.execution_generation)
    return InterruptedSubagent(
        subagent_id=params.subagent_id,
        found=done.outcome == "accepted",
        outcome=done.outcome,
        active=done.active,
    )


def _roster(call: SessionCall) -> Roster:
    return Roster(call.runtime, call.session, call.runtime.scope)


def _see_attached(call: SessionCall) -> None:
    """Whoever controls a subagent listens to the session now; whether it did before counts for nothing (OWNER-02)."""
    if not call.attachment.attached_to(call.session.session_id):
        raise NotAttached("This connection does not listen to the session.")
