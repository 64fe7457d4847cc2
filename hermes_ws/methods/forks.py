"""Another thread with the same beginning."""

from __future__ import annotations

from hermes_ws.contract.methods.forks import THREAD_FORK, Forked, ForkParams
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ThreadCall
from hermes_ws.session.forks import fork


@handles(THREAD_FORK)
async def make_fork(call: ThreadCall, params: ForkParams) -> Forked:
    """Make it; a repeated `request_id` answers with the one that it made."""
    runtime = call.runtime
    return await fork(runtime, runtime.sessions.keys, call.session, call.thread.key, params, call.principal.name)
