"""What this server is and offers."""

from __future__ import annotations

from pydantic import JsonValue

from hermes_ws.contract.events import Protocol, ServerInfo
from hermes_ws.contract.model import Empty, Result
from hermes_ws.contract.registry import Order, Right, Scope, method


class OpenRpcDocument(Result):
    """The whole contract as an OpenRPC 1.3 document."""

    document: dict[str, JsonValue]


class SessionCreateOptions(Result):
    """Which options `session.create` takes here; a client sends no other."""

    parameters: list[str]
    sources: list[str]


class Description(Result):
    """The server as a client needs to know it. `boot_id` is the machine's: same value, same machine, same boot."""

    protocol: Protocol
    server: ServerInfo
    instance_id: str
    boot_id: str
    pid: int
    started_at: float
    durability: str
    launch: str
    session_create: SessionCreateOptions


RPC_DISCOVER = method(
    "rpc.discover",
    Empty,
    OpenRpcDocument,
    scope=Scope.SERVER,
    right=Right.NONE,
    order=Order.FREE,
    doc="The contract of this server, machine-readable.",
)

RUNTIME_DESCRIBE = method(
    "runtime.describe",
    Empty,
    Description,
    scope=Scope.SERVER,
    right=Right.OBSERVE,
    order=Order.FREE,
    doc="What this server is, what it promises and which options it takes.",
)
