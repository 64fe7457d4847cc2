"""Giving an agent something to do."""

from __future__ import annotations

from hermes_ws.contract.methods.prompts import (
    PROMPT_CANCEL,
    PROMPT_RECEIPT,
    PROMPT_RESOLVE_UNKNOWN,
    PROMPT_SUBMIT,
    AdmissionStatus,
    Admitted,
    CancelParams,
    Receipt,
    ReceiptParams,
    ResolveParams,
    SubmitParams,
)
from hermes_ws.methods.authority import holds
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import SessionCall, ThreadCall


@handles(PROMPT_SUBMIT)
async def submit(call: ThreadCall, params: SubmitParams) -> Admitted:
    """Admit the input; the reply leaves after the commit and before the agent has done anything."""
    return await call.thread.submit(params, call.principal.name)


@handles(PROMPT_RECEIPT)
async def receipt(call: SessionCall, params: ReceiptParams) -> Receipt:
    """What became of an input."""
    return await call.session.receipt(params, call.principal.name)


@handles(PROMPT_CANCEL)
async def cancel(call: SessionCall, params: CancelParams) -> AdmissionStatus:
    """Take a queued input back."""
    everybodys = holds(call, PROMPT_CANCEL, "admission_id")
    return await call.session.cancel(params, None if everybodys else call.principal.name)


@handles(PROMPT_RESOLVE_UNKNOWN)
async def resolve_unknown(call: SessionCall, params: ResolveParams) -> AdmissionStatus:
    """Say what became of a lost execution."""
    return await call.session.resolve_unknown(params)
