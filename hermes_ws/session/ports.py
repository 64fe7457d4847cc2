"""What sessions need of the rooms above them: the open profile they live in, and people who can be asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVarTuple, final

import trio
from pydantic import JsonValue

from hermes_ws.contract.methods.connection import ClientTool
from hermes_ws.contract.methods.sessions import ControlResult
from hermes_ws.contract.questions import OpenQuestion
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.database import Database
from hermes_ws.journal.tail import ThreadTail
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.ongoing import Ongoing
from hermes_ws.session.vault import Vault
from hermes_ws.warden.grants import Confinement, Grants
from hermes_ws.warden.hands import Warden

Ts = TypeVarTuple("Ts")


@final
@dataclass(frozen=True, slots=True)
class Counted:
    """Who could be asked: connections that may answer for the profile, and those of them that declared the kind."""

    with_right: int
    capable: int


class Audience(Protocol):
    """The people at the connections, as far as a profile may speak to them. Neither call waits for anybody."""

    def ask(self, question: OpenQuestion, profile: str) -> Counted:
        """Send a question to every connection that may answer for the profile and declared the kind."""
        ...

    def client_tools(self, profile: str) -> tuple[ClientTool, ...]:
        """The tools that clients of the profile offer now, each name once; a call is a question to it."""
        ...

    def sessions_changed(self, profile: str, session_id: str | None) -> None:
        """Tell all who may look at the profile that its list of sessions is another one; where it is one session that
        changed, which."""
        ...

    def skin_changed(self, profile: str, name: str) -> None:
        """Tell all who may address the profile that it has another skin now."""
        ...

    def settled(self, question_id: str, reason: str, profile: str) -> None:
        """Tell those who were asked that no answer is needed any more; `reason` is one of `RequestCancel`'s."""
        ...


class Log(Protocol):
    """The profile's own log. What is written is redacted with the profile's secrets and never waits."""

    def write(self, level: str, event: str, **fields: JsonValue) -> None:
        """One line: what happened, and what belongs to it."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Granted:
    """A running warden, and what its children may touch."""

    warden: Warden
    grants: Grants


class Sibling(Protocol):
    """A thread, as another one of its session deals with it."""

    @property
    def key(self) -> ThreadKey: ...

    @property
    def tail(self) -> ThreadTail: ...

    @property
    def busy(self) -> bool:
        """Whether something runs, or is about to be claimed."""
        ...

    @property
    def running(self) -> int | None:
        """The generation of the execution that runs; None when none does."""
        ...

    def wake(self) -> None:
        """See to the queue."""
        ...

    def interrupt(self, execution_generation: int) -> ControlResult:
        """End that execution, and no other."""
        ...


class Runtime(Protocol):
    """An open profile, as its sessions see it."""

    @property
    def scope(self) -> ProfileScope:
        """The scope as it was loaded last. An execution asks for `fresh_scope` instead, and keeps what it got."""
        ...

    @property
    def journal(self) -> Database: ...

    @property
    def audience(self) -> Audience: ...

    @property
    def log(self) -> Log: ...

    @property
    def limiter(self) -> trio.CapacityLimiter:
        """How many threads this profile may occupy at once."""
        ...

    @property
    def draining(self) -> bool:
        """Whether no new work is to begin."""
        ...

    @property
    def closing(self) -> bool:
        """Whether what runs is to end now."""
        ...

    @property
    def base_environment(self) -> Mapping[str, str]:
        """The base names that every child gets, from the start of the server."""
        ...

    @property
    def confinement(self) -> Confinement:
        """What confines the profile's children, as it was tried."""
        ...

    @property
    def vault(self) -> Vault:
        """Where the profile's logins lie."""
        ...

    @property
    def ongoing(self) -> Ongoing:
        """Background processes and terminals."""
        ...

    def homes(self) -> tuple[Path, ...]:
        """What no working directory may contain or lie in."""
        ...

    def start_soon(self, fn: Callable[[*Ts], Awaitable[object]], *args: *Ts, name: str) -> None:
        """Start a task of the profile: bound to it, and ended with it. Raises `Draining` when the profile closes."""
        ...

    async def fresh_scope(self) -> ProfileScope:
        """The scope, loaded again when its files changed. Raises `ProfileUnusable` when they cannot be loaded."""
        ...

    async def warden_for(self, scope: ProfileScope, directory: Path) -> Granted:
        """A running warden whose grants are those of this load of the profile and this directory."""
        ...

    async def warden_for_client(self, scope: ProfileScope, grants: Grants) -> Granted:
        """A running warden with grants of its own, for the client of a remote terminal."""
        ...
