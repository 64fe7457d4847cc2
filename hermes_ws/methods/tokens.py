"""Who else may come in, and with which rights."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_ws.contract.methods.tokens import (
    TICKET_ISSUE,
    TOKEN_CREATE,
    TOKEN_LIST,
    TOKEN_REVOKE,
    CreateTokenParams,
    RevokeTokenParams,
    Ticket,
    TicketParams,
    TokenCreated,
    TokenList,
    TokenRevoked,
    TokenRow,
)
from hermes_ws.contract.model import Empty
from hermes_ws.contract.registry import Right
from hermes_ws.hosting.tokens import Grant, Token
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ServerCall


@handles(TOKEN_CREATE)
async def create(call: ServerCall, params: CreateTokenParams) -> TokenCreated:
    """Keep a hash, and tell the token."""
    profiles = await _ids(call, params.profiles)
    secret, token = await call.host.credentials.create(
        _grant(call), params.name, profiles, _rights(params.rights), params.expires_in_s
    )
    row = await _row(call, token)
    return TokenCreated(**row.model_dump(), token=secret)


@handles(TOKEN_LIST)
async def list_tokens(call: ServerCall, params: Empty) -> TokenList:
    """Those that the caller may know of."""
    return TokenList(tokens=[await _row(call, token) for token in call.host.credentials.seen_by(_grant(call))])


@handles(TOKEN_REVOKE)
async def revoke(call: ServerCall, params: RevokeTokenParams) -> TokenRevoked:
    """End it and what was made by it. When the caller's own connection is among those that are closed, it is last."""
    ended = await call.host.credentials.revoke(_grant(call), params.token_id, call.attachment.id)
    call.after_reply(lambda: call.host.credentials.tell(ended))
    return TokenRevoked(token_ids=sorted(ended))


@handles(TICKET_ISSUE)
async def issue(call: ServerCall, params: TicketParams) -> Ticket:
    """For the same principal as the caller."""
    profiles = await _ids(call, params.profiles)
    rights = call.principal.rights if params.rights is None else _rights(params.rights)
    secret, until = call.host.credentials.issue(_grant(call), params.purpose, profiles, rights)
    return Ticket(ticket=secret, purpose=params.purpose, expires_at=until)


async def _ids(call: ServerCall, names: Sequence[str] | None) -> frozenset[str] | None:
    """The ids of these profiles, which gives a home that was never opened one. Raises `ProfileUnknown`."""
    if names is None:
        return None
    return frozenset([(await call.open(name)).scope.identity.id for name in names])


async def _row(call: ServerCall, token: Token) -> TokenRow:
    grant = token.grant
    names = None if grant.profiles is None else await call.host.names_of(grant.profiles)
    return TokenRow(
        token_id=token.token_id,
        name=token.name,
        kind=token.kind,
        principal=grant.name,
        profiles=None if names is None else sorted(names),
        rights=sorted(right.value for right in grant.rights - {Right.NONE}),
        created_at=token.created_at,
        expires_at=token.expires_at,
    )


def _grant(call: ServerCall) -> Grant:
    principal = call.principal
    return Grant(principal.name, principal.profile_ids, principal.rights, principal.credential)


def _rights(names: Sequence[str]) -> frozenset[Right]:
    return frozenset(Right(name) for name in names)
