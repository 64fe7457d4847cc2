"""What a client said that it can do, and what is in force because of it.

Absent means no: until a client has spoken it receives events and may call methods, and is asked no question.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, final

from hermes_ws.contract.errors import ProtocolUnsupported
from hermes_ws.contract.events import EVENTS, Protocol
from hermes_ws.contract.methods.connection import CapabilitiesParams, CapabilitiesResult, ClientTool, LiveLevel
from hermes_ws.contract.questions import CLIENT_TOOL, QUESTIONS
from hermes_ws.contract.version import PROTOCOL_MAJOR, PROTOCOL_MINOR


@final
@dataclass(frozen=True, slots=True)
class Negotiated:
    """What is in force on a connection. `spoken` tells whether the client has said anything yet."""

    spoken: bool
    client: str
    version: str
    server_requests: frozenset[str]
    live: LiveLevel
    batch: bool
    opt_out: frozenset[str]
    client_tools: tuple[ClientTool, ...] = ()

    def without(self, kind: str) -> Negotiated:
        """The same without a kind of question, for a client that turned out not to know it."""
        return replace(self, server_requests=self.server_requests - {kind})

    def answer(self) -> CapabilitiesResult:
        """What the client is told."""
        return CapabilitiesResult(
            protocol=Protocol(major=PROTOCOL_MAJOR, minor=PROTOCOL_MINOR),
            server_requests=sorted(self.server_requests),
            client_tools=[each.name for each in self.client_tools],
            live=self.live,
            batch=self.batch,
            opt_out=sorted(self.opt_out),
        )


UNSPOKEN: Final = Negotiated(
    spoken=False, client="", version="", server_requests=frozenset(), live="full", batch=False, opt_out=frozenset()
)
"""A client that has not said what it can do."""


def negotiate(
    params: CapabilitiesParams, *, kinds: Iterable[str] = QUESTIONS, types: Iterable[str] = EVENTS
) -> Negotiated:
    """What of the client's abilities is used here.

    Names that this server does not know are passed over, so that neither side has to know the other's version.
    Raises `ProtocolUnsupported` for another major, with what is supported; the connection is closed with 4526 then.
    """
    if params.protocol.major != PROTOCOL_MAJOR:
        raise ProtocolUnsupported(
            f"This server speaks protocol {PROTOCOL_MAJOR}, the client {params.protocol.major}.",
            hint="Update the older of the two.",
            supported=[{"major": PROTOCOL_MAJOR, "minor": PROTOCOL_MINOR}],
        )
    wanted = frozenset(kinds)
    if not isinstance(params.server_requests, bool):
        wanted = wanted.intersection(params.server_requests)
    elif not params.server_requests:
        wanted = frozenset[str]()
    # A call of a client's tool is a question: whoever takes no such question has no tools.
    tools = {each.name: each for each in params.client_tools} if CLIENT_TOOL.kind in wanted else {}
    return Negotiated(
        spoken=True,
        client=params.client.name,
        version=params.client.version,
        server_requests=wanted,
        live=params.live,
        batch=params.batch,
        opt_out=frozenset(types).intersection(params.opt_out),
        client_tools=tuple(tools.values()),
    )
