"""What this server is and offers."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Final

import orjson

from hermes_ws.contract.events import Protocol
from hermes_ws.contract.methods.runtime import (
    RPC_DISCOVER,
    RUNTIME_DESCRIBE,
    RUNTIME_DRAIN,
    RUNTIME_STATISTICS,
    Description,
    DrainParams,
    DrainStarted,
    OpenRpcDocument,
    ProfileStatistics,
    ServerStatistics,
    SessionCreateOptions,
)
from hermes_ws.contract.methods.sessions import SOURCES, CreateParams
from hermes_ws.contract.model import Empty
from hermes_ws.contract.registry import Right
from hermes_ws.contract.version import PROTOCOL_MAJOR, PROTOCOL_MINOR
from hermes_ws.methods import documents
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ServerCall

_NOT_OPTIONS = frozenset({"profile", "request_id", "subscribe"})
"""Parameters of `session.create` that say where and how, not what the session is made with."""


@handles(RPC_DISCOVER)
async def discover(call: ServerCall, params: Empty) -> OpenRpcDocument:
    """The contract, rendered from the declarations."""
    return OpenRpcDocument(document=orjson.loads(documents.openrpc()))


@handles(RUNTIME_DESCRIBE)
def describe(call: ServerCall, params: Empty) -> Description:
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


PROCESS: Final = Path("/proc/self")
"""What the kernel knows of this process."""


@handles(RUNTIME_STATISTICS)
async def statistics(call: ServerCall, params: Empty) -> ServerStatistics:
    """Counts, of this moment. Profiles that the caller may not address are not among them."""
    host = call.host.statistics()
    whole = Right.ADMIN in call.principal.rights and call.principal.profiles is None
    pages = int((PROCESS / "statm").read_text().split()[1])
    return ServerStatistics(
        uptime_s=time.time() - call.facts.started_at,
        draining=call.host.draining,
        connections=call.works.connections,
        requests=call.works.requests,
        descriptors=len(os.listdir(PROCESS / "fd")),
        memory_bytes=pages * os.sysconf("SC_PAGE_SIZE"),
        threads=threading.active_count(),
        guard_tripped=host.guard_tripped,
        profiles=[
            ProfileStatistics(
                name=name,
                state=each.state,
                sessions_open=each.sessions_open,
                running=each.running,
                wardens=each.wardens,
                tasks=each.tasks,
            )
            for name, each in sorted(host.open.items())
            if call.may_address(name)
        ],
        connected=[each.row for each in call.works.present() if whole or each.principal == call.principal],
    )


@handles(RUNTIME_DRAIN)
async def drain(call: ServerCall, params: DrainParams) -> DrainStarted:
    """The reply leaves before the first client is told."""
    return DrainStarted(draining=True, deadline=call.works.drain(params.deadline_s))
