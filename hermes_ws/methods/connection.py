"""What a connection says about itself."""

from __future__ import annotations

from hermes_ws.contract.methods.connection import (
    CLIENT_CAPABILITIES,
    GATEWAY_PING,
    CapabilitiesParams,
    CapabilitiesResult,
    Pong,
)
from hermes_ws.contract.model import Empty
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ConnectionCall


@handles(CLIENT_CAPABILITIES)
async def capabilities(call: ConnectionCall, params: CapabilitiesParams) -> CapabilitiesResult:
    """Put what the client can do into force; then it is sent the questions that wait."""
    in_force = call.attachment.negotiate(params)
    call.after_reply(call.attachment.show_questions)
    return in_force


@handles(GATEWAY_PING)
async def ping(call: ConnectionCall, params: Empty) -> Pong:
    """For transports without a reader of their own; a WebSocket's reader answers before dispatch."""
    return Pong()
