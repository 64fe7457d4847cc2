"""Accepting connections, and owning them: each one is a task in the nursery of the listener and ends with it."""

from __future__ import annotations

import errno
import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, final

import trio

from hermes_ws.server.connection import Connection
from hermes_ws.server.events_http import EventStream, Listening
from hermes_ws.server.ports import Attendee, Caller, Dispatcher, Welcome
from hermes_ws.server.sockets import Bound
from hermes_ws.server.visitor import Site, Upgraded, Visitor

OUT_OF_ROOM_PAUSE: Final = 0.1
"""Seconds to wait when the process or the machine has no descriptor left; closing one takes about as long."""

OUT_OF_ROOM_TOLD: Final = 10.0
"""Seconds after that for which the server says that it is not ready: probes come every ten, and must find out."""

_OUT_OF_ROOM: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))

_log = logging.getLogger(__name__)


@final
@dataclass(frozen=True, slots=True)
class ListenerStatistics:
    """How many are connected, how many ask by plain HTTP, and how many are still at the door."""

    connections: int
    guests: int
    visitors: int


@final
class Listener:
    """All connections of a server, on whichever of its sockets they came.

    `joined` is told of each connection before it reads or writes anything; its dispatcher's `gone` is told of its end.
    """

    def __init__(
        self,
        site: Site,
        *,
        dispatcher: Dispatcher,
        welcome: Welcome,
        joined: Callable[[Caller], None] = lambda connection: None,
    ) -> None:
        self._site = site
        self._dispatcher = dispatcher
        self._welcome = welcome
        self._joined = joined
        self._connections: dict[str, Attendee] = {}
        self._visitors: OrderedDict[int, trio.CancelScope] = OrderedDict()
        self._guests: set[int] = set()
        """Visitors that have shown a credential and stay what they are: they ask by plain HTTP."""
        self._accepting = trio.CancelScope()
        self._out_of_room_until = -math.inf
        self._full = False

    @property
    def out_of_room(self) -> bool:
        """Whether there is no descriptor for another connection, or was none a moment ago. For `/readyz`."""
        return trio.current_time() < self._out_of_room_until

    @property
    def connections(self) -> tuple[Attendee, ...]:
        """Those that are past the handshake and have not ended, event streams among them."""
        return tuple(self._connections.values())

    def statistics(self) -> ListenerStatistics:
        """Counts of all three."""
        return ListenerStatistics(len(self._connections), len(self._guests), len(self._visitors))

    async def run(
        self, bound: Sequence[Bound], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Accept on these sockets until cancelled; the sockets are closed then.

        `stop_accepting` ends the accepting alone; this returns when the last connection has ended after that.
        """
        async with trio.open_nursery() as nursery:
            with self._accepting:
                async with trio.open_nursery() as accepting:
                    for each in bound:
                        accepting.start_soon(self._accept, each, nursery)
                    task_status.started()

    def stop_accepting(self) -> None:
        """Let nobody in any more. Those at the door are turned away, those who are in stay."""
        self._accepting.cancel()
        for scope in self._visitors.values():
            scope.cancel()

    async def say_goodbye(self, code: int, reason: str, deadline: float) -> None:
        """Close all connections and wait for them to end, at most `deadline` seconds; then they are cut."""
        for connection in self.connections:
            connection.close(code, reason)
        with trio.move_on_after(deadline):
            for connection in self.connections:
                await connection.wait_ended()
        for connection in self.connections:
            connection.cut()

    # --- accepting ---------------------------------------------------------------------------------------------------

    async def _accept(self, bound: Bound, nursery: trio.Nursery) -> None:
        out_of_room = False
        async with bound.listener:
            while True:
                try:
                    stream = await bound.listener.accept()
                except OSError as error:
                    if error.errno not in _OUT_OF_ROOM:
                        raise
                    if not out_of_room:
                        _log.error("no connection can be accepted: %s; trying again until one can", error.strerror)
                    out_of_room = True
                    self._out_of_room_until = trio.current_time() + OUT_OF_ROOM_TOLD
                    await trio.sleep(OUT_OF_ROOM_PAUSE)
                    continue
                if out_of_room:
                    _log.warning("connections are accepted again")
                out_of_room = False
                nursery.start_soon(self.serve_stream, stream, bound)

    async def serve_stream(self, stream: trio.SocketStream, bound: Bound) -> None:
        """Serve one accepted connection to its end. Whatever goes wrong with it is its own affair."""
        try:
            if bound.tls is not None:
                await bound.tls.carry(stream, bound, self.serve_stream, self._site.limits)
                return
            async with stream:
                visitor = await self._at_the_door(stream, bound)
                if isinstance(visitor, Listening):
                    await self._following(EventStream(stream, visitor, self._site.limits))
                elif visitor is not None:
                    await self._inside(stream, visitor)
        except Exception:
            # A bug of ours; the others must not pay for it. The log has the stack, and no content.
            _log.exception("a connection ended with an unforeseen error")

    async def _at_the_door(self, stream: trio.SocketStream, bound: Bound) -> Upgraded | Listening | None:
        try:
            peer = bound.peer(stream)
        except OSError:
            return None
        visitor: Upgraded | Listening | None = None
        with trio.CancelScope() as scope:
            key = id(scope)
            self._visitors[key] = scope
            if len(self._visitors) > self._site.limits.visitors:
                # A flood pushes out its own oldest; whoever shows a credential is inside within milliseconds.
                _, oldest = self._visitors.popitem(last=False)
                oldest.cancel()
            try:
                visitor = await Visitor(
                    stream,
                    self._site,
                    peer,
                    compress=bound.compress,
                    dispatcher=self._dispatcher,
                    admitted=partial(self._admit, key),
                ).receive()
            finally:
                self._visitors.pop(key, None)
                self._guests.discard(key)
        return None if scope.cancelled_caught else visitor

    def _admit(self, key: int) -> bool:
        """Whoever has shown a credential is pushed out by no flood, and counts as a connection. False for no room."""
        if key not in self._guests:
            if self._no_room() is not None:
                return False
            self._visitors.pop(key, None)
            self._guests.add(key)
        return True

    async def _following(self, events: EventStream) -> None:
        self._connections[events.id] = events
        self._joined(events)
        try:
            await events.run(self._dispatcher)
        finally:
            del self._connections[events.id]

    async def _inside(self, stream: trio.SocketStream, upgraded: Upgraded) -> None:
        connection = Connection(
            stream,
            upgraded.protocol,
            principal=upgraded.principal,
            profile=upgraded.profile,
            dispatcher=self._dispatcher,
            limits=self._site.limits,
        )
        refused = self._no_room()
        self._connections[connection.id] = connection
        self._joined(connection)
        try:
            await connection.run(self._welcome, upgraded.early, refused=refused)
        finally:
            del self._connections[connection.id]

    def _no_room(self) -> str | None:
        """Why one more connection is too many, if it is. Said in the log once, until there is room again."""
        most = self._site.limits.connections
        if len(self._connections) + len(self._guests) < most:
            self._full = False
            return None
        if not self._full:
            _log.warning("no more than %d connections are let in at once; the next ones are told to come back", most)
        self._full = True
        return "there are too many connections"
