"""Which thread is meant: within a home, and for those who hear from several homes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


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
