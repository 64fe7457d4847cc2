"""The tool servers of a session."""

from __future__ import annotations

from typing import Literal

from hermes_ws.contract.errors import NotFound, ProfileUnusable, SessionUnknown
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method


class StatusParams(Params):
    """The session whose servers they are; each session has its own."""

    session_id: Identifier
    profile: Identifier | None = None

    def located_by(self) -> str:
        return self.session_id


class RestartParams(StatusParams):
    """One of them, or all."""

    server: Identifier | None = None


class ServerRow(Result):
    """One server. `stopped` is one that starts with the next turn; `problem` says what was wrong last."""

    name: str
    transport: str
    state: Literal["stopped", "starting", "ready", "failed"]
    problem: str = ""
    tools: list[str] = []
    restarts: int = 0


class ServerList(Result):
    """In the order of the profile's settings."""

    servers: list[ServerRow]


class Restarted(Result):
    """How many were ended and are started again."""

    restarted: int


MCP_STATUS = method(
    "mcp.status",
    StatusParams,
    ServerList,
    scope=Scope.SESSION,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(SessionUnknown, ProfileUnusable),
    doc="List the tool servers of a session: their state, their tools, and what was wrong.",
)
MCP_RESTART = method(
    "mcp.restart",
    RestartParams,
    Restarted,
    scope=Scope.SESSION,
    right=Right.CONTROL,
    order=Order.SESSION,
    errors=(SessionUnknown, NotFound, ProfileUnusable),
    doc="End a tool server of a session, or all of them, and start them again; a call under way is told.",
)
