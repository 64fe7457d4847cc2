"""Giving an agent something to do."""

from __future__ import annotations

from hermes_ws.contract.methods.prompts import (
    PROMPT_RECEIPT,
    PROMPT_SUBMIT,
    Admitted,
    Receipt,
    ReceiptParams,
    SubmitParams,
)
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
