"""The tool servers of a session."""

from __future__ import annotations

from hermes_ws.contract.errors import NotFound
from hermes_ws.contract.methods.mcp import (
    MCP_RESTART,
    MCP_STATUS,
    Restarted,
    RestartParams,
    ServerList,
    StatusParams,
)
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import SessionCall


@handles(MCP_STATUS)
async def status(call: SessionCall, params: StatusParams) -> ServerList:
    """As they are now; nothing is started."""
    scope = await call.runtime.fresh_scope()
    return ServerList(servers=call.runtime.ongoing.servers.rows(call.session.session_id, scope))


@handles(MCP_RESTART)
async def restart(call: SessionCall, params: RestartParams) -> Restarted:
    """One that does not run yet starts with the next turn anyway."""
    scope = await call.runtime.fresh_scope()
    known = [row.name for row in call.runtime.ongoing.servers.rows(call.session.session_id, scope)]
    if params.server is not None and params.server not in known:
        raise NotFound(
            f"There is no tool server {params.server}.",
            hint=f"There are: {', '.join(known) or 'none'}.",
            server=params.server,
        )
    return Restarted(restarted=call.runtime.ongoing.servers.restart(call.session.session_id, params.server))
