"""The states of a runtime, as a table; what all runtimes of a server share; and what one of them holds.

`opening` until the home is ours and everything is loaded, `open` while it serves, `closing` while it ends what runs,
`closed` when nothing of it lives. `failed` is an end too: the next use makes another runtime.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import final

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.scope import guard
from hermes_ws.scope.home import HomesRoot, ProfileHome
from hermes_ws.scope.identity import Identity, ProfileName
from hermes_ws.session.ports import Audience
from hermes_ws.warden.grants import Confinement
from hermes_ws.warden.subreaper import Subreaper


class State(Enum):
    """Where a runtime stands."""

    OPENING = "opening"
    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"
    FAILED = "failed"


class Happened(Enum):
    """What moves it on."""

    OPENED = "the home is ours and everything is loaded"
    FAILED = "the home cannot be opened as it is, or a task of ours failed"
    CLOSE_ASKED = "it is idle, the server shuts down, or the profile goes away"
    ENDED = "nothing of it lives any more"


TRANSITIONS: Mapping[tuple[State, Happened], State] = MappingProxyType(
    {
        (State.OPENING, Happened.OPENED): State.OPEN,
        (State.OPENING, Happened.FAILED): State.FAILED,
        (State.OPENING, Happened.CLOSE_ASKED): State.CLOSING,
        (State.OPEN, Happened.CLOSE_ASKED): State.CLOSING,
        (State.OPEN, Happened.FAILED): State.FAILED,
        (State.OPEN, Happened.ENDED): State.CLOSED,
        (State.CLOSING, Happened.FAILED): State.FAILED,
        (State.CLOSING, Happened.ENDED): State.CLOSED,
    }
)


@final
@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all runtimes of one server share."""

    root: HomesRoot
    instance_id: str
    base_environment: Mapping[str, str]
    parameters: Mapping[str, str]
    """Start parameters of the server, `CREDENTIALS_DIRECTORY` among them."""
    launch_secrets: Mapping[str, str]
    audience: Audience
    subreaper: Subreaper | None
    probe: Callable[[], Awaitable[Confinement]]
    """What the kernel confines, tried once for the server."""
    admit: Callable[[ProfileName, ProfileHome, Identity], Awaitable[None]]
    """Refuse a home whose identity belongs to another one. Raises `ProfileUnusable`."""
    wake: Callable[[ProfileName, str, float | None], Awaitable[None]]
    """Remember when the profile (its name and origin) is to be opened for its next timer; None for not at all."""


@final
@dataclass(frozen=True, slots=True)
class Statistics:
    """What a runtime holds now."""

    state: str
    sessions_open: int
    running: int
    wardens: int
    tasks: int
    threads: int
    timers: int


def prepare(name: ProfileName, home: ProfileHome) -> None:
    """Make the directories of a home that is there. Raises `ProfileUnusable`, also for a home that is gone."""
    with guard.permit(home):
        try:
            home.prepare()
        except FileNotFoundError:
            raise ProfileUnusable(f"The home of profile {name} is gone.", profile=name.text) from None
        except OSError as error:
            raise ProfileUnusable(
                f"The home of profile {name} cannot be written: {error.strerror} ({error.filename}).",
                hint="Check who owns the directory and whether its disk is full or read-only.",
                profile=name.text,
            ) from None
