"""What goes on in a profile besides its executions: background processes, terminals, and what serves its sessions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, final

from hermes_ws.journal.database import Database
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.terminal import TerminalPolicy
from hermes_ws.session.containers import Containers
from hermes_ws.session.local_models import LocalModels
from hermes_ws.session.processes import Processes
from hermes_ws.session.slash_workers import SlashWorkers
from hermes_ws.session.terminals import Terminals
from hermes_ws.session.toolservers import ToolServers


class Home(Protocol):
    """The profile that owns it."""

    @property
    def journal(self) -> Database: ...

    def start_soon(self, fn: Callable[[], Awaitable[object]], *, name: str) -> None: ...


@final
class Ongoing:
    """All of it, with what ends it together."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.processes = Processes(home)
        self.terminals = Terminals(home)
        self.containers = Containers()
        self.servers = ToolServers(home)
        self.slash = SlashWorkers(home)
        self.models = LocalModels(home)

    @property
    def count(self) -> int:
        """How many of them run: a profile in which something runs is in use."""
        return self.processes.count + self.terminals.count

    def rest(self, session_id: str) -> None:
        """Nobody uses the session any more; what it runs goes on, what only waited for it ends."""
        self.servers.end(session_id)
        self.slash.rest(session_id)

    def close(self, session_id: str) -> None:
        """The session was put away for good, and what served it goes with it; `end_session` ends what it left."""
        self.servers.end(session_id)
        self.slash.stop(session_id)

    async def end_session(self, session_id: str) -> None:
        """End what a session that was put away left in the background."""
        await self.processes.end_session(session_id)
        await self.terminals.end_session(session_id)
        await self.containers.end_session(session_id)

    def loaded(self, scope: ProfileScope) -> None:
        """The profile was loaded again: what was started under another policy is ended, in a task of the profile."""
        self.slash.loaded(scope)
        policy = scope.terminal
        if self.count or self.containers.count:
            self._home.start_soon(lambda: self._end_others(policy), name="end what the policy no longer grants")

    async def _end_others(self, policy: TerminalPolicy) -> None:
        await self.processes.end_other_policies(policy)
        await self.terminals.end_other_policies(policy)
        await self.containers.end_other_policies(policy)
