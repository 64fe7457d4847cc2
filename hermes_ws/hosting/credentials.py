"""Who may come in besides the one who started the server: named tokens, browser sessions and tickets.

A token is told once, to whoever made it; what is kept of it is a hash, in `server.db` of the launch home. It gives what
its maker had, or less, and ends with it: revoking a token ends all that was made by it, and the connections that came
in by any of them. A ticket is for one use within seconds, is kept in memory only, and is good for its purpose alone.
Profiles are kept by their ids, so that a renamed profile takes its tokens along and a new one of the old name is not
opened by them.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, final

import trio

from hermes_ws.contract.errors import AlreadyExists, LimitReached, NotFound, PermissionDenied
from hermes_ws.contract.registry import Right
from hermes_ws.hosting.server_store import ServerStore
from hermes_ws.hosting.tokens import Grant, Kind, Token

OWNER: Final = "owner"
"""Name of the principal that the launch token and all that is made from it belong to."""

SECRET_BYTES: Final = 32
"""Random bytes of a token or ticket: not to be guessed, and so it needs no slow hash."""

PREFIX: Final = "hws_"
"""What every token begins with, so that programs that look for lost secrets find it."""

MOST_TOKENS: Final = 1000
"""Tokens of one server; somebody makes them in a loop by mistake before that."""

MOST_TICKETS: Final = 256
"""Tickets that wait to be used; they last seconds."""

TICKET_S: Final[Mapping[str, float]] = MappingProxyType({"connect": 30.0, "browser": 600.0})
"""Seconds that a ticket lasts: a program uses it at once, a person has to find the window first."""

SESSION_S: Final = 12 * 3600.0
"""Seconds that a browser stays signed in: a working day."""

LOOK_EVERY_S: Final = 30.0
"""How often is looked for what has expired; what came in by it is closed at most so much later."""

Purpose = Literal["connect", "browser"]
Clock = Callable[[], float]
Withdrawn = Callable[[frozenset[str], str | None], None]


@final
@dataclass(frozen=True, slots=True)
class _Ticket:
    grant: Grant
    purpose: Purpose
    expires_at: float


@final
class Credentials:
    """All tokens and tickets of one server. Changes are durable when they return."""

    def __init__(self, store: ServerStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._tokens: dict[str, Token] = {}
        self._by_digest: dict[bytes, Token] = {}
        self._tickets: dict[bytes, _Ticket] = {}
        self._one = trio.Lock()
        self._followers: tuple[Withdrawn, ...] = ()

    async def load(self) -> None:
        """Read what is kept. Raises `StorageUnavailable`."""
        for token in await self._store.tokens():
            self._keep(token)

    async def run(self) -> None:
        """Put away what has expired, until cancelled."""
        while True:
            await trio.sleep(LOOK_EVERY_S)
            await self.expire()

    def follow(self, tell: Withdrawn) -> None:
        """Have `tell` called with the ids of tokens that hold no longer, and with the one connection to be spared."""
        self._followers = (*self._followers, tell)

    def tell(self, ids: frozenset[str], sparing: str | None = None) -> None:
        """Tell those who follow, again for a connection that was spared until it had its answer."""
        for follower in self._followers:
            follower(ids, sparing)

    # --- at the door -------------------------------------------------------------------------------------------------

    def verify(self, secret: str) -> Grant | None:
        """What a token opens, or a ticket to connect, which is used up by that. None for any other text."""
        digest = _digest(secret)
        token = self._by_digest.get(digest)
        if token is not None:
            return token.grant if not self._expired(token) else None
        return self._redeem(digest, "connect")

    def withdrawn(self, credential: str | None) -> bool:
        """Whether a token holds no longer by which somebody came in."""
        if credential is None:
            return False
        token = self._tokens.get(credential)
        return token is None or self._expired(token)

    async def login(self, ticket: str) -> tuple[str, Token] | None:
        """Exchange a browser's ticket for a token that lasts a day's work; None for anything else."""
        grant = self._redeem(_digest(ticket), "browser")
        return None if grant is None else await self._make(grant, "browser", "session", SESSION_S)

    def _redeem(self, digest: bytes, purpose: Purpose) -> Grant | None:
        ticket = self._tickets.get(digest)
        if ticket is None or ticket.purpose != purpose:
            return None
        del self._tickets[digest]
        return None if ticket.expires_at <= self._clock() or self.withdrawn(ticket.grant.credential) else ticket.grant

    # --- making and taking back --------------------------------------------------------------------------------------

    @property
    def named(self) -> int:
        """How many tokens there are that somebody was given by name."""
        return sum(token.kind == "named" and not self._expired(token) for token in self._tokens.values())

    async def create(
        self, by: Grant, name: str, profiles: frozenset[str] | None, rights: frozenset[Right], lasts_s: float | None
    ) -> tuple[str, Token]:
        """Make a token for somebody called `name`, and give its text, which is never told again.

        Raises `PermissionDenied` for more than `by` has itself, `AlreadyExists`, `LimitReached`, `StorageUnavailable`.
        """
        grant = _narrowed(by, name, profiles, rights)
        if name == OWNER:
            raise AlreadyExists(f"{OWNER} is whoever started the server.", hint="Choose another name.")
        return await self._make(grant, name, "named", lasts_s)

    def issue(
        self, by: Grant, purpose: Purpose, profiles: frozenset[str] | None, rights: frozenset[Right]
    ) -> tuple[str, float]:
        """Make a ticket for the same principal, and say until when it is good. Raises as `create` does."""
        now = self._clock()
        for digest, waiting in tuple(self._tickets.items()):
            if waiting.expires_at <= now:
                del self._tickets[digest]
        if len(self._tickets) >= MOST_TICKETS:
            soonest = min(each.expires_at for each in self._tickets.values())
            raise LimitReached("Too many tickets wait to be used.", retry_after_s=round(soonest - now, 3))
        secret = _secret()
        until = now + TICKET_S[purpose]
        self._tickets[_digest(secret)] = _Ticket(_narrowed(by, by.name, profiles, rights), purpose, until)
        return secret, until

    def seen_by(self, by: Grant) -> list[Token]:
        """The tokens that `by` may know of: those that give no more than it has itself, in the order of making."""
        found = [token for token in self._tokens.values() if by.covers(token.grant) and not self._expired(token)]
        return sorted(found, key=lambda token: (token.created_at, token.token_id))

    async def revoke(self, by: Grant, token_id: str, sparing: str | None = None) -> frozenset[str]:
        """Take a token back, and all that was made by it. The ids of those that hold no longer.

        The connection `sparing` is left for `tell`, so that who takes back its own token has its answer first.
        Raises `NotFound`, also for one that `by` may not know of; `StorageUnavailable`.
        """
        if token_id not in {token.token_id for token in self.seen_by(by)}:
            raise NotFound(f"There is no token {token_id}.", hint="token.list shows those that there are.")
        return await self._end(frozenset({token_id}), sparing)

    async def expire(self) -> None:
        """Put away what has expired, and all that was made by it."""
        expired = frozenset(token_id for token_id, token in self._tokens.items() if self._expired(token))
        if expired:
            await self._end(expired)

    # --- within ------------------------------------------------------------------------------------------------------

    async def _make(self, grant: Grant, name: str, kind: Kind, lasts_s: float | None) -> tuple[str, Token]:
        async with self._one:
            if len(self._tokens) >= MOST_TOKENS:
                raise LimitReached(f"There are {MOST_TOKENS} tokens.", hint="Revoke those that nobody needs.")
            if kind == "named" and any(each.kind == kind and each.name == name for each in self._tokens.values()):
                raise AlreadyExists(f"There is a token called {name}.", hint="Revoke it first, or choose another name.")
            secret = _secret()
            now = self._clock()
            token_id = f"tok-{secrets.token_hex(8)}"
            token = Token(
                token_id=token_id,
                name=name,
                kind=kind,
                grant=Grant(grant.name, grant.profiles, grant.rights, token_id),
                digest=_digest(secret),
                parent=grant.credential,
                created_at=now,
                expires_at=None if lasts_s is None else now + lasts_s,
            )
            await self._store.add_token(token)
            self._keep(token)
        if self.withdrawn(grant.credential):
            # Its maker was taken back meanwhile: what it made ends with it.
            await self._end(frozenset({token_id}))
        return secret, token

    async def _end(self, ids: frozenset[str], sparing: str | None = None) -> frozenset[str]:
        ended = set(ids)
        while made := {each.token_id for each in self._tokens.values() if each.parent in ended} - ended:
            ended |= made
        # Not let in from now on, whether or not the disk takes it; the caller is told when it does not.
        gone = [self._tokens.pop(token_id) for token_id in ended if token_id in self._tokens]
        for token in gone:
            self._by_digest.pop(token.digest, None)
        names = frozenset(ended)
        self.tell(names, sparing)
        await self._store.remove_tokens(names)
        return names

    def _keep(self, token: Token) -> None:
        self._tokens[token.token_id] = token
        self._by_digest[token.digest] = token

    def _expired(self, token: Token) -> bool:
        return token.expires_at is not None and token.expires_at <= self._clock()


def _narrowed(by: Grant, name: str, profiles: frozenset[str] | None, rights: frozenset[Right]) -> Grant:
    grant = Grant(name, profiles if profiles is not None else by.profiles, rights, by.credential)
    if not by.covers(grant):
        lacking = ", ".join(sorted(right.value for right in rights - by.rights)) or "a profile"
        raise PermissionDenied(f"Nobody can give what they do not have: {lacking}.")
    return grant


def _secret() -> str:
    return PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()
