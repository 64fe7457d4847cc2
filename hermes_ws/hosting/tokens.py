"""A token: who it is for, what it opens, and how it is kept in `server.db`: of the token itself only as a hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, cast, final

import orjson

from hermes_ws.contract.registry import Right

Kind = Literal["named", "session"]

TABLE: Final = """
CREATE TABLE IF NOT EXISTS token (
    token_id TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, principal TEXT NOT NULL,
    digest BLOB NOT NULL UNIQUE, profiles TEXT, rights TEXT NOT NULL, parent TEXT, created_at REAL NOT NULL,
    expires_at REAL
) STRICT, WITHOUT ROWID
"""

INSERT: Final = "INSERT INTO token VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
SELECT: Final = "SELECT * FROM token"
DELETE: Final = "DELETE FROM token WHERE token_id IN (SELECT value FROM json_each(?))"

Value = str | float | bytes | None


@final
@dataclass(frozen=True, slots=True)
class Grant:
    """What a credential opens. `profiles` are ids, None for all; `credential` is the token's id, None for the owner's
    launch token."""

    name: str
    profiles: frozenset[str] | None
    rights: frozenset[Right]
    credential: str | None = None

    def covers(self, other: Grant) -> bool:
        """Whether this one has all that the other has."""
        profiles = self.profiles is None or (other.profiles is not None and other.profiles <= self.profiles)
        return profiles and other.rights <= self.rights


@final
@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is kept. Times are seconds since 1970."""

    token_id: str
    name: str
    kind: Kind
    grant: Grant
    digest: bytes = field(repr=False)
    parent: str | None
    created_at: float
    expires_at: float | None


def values(token: Token) -> tuple[Value, ...]:
    """The row of a token, for `INSERT`."""
    grant = token.grant
    profiles = None if grant.profiles is None else orjson.dumps(sorted(grant.profiles)).decode()
    rights = orjson.dumps(sorted(right.value for right in grant.rights)).decode()
    return (
        token.token_id,
        token.name,
        token.kind,
        grant.name,
        token.digest,
        profiles,
        rights,
        token.parent,
        token.created_at,
        token.expires_at,
    )


def token(row: Sequence[object]) -> Token:
    """The token of a row of `SELECT`. A right that is not known here is passed over: it gives nothing."""
    token_id, name, kind, principal, digest, profiles, rights, parent, created_at, expires_at = row
    known = {right.value: right for right in Right}
    named = cast("list[str]", orjson.loads(cast("str", rights)))
    grant = Grant(
        name=cast("str", principal),
        profiles=None if profiles is None else frozenset(cast("list[str]", orjson.loads(cast("str", profiles)))),
        rights=frozenset(known[each] for each in named if each in known),
        credential=cast("str", token_id),
    )
    return Token(
        token_id=cast("str", token_id),
        name=cast("str", name),
        kind=cast("Kind", kind),
        grant=grant,
        digest=cast("bytes", digest),
        parent=cast("str | None", parent),
        created_at=cast("float", created_at),
        expires_at=cast("float | None", expires_at),
    )
