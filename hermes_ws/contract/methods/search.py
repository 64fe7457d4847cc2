"""Searching what was said."""

from __future__ import annotations

from pydantic import Field

from hermes_ws.contract.errors import StorageUnavailable
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method


class SearchParams(Params):
    """Words to look for in the messages of one profile. Words match whole, the last one also as a beginning."""

    query: str = Field(min_length=1, max_length=400)
    profile: Identifier | None = None
    limit: int = Field(default=20, ge=1, le=100)


class SearchHit(Result):
    """A message that has all the words. `matches` are ranges of `snippet`, in code points; times since 1970."""

    session_id: str
    thread_id: str
    message_id: str
    role: str
    title: str | None
    archived: bool
    updated_at: float
    snippet: str
    matches: list[tuple[int, int]]


class SearchHits(Result):
    """The best matches first."""

    hits: list[SearchHit]


SESSION_SEARCH = method(
    "session.search",
    SearchParams,
    SearchHits,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(StorageUnavailable,),
    doc="Find messages of one profile by their words; no other profile is looked at.",
)
