"""Editing a session."""

from __future__ import annotations

from hermes_ws.contract.methods.mutations import SESSION_MUTATE, Mutated, MutateParams
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall


@handles(SESSION_MUTATE)
async def mutate(call: ProfileCall, params: MutateParams) -> Mutated:
    """Carry the edit out, or tell what it came to when it was sent before; also when the session is gone since."""
    return await call.runtime.sessions.mutate(params, call.principal.name)
