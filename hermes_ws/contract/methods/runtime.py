"""What this server is and offers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from hermes_ws.contract.events import Protocol, ServerInfo
from hermes_ws.contract.model import Empty, Params, Result
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


class ProfileStatistics(Result):
    """What lives in one open profile now."""

    name: str
    state: str
    sessions_open: int
    running: int
    wardens: int
    tasks: int


Transport = Literal["websocket", "events", "stdio"]
"""How a connection that stays came in: a WebSocket, an event stream over HTTP, or a pair of pipes."""


class Followed(Result):
    """A thread that a connection listens to; the id of a terminal or process stands for its thread."""

    profile: str
    session_id: str
    thread_id: str


class ConnectionRow(Result):
    """A connection that stays. `since` is in seconds since 1970; `profile` is the one that its path binds it to."""

    principal: str
    transport: Transport
    since: float
    client: str
    profile: str | None = None
    subscriptions: list[Followed]


class ServerStatistics(Result):
    """What lives in the server now; of profiles, those that the caller may address. Bytes and seconds. `connected` are
    the connections of the caller's own credential, or all for one that administers the whole server."""

    uptime_s: float
    draining: bool
    connections: int
    requests: int
    descriptors: int
    memory_bytes: int
    threads: int
    guard_tripped: int
    profiles: list[ProfileStatistics]
    connected: list[ConnectionRow] = []


class DrainParams(Params):
    """How long what runs may go on; absent, as long as `server.drain_s` says."""

    deadline_s: float | None = Field(default=None, ge=0, le=3600)


class DrainStarted(Result):
    """The server ends. `deadline` is when it interrupts what still runs then, in seconds since 1970."""

    draining: bool
    deadline: float


RUNTIME_STATISTICS = method(
    "runtime.statistics",
    Empty,
    ServerStatistics,
    scope=Scope.SERVER,
    right=Right.OBSERVE,
    order=Order.NOW,
    doc="Counts of what lives in the server now.",
)

RUNTIME_DRAIN = method(
    "runtime.drain",
    DrainParams,
    DrainStarted,
    scope=Scope.SERVER,
    right=Right.ADMIN,
    order=Order.NOW,
    whole=True,
    doc="Take no new work, give what runs its time, commit, and end.",
)
