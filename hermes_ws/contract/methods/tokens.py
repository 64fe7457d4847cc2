"""Who else may come in, and with which rights."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hermes_ws.contract.errors import (
    AlreadyExists,
    LimitReached,
    NotFound,
    PermissionDenied,
    ProfileUnknown,
    StorageUnavailable,
)
from hermes_ws.contract.model import Empty, Identifier, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method

RightName = Literal["observe", "submit", "answer", "control", "terminal", "admin"]

TokenName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[a-z0-9][a-z0-9._-]*$")]
"""What the principal is called; it stands in lists and in the audit log."""

Profiles = Annotated[list[Identifier], Field(min_length=1, max_length=1000)]
Rights = Annotated[list[RightName], Field(min_length=1, max_length=6)]


class CreateTokenParams(Params):
    """For whom, for which profiles (absent: all that the caller may address), with which rights, for how long."""

    name: TokenName
    profiles: Profiles | None = None
    rights: Rights
    expires_in_s: float | None = Field(default=None, ge=1, le=3_153_600_000)


class TokenRow(Result):
    """A token without the token. `kind` is `session` for a browser that signed in. Times are seconds since 1970."""

    token_id: str
    name: str
    kind: Literal["named", "session"]
    principal: str
    profiles: list[str] | None
    rights: list[str]
    created_at: float
    expires_at: float | None


class TokenCreated(TokenRow):
    """The token, which is told this once."""

    token: str = Field(repr=False)


class TokenList(Result):
    """Those that give no more than the caller has."""

    tokens: list[TokenRow]


class RevokeTokenParams(Params):
    """Which one."""

    token_id: Identifier


class TokenRevoked(Result):
    """Those that hold no longer: the token, and what was made by it. Connections that came in by them are closed."""

    token_ids: list[str]


class TicketParams(Params):
    """What the ticket is for, and how much of the caller's own it gives; absent means all of it."""

    purpose: Literal["connect", "browser"] = "connect"
    profiles: Profiles | None = None
    rights: Rights | None = None


class Ticket(Result):
    """For one use: as a token of one connection, or for `POST /login`."""

    ticket: str = Field(repr=False)
    purpose: Literal["connect", "browser"]
    expires_at: float


TOKEN_CREATE = method(
    "token.create",
    CreateTokenParams,
    TokenCreated,
    scope=Scope.SERVER,
    right=Right.ADMIN,
    order=Order.FREE,
    errors=(PermissionDenied, ProfileUnknown, AlreadyExists, LimitReached, StorageUnavailable),
    doc="Make a token for somebody or something else, with no more than the caller has.",
)

TOKEN_LIST = method(
    "token.list",
    Empty,
    TokenList,
    scope=Scope.SERVER,
    right=Right.ADMIN,
    order=Order.FREE,
    doc="The tokens that hold now, without the tokens themselves.",
)

TOKEN_REVOKE = method(
    "token.revoke",
    RevokeTokenParams,
    TokenRevoked,
    scope=Scope.SERVER,
    right=Right.ADMIN,
    order=Order.FREE,
    errors=(NotFound, StorageUnavailable),
    doc="Take a token back; whoever came in by it is sent away at once, with close code 4501.",
)

TICKET_ISSUE = method(
    "ticket.issue",
    TicketParams,
    Ticket,
    scope=Scope.SERVER,
    right=Right.ADMIN,
    order=Order.FREE,
    errors=(PermissionDenied, ProfileUnknown, LimitReached),
    doc="A ticket for one connection within 30 seconds, or for a browser to sign in with within 10 minutes.",
)
