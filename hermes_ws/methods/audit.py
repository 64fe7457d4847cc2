"""Who did what in a profile."""

from __future__ import annotations

from hermes_ws.contract.methods.audit import RUNTIME_AUDIT, AuditEntry, AuditPage, AuditParams
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall


@handles(RUNTIME_AUDIT)
async def entries(call: ProfileCall, params: AuditParams) -> AuditPage:
    """A page of the profile's own log."""
    found = await call.runtime.audit.page(params.limit, params.before, params.principal, params.method_name)
    rows = [
        AuditEntry(
            number=number,
            at=deed.at,
            principal=deed.principal,
            credential=deed.credential,
            connection=deed.connection,
            method=deed.method,
            session_id=deed.session_id,
            outcome=deed.outcome,
        )
        for number, deed in found
    ]
    return AuditPage(entries=rows, next=rows[-1].number if len(rows) == params.limit else None)
