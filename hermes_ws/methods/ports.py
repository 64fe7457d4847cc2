"""What a handler may ask of the connection and the server that it is called on; given by the room above."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, final

from hermes_ws.contract.events import ServerInfo
from hermes_ws.contract.methods.connection import CapabilitiesParams, CapabilitiesResult
from hermes_ws.contract.methods.runtime import ConnectionRow
from hermes_ws.contract.registry import Right
from hermes_ws.hosting.host import Host
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal.tail import LiveMarks, ThreadTail
from hermes_ws.session.session import Session
from hermes_ws.session.thread import Thread
from hermes_ws.wire.cursor import Cursor


class Principal(Protocol):
    """Who asks. `profiles` and their `profile_ids` are None for one that may address all; `credential` is the id of the
    token by which it came in, if there was one."""

    @property
    def name(self) -> str: ...
    @property
    def profiles(self) -> frozenset[str] | None: ...
    @property
    def rights(self) -> frozenset[Right]: ...
    @property
    def profile_ids(self) -> frozenset[str] | None: ...
    @property
    def credential(self) -> str | None: ...


class Attachment(Protocol):
    """The connection, as a handler may use it."""

    @property
    def id(self) -> str: ...

    def may_address(self, profile: str) -> bool:
        """Whether the principal, on this connection, sees the profile of this name at all."""
        ...

    def negotiate(self, params: CapabilitiesParams) -> CapabilitiesResult:
        """Put the capabilities into force, once. Raises `AlreadyNegotiated`, `ProtocolUnsupported`."""
        ...

    def show_questions(self) -> None:
        """Have the questions that wait sent to this connection, as far as it said that it can be asked."""
        ...

    def listen(self, thread: Thread, start: Cursor, marks: LiveMarks) -> None:
        """Subscribe to a thread from a cursor on. An earlier subscription to it is replaced."""
        ...

    def look(self, tail: ThreadTail) -> None:
        """Send what a terminal shows or a process writes, from the first that is kept on, until it ends."""
        ...

    def look_away(self, tail: ThreadTail) -> None:
        """Send no more of that."""
        ...

    def attached_to(self, session_id: str) -> bool:
        """Whether this connection listens to a thread of the session now."""
        ...

    def stop_listening(self, thread: Thread) -> bool:
        """End the subscription; false when there was none."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Present:
    """A connection as it is told, and whose it is."""

    principal: Principal
    row: ConnectionRow


class Works(Protocol):
    """The server at work, as a handler may look at it, and end it."""

    @property
    def connections(self) -> int:
        """How many clients are there now."""
        ...

    @property
    def requests(self) -> int:
        """How many requests run now, the one that asks among them."""
        ...

    def present(self) -> list[Present]:
        """Who is connected now."""
        ...

    def drain(self, deadline_s: float | None) -> float:
        """Begin to end, as a signal would; what runs has so many seconds, None for what the settings say. Returns when
        that is over, in seconds since 1970."""
        ...


@final
@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What stays the same as long as the server runs. Times are seconds since 1970."""

    info: ServerInfo
    instance_id: str
    boot_id: str
    pid: int
    started_at: float


@dataclass(frozen=True, slots=True)
class ConnectionCall:
    """A call that needs no profile."""

    attachment: Attachment
    principal: Principal
    after_reply: Callable[[Callable[[], None]], None]
    """Run something when the reply stands in the connection's output, before anything that follows it."""


@dataclass(frozen=True, slots=True)
class ServerCall(ConnectionCall):
    """A call on the server as a whole."""

    host: Host
    facts: ServerFacts
    open: Callable[[str | None], Awaitable[ProfileRuntime]]
    """Open a profile by name or id, None for the connection's own. Raises `ProfileUnknown` for what does not exist and,
    in the same words, for what this caller may not address."""
    works: Works

    def may_address(self, profile: str) -> bool:
        """Whether this caller sees the profile at all."""
        return self.attachment.may_address(profile)


@dataclass(frozen=True, slots=True)
class ProfileCall(ServerCall):
    """A call on one profile, which is open and bound."""

    runtime: ProfileRuntime


@dataclass(frozen=True, slots=True)
class SessionCall(ProfileCall):
    """A call on one session of the bound profile."""

    session: Session


@dataclass(frozen=True, slots=True)
class ThreadCall(SessionCall):
    """A call on one thread of the session."""

    thread: Thread
