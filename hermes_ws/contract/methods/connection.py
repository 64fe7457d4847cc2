"""What a connection says about itself, and whether the other side is alive."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hermes_ws.contract.errors import AlreadyNegotiated, ProtocolUnsupported
from hermes_ws.contract.events import Protocol
from hermes_ws.contract.model import Empty, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method

LiveLevel = Literal["full", "coalesced", "none"]


class ClientInfo(Params):
    """Who connects; shown in lists and logs, never trusted."""

    name: str = Field(max_length=100)
    version: str = Field(default="", max_length=100)


class CapabilitiesParams(Params):
    """What the client can do. A name that is not there means that it cannot; unknown names are passed over."""

    client: ClientInfo
    protocol: Protocol
    server_requests: bool | list[str] = False
    live: LiveLevel = "full"
    batch: bool = False
    opt_out: list[str] = []


class CapabilitiesResult(Result):
    """What is in force on this connection from now on."""

    protocol: Protocol
    server_requests: list[str]
    live: LiveLevel
    batch: bool
    opt_out: list[str]


class Pong(Result):
    """Alive."""

    ok: bool = True


CLIENT_CAPABILITIES = method(
    "client.capabilities",
    CapabilitiesParams,
    CapabilitiesResult,
    scope=Scope.CONNECTION,
    right=Right.NONE,
    order=Order.CONNECTION,
    errors=(AlreadyNegotiated, ProtocolUnsupported),
    doc="Say once what this client can do; until then it is asked no question.",
)

GATEWAY_PING = method(
    "gateway.ping",
    Empty,
    Pong,
    scope=Scope.CONNECTION,
    right=Right.NONE,
    order=Order.NOW,
    doc="Answered by the reader, before all queued work.",
)
