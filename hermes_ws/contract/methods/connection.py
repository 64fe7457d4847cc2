"""What a connection says about itself, and whether the other side is alive."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, JsonValue

from hermes_ws.contract.errors import AlreadyNegotiated, ProtocolUnsupported
from hermes_ws.contract.events import Protocol
from hermes_ws.contract.model import Empty, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method

LiveLevel = Literal["full", "coalesced", "none"]


MOST_CLIENT_TOOLS = 64
"""Tools that one client may offer: a model chooses badly from more."""

LENIENT = ConfigDict(frozen=True, extra="ignore", strict=True)
"""What a newer client says about itself may hold more than is known here; that is passed over."""


class ClientInfo(Params):
    """Who connects; shown in lists and logs, never trusted."""

    model_config = LENIENT

    name: str = Field(max_length=100)
    version: str = Field(default="", max_length=100)


class ClientTool(Params):
    """A tool that runs in the client; `parameters` is a JSON schema."""

    model_config = LENIENT

    name: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")
    description: str = Field(max_length=4096)
    parameters: dict[str, JsonValue]


class CapabilitiesParams(Params):
    """What the client can do. What is not there means that it cannot; what is not known here is passed over."""

    model_config = LENIENT

    client: ClientInfo
    protocol: Protocol
    server_requests: bool | list[str] = False
    client_tools: list[ClientTool] = Field(default=[], max_length=MOST_CLIENT_TOOLS)
    live: LiveLevel = "full"
    batch: bool = False
    opt_out: list[str] = []


class CapabilitiesResult(Result):
    """What is in force on this connection from now on."""

    protocol: Protocol
    server_requests: list[str]
    client_tools: list[str] = []
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
