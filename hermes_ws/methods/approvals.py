"""Approvals explained."""

from __future__ import annotations

from hermes_ws.contract.methods.approvals import APPROVALS_EXPLAIN, Explained, ExplainParams
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import SessionCall
from hermes_ws.session.explaining import explain


@handles(APPROVALS_EXPLAIN)
async def explain_approval(call: SessionCall, params: ExplainParams) -> Explained:
    """What would be decided now, with the rules as they are written now."""
    return await explain(call.runtime, call.session, params)
