"""Which session a terminal was last in, so that `-c` finds it. A file per terminal and server; losing it loses nothing.

A terminal is its device and the session leader on it, which is its shell: device names are used again for others.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from hermes_ws.cli.environment import Surroundings

NAME_BYTES = 200
"""An id is much shorter."""


def leave(surroundings: Surroundings, profile: str | None, session_id: str) -> None:
    """Remember it, if this is a terminal. Never raises."""
    path = _place(surroundings, profile)
    if path is None:
        return
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(session_id + "\n")
        fresh.replace(path)


def find(surroundings: Surroundings, profile: str | None) -> str | None:
    """The session, if one is remembered."""
    path = _place(surroundings, profile)
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            return file.read(NAME_BYTES).decode("ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _place(surroundings: Surroundings, profile: str | None) -> Path | None:
    for descriptor in (0, 1, 2):
        with suppress(OSError):
            terminal = os.ttyname(descriptor)
            server = surroundings.url or str(surroundings.home.resolve())
            key = "\n".join((terminal, str(os.getsid(0)), server, profile or ""))
            name = hashlib.sha256(key.encode()).hexdigest()[:32]
            return surroundings.state / "hermes-ws" / "terminals" / name
    return None
