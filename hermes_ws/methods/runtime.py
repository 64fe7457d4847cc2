"""What this server is and offers."""

from __future__ import annotations

from hermes_ws.contract import openrpc
from hermes_ws.contract.catalog import PROTOCOL_MAJOR, PROTOCOL_MINOR
from hermes_ws.contract.events import Protocol
from hermes_ws.contract.methods.runtime import (
    RPC_DISCOVER,
    RUNTIME_DESCRIBE,
    Description,
    OpenRpcDocument,
    SessionCreateOptions,
)
from hermes_ws.contract.methods.sessions import SOURCES, CreateParams
from hermes_ws.contract.model import Empty
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ServerCall

_NOT_OPTIONS = frozenset({"profile", "request_id", "subscribe"})
"""Parameters of `session.create` that say where and how, not what the session is made with."""


@handles(RPC_DISCOVER)
async def discover(call: ServerCall, params: Empty) -> OpenRpcDocument:
    """The contract, rendered from the declarations."""
    return OpenRpcDocument(document=openrpc.document())


@handles(RUNTIME_DESCRIBE)
async def describe(call: ServerCall, params: Empty) -> Description:
    """What a client needs to know before it makes a session."""
    launch = call.host.launch
    return Description(
        protocol=Protocol(major=PROTOCOL_MAJOR, minor=PROTOCOL_MINOR),
        server=call.facts.info,
        instance_id=call.facts.instance_id,
        boot_id=call.facts.boot_id,
        pid=call.facts.pid,
        started_at=call.facts.started_at,
        durability=call.host.launch_config.durability,
        launch=launch.text,
        session_create=SessionCreateOptions(
            parameters=sorted(CreateParams.model_fields.keys() - _NOT_OPTIONS), sources=list(SOURCES)
        ),
    )
