"""Where the server of a home listens, and the token that it wrote there.

Only what belongs to the same user and is closed to everyone else counts: a socket that somebody else could have put
there is not spoken to, and the token is not shown to it.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Literal, final
from urllib.parse import urlsplit

from hermes_ws.scope.home import ProfileHome

TOKEN_BYTES = 4096
"""A token is some dozen characters; a file much longer than that is not one."""

SOCKET_URL = "ws://localhost/ws"
"""What a client asks for on a Unix socket. The name is one that the server's Host check knows."""


@final
@dataclass(frozen=True, slots=True)
class Endpoint:
    """How to reach a server. With `socket` the URL only names what is asked for. An empty token is not sent."""

    url: str
    token: str = field(repr=False)
    socket: Path | None = None

    @property
    def local(self) -> bool:
        """Whether the bytes stay on this machine, where compressing them only costs."""
        host = urlsplit(self.url).hostname
        return self.socket is not None or host in ("localhost", "127.0.0.1", "::1")

    def __str__(self) -> str:
        return str(self.socket) if self.socket is not None else self.url


@final
class Reason(Enum):
    """Why a home has no usable endpoint."""

    ABSENT = "absent"
    INACCESSIBLE = "inaccessible"


@final
@dataclass(frozen=True, slots=True)
class Unavailable:
    """No usable endpoint: nothing runs there (`ABSENT`), or what is there must not be trusted (`INACCESSIBLE`)."""

    reason: Reason
    detail: str


def discover(home: Path) -> Endpoint | Unavailable:
    """The endpoint of the server that was started for `home`. Reads files; does not connect."""
    places = ProfileHome(home.resolve())
    refusal = _examine(places.socket, "socket") or _examine(places.token, "file")
    if refusal is not None:
        return refusal
    try:
        with places.token.open("rb") as file:
            token = file.read(TOKEN_BYTES).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        return Unavailable(Reason.INACCESSIBLE, f"{places.token} cannot be read: {_sentence(error)}")
    if not token or any(not "!" <= character <= "~" for character in token):
        return Unavailable(Reason.INACCESSIBLE, f"{places.token} holds no token")
    return Endpoint(SOCKET_URL, token, places.socket)


def remote(url: str, token: str) -> Endpoint:
    """The endpoint that a person named by its URL. Raises ValueError with a sentence when the URL cannot be one."""
    parts = urlsplit(url)
    if parts.scheme not in ("ws", "wss"):
        raise ValueError("it begins with ws:// or wss://")
    if not parts.hostname:
        raise ValueError("it names no host")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError("it may carry neither user, query nor fragment; the token goes separately")
    _ = parts.port  # raises ValueError when it is no number between 0 and 65535
    if parts.path in ("", "/"):
        parts = parts._replace(path="/ws")
    return Endpoint(parts.geturl(), token.strip())


def _examine(path: Path, kind: Literal["socket", "file"]) -> Unavailable | None:
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return Unavailable(Reason.ABSENT, f"there is no {path}")
    except OSError as error:
        return Unavailable(Reason.INACCESSIBLE, f"{path} cannot be looked at: {_sentence(error)}")
    right_kind = stat.S_ISSOCK(found.st_mode) if kind == "socket" else stat.S_ISREG(found.st_mode)
    if not right_kind:
        return Unavailable(Reason.INACCESSIBLE, f"{path} is no {kind}")
    if found.st_uid != os.geteuid():
        return Unavailable(Reason.INACCESSIBLE, f"{path} belongs to another user")
    if found.st_mode & 0o077:
        return Unavailable(Reason.INACCESSIBLE, f"{path} is open to other users; chmod 600 {path}")
    return None


def _sentence(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
