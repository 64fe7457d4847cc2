"""Who a token belongs to: the launch token, made at each start and kept in a file that its owner alone can read, and
those that the host knows."""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path
from typing import Final, final

from hermes_ws.contract.registry import Right
from hermes_ws.hosting.credentials import OWNER
from hermes_ws.hosting.host import Host
from hermes_ws.server.entry import Principal

TOKEN_BYTES: Final = 32
"""Random bytes of a token: not to be guessed, however many connections try."""

LONGEST: Final = 512
"""Characters of a token that are worth comparing; anything longer is none of ours."""


def mint(path: Path) -> str:
    """Make a token and put it into `path`, readable by its owner alone; whoever reads sees the old one or the new one.

    The directory must exist. The file is on the disk, under its name, when this returns.
    """
    token = secrets.token_urlsafe(TOKEN_BYTES)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            os.write(fd, token.encode())
            os.fsync(fd)
        finally:
            os.close(fd)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    return token


@final
class LaunchToken:
    """Knows one token, and that whoever has it is the owner. Cannot be printed."""

    __slots__ = ("_token",)

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify(self, token: str) -> Principal | None:
        """The owner, if the token is right. Takes the same time for every wrong one of the same length."""
        offered = token.encode(errors="replace")
        if len(offered) > LONGEST or not hmac.compare_digest(offered, self._token):
            return None
        return Principal(OWNER, profiles=None, rights=frozenset(Right))

    def __repr__(self) -> str:
        return "<LaunchToken>"


@final
class AllTokens:
    """The launch token, named tokens, browser sessions and tickets: everything that opens the door."""

    __slots__ = ("_host", "_launch")

    def __init__(self, launch: LaunchToken, host: Host) -> None:
        self._launch = launch
        self._host = host

    async def verify(self, token: str) -> Principal | None:
        """Whose token it is. What the host knows is found by a hash, which tells nothing by the time it takes."""
        owner = await self._launch.verify(token)
        if owner is not None or len(token) > LONGEST:
            return owner
        grant = self._host.credentials.verify(token)
        if grant is None:
            return None
        names = None if grant.profiles is None else await self._host.names_of(grant.profiles)
        return Principal(grant.name, names, grant.rights, grant.profiles, grant.credential)
