"""The tools that a turn has from elsewhere: those of the session's tool servers, and those that clients offer now."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_ws.agent.ports import Hands, Narrator
from hermes_ws.agent.request import TurnRequest
from hermes_ws.agent.tools.client import client_tool
from hermes_ws.agent.tools.tool import Tool
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.ports import Runtime
from hermes_ws.session.toolservers import tools_of


async def offered(
    runtime: Runtime,
    scope: ProfileScope,
    request: TurnRequest,
    hands: Hands,
    narrator: Narrator,
    told: dict[str, str],
) -> Sequence[Tool]:
    """Those of the toolsets that the turn has. A server that is not there is said, and the turn goes on without it;
    `told` is what the session was told of such servers before, which is not said again.
    """
    families = {each.partition(":")[0] for each in request.toolsets}
    tools: list[Tool] = []
    if "mcp" in families and scope.config.mcp_servers:
        servers = await runtime.ongoing.servers.ready(request.session_id, scope, hands)
        for server in servers:
            name = server.plan.name
            if server.state == "ready":
                told.pop(name, None)
            elif told.get(name) != server.problem:
                told[name] = server.problem
                await narrator.notice(
                    "warning",
                    "tool_server_missing",
                    f"The tool server {name} is not there. {server.problem}".strip(),
                    f"Look at mcp_servers.{name} in config.yaml. A program here sees the session's directory and what "
                    "terminal.read grants. mcp.restart tries it again.",
                )
        tools += tools_of(servers)
    if "client" in families:
        for each in runtime.audience.client_tools(scope.profile.text):
            tools.append(client_tool(each.name, each.description, each.parameters))
    return tools
