"""The tool servers of a profile's sessions: each session has its own, from its first turn until it ends.

They are tasks of the profile. They are ended when the session is, when nobody used them for `sessions.idle_s`, and with
the profile; a session whose profile was loaded again since gets new ones with its next turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, final

import trio

from hermes_ws.agent.mcp.plan import plans_of
from hermes_ws.agent.ports import Hands, Pipe
from hermes_ws.agent.tools.tool import Tool
from hermes_ws.contract.methods.mcp import ServerRow
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.profile_scope import ProfileScope

if TYPE_CHECKING:
    from hermes_ws.agent.mcp.plan import ServerPlan
    from hermes_ws.agent.mcp.server import ToolServer

LOOKS_PER_IDLE: Final = 4
"""How often unused servers are looked for within the idle time."""


class Home(Protocol):
    """The profile that owns them."""

    def start_soon(self, fn: Callable[[], Awaitable[object]], *, name: str) -> None: ...


@final
class ToolServers:
    """Those of all sessions of one profile."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._sessions: dict[str, _SessionServers] = {}

    @property
    def count(self) -> int:
        """How many servers there are, whatever state they are in."""
        return sum(len(each.servers) for each in self._sessions.values())

    async def ready(self, session_id: str, scope: ProfileScope, hands: Hands) -> Sequence[ToolServer]:
        """The servers of a session, started where they do not run; each has settled, or had its time to.

        The scope is to be bound. Raises `Draining`.
        """
        plans = plans_of(scope)
        running = self._sessions.get(session_id)
        if running is not None and running.loaded != scope.loaded:
            self.end(session_id)
            running = None
        if not plans:
            return ()
        if running is None:
            make = await in_thread(trio.CapacityLimiter(1), _maker)
            running = self._sessions.get(session_id) or _SessionServers(scope, plans, hands, make)
            if self._sessions.setdefault(session_id, running) is running and not running.started:
                running.started = True
                self._home.start_soon(lambda: self._run(session_id, running), name=f"tool servers of {session_id}")
        running.used = trio.current_time()
        async with trio.open_nursery() as nursery:
            for server in running.servers.values():
                nursery.start_soon(partial(server.settled, patient=False))
        return tuple(running.servers.values())

    def rows(self, session_id: str, scope: ProfileScope) -> list[ServerRow]:
        """What there is of a session's servers, and what would be started for it."""
        running = self._sessions.get(session_id)
        if running is None or running.loaded != scope.loaded:
            return [_stopped(plan) for plan in plans_of(scope).values()]
        return [_row(server) for server in running.servers.values()]

    def restart(self, session_id: str, name: str | None) -> int:
        """End and start one server of a session, or all. Returns how many those are."""
        running = self._sessions.get(session_id)
        chosen = [] if running is None else [each for key, each in running.servers.items() if name in (None, key)]
        for server in chosen:
            server.restart()
        return len(chosen)

    def end(self, session_id: str) -> None:
        """End the servers of a session; they are gone a moment later."""
        running = self._sessions.pop(session_id, None)
        if running is not None:
            running.scope.cancel()

    async def _run(self, session_id: str, running: _SessionServers) -> None:
        with running.scope:
            async with trio.open_nursery() as nursery:
                for server in running.servers.values():
                    nursery.start_soon(server.run)
                while trio.current_time() - running.used < running.idle_s:  # noqa: ASYNC110 - nothing announces idleness
                    await trio.sleep(running.idle_s / LOOKS_PER_IDLE)
                if self._sessions.get(session_id) is running:
                    del self._sessions[session_id]
                nursery.cancel_scope.cancel()


Make = Callable[["ServerPlan", Callable[[], Awaitable[Pipe]], Callable[[str], str]], "ToolServer"]


def _maker() -> Make:
    """Load what speaks the protocol: half a second and 40 MiB that a profile without tool servers need not have."""
    from hermes_ws.agent.mcp.server import ToolServer

    return ToolServer


@final
class _SessionServers:
    """The servers of one session, and the task that they run in."""

    def __init__(self, scope: ProfileScope, plans: Mapping[str, ServerPlan], hands: Hands, make: Make) -> None:
        self.loaded = scope.loaded
        self.idle_s = scope.config.sessions.idle_s
        self.scope = trio.CancelScope()
        self.started = False
        self.used = trio.current_time()
        self.servers = {name: make(plan, _opener(plan, hands), scope.secrets.redact) for name, plan in plans.items()}


def _opener(plan: ServerPlan, hands: Hands) -> Callable[[], Awaitable[Pipe]]:
    return lambda: hands.open_pipe(plan.argv, env=plan.env)


def _stopped(plan: ServerPlan) -> ServerRow:
    return ServerRow(name=plan.name, transport=_transport(plan), state="stopped", problem=plan.problem)


def _row(server: ToolServer) -> ServerRow:
    from hermes_ws.agent.mcp.tools import name_of

    return ServerRow(
        name=server.plan.name,
        transport=_transport(server.plan),
        state=server.state,
        problem=server.problem,
        tools=[name_of(server.plan.name, each.name) for each in server.tools],
        restarts=server.restarts,
    )


def _transport(plan: ServerPlan) -> str:
    return "stdio" if plan.url is None else "http"


def tools_of(servers: Sequence[ToolServer]) -> Sequence[Tool]:
    """The tools of those that are ready."""
    if not servers:
        return ()
    from hermes_ws.agent.mcp.tools import tools_of as tools_of_one

    return [tool for server in servers if server.state == "ready" for tool in tools_of_one(server)]
