"""How many connections the descriptors of this process have room for.

A socket takes one descriptor, an encrypted one takes three. The files and pipes that the server needs for what its
clients ask take others, and a server whose clients took the last one could serve none of them. So connections end a
good deal below the limit: whoever comes then is told that there is no room, while all others go on.
"""

from __future__ import annotations

import resource
from typing import Final

RESERVED: Final = 1024
"""Descriptors kept for what is no connection: with 64 profiles open, 15 each for their store and their warden."""

ENCRYPTED: Final = 3
"""Descriptors of a connection that this server encrypts: its own, and the pair between it and what is behind."""

LEAST: Final = 64
"""Connections that are let in however low the limit is: somebody must be able to say what is wrong."""

HIGHEST: Final = 1 << 20
"""More than this nobody needs; a limit of "infinity" is no number."""


def raise_limit() -> int:
    """Take what the system grants this process, which is often more than it starts with; the limit from now on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = HIGHEST if hard == resource.RLIM_INFINITY else min(hard, HIGHEST)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return min(soft, HIGHEST) if soft != resource.RLIM_INFINITY else HIGHEST
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft
    return wanted


def room_for(limit: int, configured: int | None, *, encrypted: bool = False) -> int:
    """Connections at once: what is configured, and never so many that they take what the server itself needs."""
    room = max(max(limit - RESERVED, limit // 2) // (ENCRYPTED if encrypted else 1), LEAST)
    return room if configured is None else min(configured, room)
