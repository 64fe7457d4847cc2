"""The first frame of every connection: who answers, what is served, and within which limits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, final

from hermes_ws.contract.events import Limits, Protocol, Ready
from hermes_ws.contract.registry import Right
from hermes_ws.contract.version import PROTOCOL_MAJOR, PROTOCOL_MINOR
from hermes_ws.hosting.host import Host
from hermes_ws.methods import documents
from hermes_ws.methods.ports import ServerFacts
from hermes_ws.scope.sections import LimitsConfig
from hermes_ws.server.lanes import WAITING_BYTES, WAITING_REQUESTS
from hermes_ws.server.ports import Caller
from hermes_ws.server.skin import skin
from hermes_ws.wire.frames import Frame, event_frame

CAPABILITIES: Final = ("live.offsets", "questions", "resume.cursor", "submit.input_id")
"""What this server can do beyond answering methods. A name in a set; one that is absent means no."""


@final
class Greeting:
    """Makes `gateway.ready`. What does not change is made once; `skin` gives the name of the one that holds now."""

    def __init__(self, host: Host, facts: ServerFacts, limits: LimitsConfig, skin: Callable[[], str]) -> None:
        self._host = host
        self._facts = facts
        self._digest = documents.digest()
        self._limits = Limits(
            frame_bytes=limits.frame_bytes,
            in_flight=limits.in_flight,
            waiting=WAITING_REQUESTS,
            waiting_bytes=WAITING_BYTES,
        )
        self._skin = skin

    def __call__(self, connection: Caller) -> Frame:
        """The frame for this connection, which is told of the profiles that it may address and of no other."""
        profiles = [row.name for row in self._host.listing()]
        ready = Ready(
            protocol=Protocol(major=PROTOCOL_MAJOR, minor=PROTOCOL_MINOR),
            server=self._facts.info,
            instance_id=self._facts.instance_id,
            profiles=[name for name in profiles if connection.may_address(name)],
            rights=sorted(right.value for right in connection.principal.rights - {Right.NONE}),
            capabilities=list(CAPABILITIES),
            limits=self._limits,
            contract_digest=self._digest,
            skin=skin(self._skin()),
            heartbeat=True,
        )
        return event_frame({"type": "gateway.ready", "ts": time.time(), "payload": ready.model_dump(mode="json")})
