"""Taking every capability away from this process and from what it starts.

The bounding set goes first, since that needs one; with it empty, no program gives any back. A recent kernel lets a
process with CAP_PERFMON read other processes' environments in spite of Landlock, so none may stay.
"""

from __future__ import annotations

import struct
from typing import Final

from hermes_ws.warden import libc

_HEADER: Final = struct.pack("=Ii", 0x20080522, 0)
_SIZE: Final = 24
_HIGHEST: Final = 63
"""Two words of 32 bits are all that the call carries."""


def drop() -> None:
    """Empty the bounding, ambient, inheritable, permitted and effective sets, as far as this process may."""
    bind()
    libc.prctl(libc.PR_CAP_AMBIENT, libc.PR_CAP_AMBIENT_CLEAR_ALL)
    libc.capset(_HEADER, bytes(_SIZE))


def bind() -> None:
    """Empty the bounding set alone: what is held stays, and no program gives any more."""
    for capability in range(_HIGHEST + 1):
        try:
            if libc.prctl(libc.PR_CAPBSET_READ, capability):
                libc.prctl(libc.PR_CAPBSET_DROP, capability)
        except OSError:
            # Beyond the last one that the kernel knows, or without the right to drop; `dropped` tells them apart.
            break


def dropped() -> bool:
    """Whether nothing is left; the bounding set of a user other than root stays, and gives nothing without setuid."""
    return not any(libc.capget(_HEADER, _SIZE))


def bounded() -> bool:
    """Whether the bounding set is empty."""
    for capability in range(_HIGHEST + 1):
        try:
            if libc.prctl(libc.PR_CAPBSET_READ, capability):
                return False
        except OSError:
            break
    return True
