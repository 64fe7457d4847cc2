"""What a profile's agents remember between sessions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hermes_ws.contract.errors import LimitReached, ProfileUnusable
from hermes_ws.contract.methods.agents import OfProfile
from hermes_ws.contract.model import Result
from hermes_ws.contract.registry import Order, Right, Scope, method

MEMORY_CHARACTERS = 20_000
"""Of one file in a request; the home takes less, and says so."""


class Memories(Result):
    """The content of MEMORY.md and USER.md; entries are parted by lines with `§`. `limit` is in characters."""

    memory: str
    user: str
    limit: int


class SetMemoryParams(OfProfile):
    """The whole new content of one of the two."""

    target: Literal["memory", "user"]
    text: str = Field(max_length=MEMORY_CHARACTERS)


MEMORY_GET = method(
    "memory.get",
    OfProfile,
    Memories,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(ProfileUnusable,),
    doc="What the profile's agents have noted.",
)

MEMORY_SET = method(
    "memory.set",
    SetMemoryParams,
    Memories,
    scope=Scope.PROFILE,
    right=Right.CONTROL,
    order=Order.PROFILE,
    errors=(LimitReached, ProfileUnusable),
    doc="Replace what is noted. The next turn of every session reads it.",
)
