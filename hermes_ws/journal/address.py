"""Which thread is meant: within a home, and for those who hear from several homes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from hermes_ws.wire.frames import encode


@final
@dataclass(frozen=True, slots=True)
class ThreadKey:
    """A thread within one home."""

    session_id: str
    thread_id: str


@final
@dataclass(frozen=True, slots=True)
class Address:
    """A thread as its events name it: the profile that it belongs to is part of every one of them."""

    profile: str
    session_id: str
    thread_id: str
    json: bytes = field(init=False, compare=False, repr=False)
    """The three as members of a JSON object, encoded once for all events of the thread."""

    def __post_init__(self) -> None:
        named = {"profile": self.profile, "session_id": self.session_id, "thread_id": self.thread_id}
        object.__setattr__(self, "json", encode(named)[1:-1])
