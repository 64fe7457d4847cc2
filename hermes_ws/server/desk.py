"""What the requests of one connection have in common, from the first of them to the end of the connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, final

import trio

from hermes_ws.hosting.host import Host
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.methods.ports import ProfileCall, ServerFacts, Works
from hermes_ws.scope.current import Bound
from hermes_ws.server.attachment import Attached
from hermes_ws.server.entry import Principal
from hermes_ws.server.lanes import Lanes
from hermes_ws.server.routes import Routes
from hermes_ws.wire.frames import RequestId

Step = Callable[[], None]

Standing = tuple[
    Attached,
    Principal,
    Callable[[Step], None],
    Host,
    ServerFacts,
    Callable[[str | None], Awaitable[ProfileRuntime]],
    Works,
]
"""What every call on the server begins with, for a handler that has nothing to do after its reply."""


@final
class Found(NamedTuple):
    """A profile that a connection asked for, as all requests of one read have it: nothing changes while they are taken,
    and nothing is kept longer, so that a profile that closes is let go."""

    asked: str | None
    call: ProfileCall
    bound: Bound


@final
class Desk:
    """The requests of one connection that are under way, and what all of them have in common."""

    __slots__ = ("closed", "found", "lanes", "routes", "standing", "under_way")

    def __init__(self, width: int, routes: Routes, standing: Standing) -> None:
        self.lanes: Final = Lanes(width)
        self.under_way: Final[dict[RequestId, trio.CancelScope]] = {}
        self.routes: Final = routes
        self.standing: Final = standing
        self.found: Found | None = None
        self.closed = False
