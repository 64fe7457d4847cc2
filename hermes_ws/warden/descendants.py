"""The processes below this one, found in `/proc` and ended only when number and start time agree (case REAP-21)."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Final, NamedTuple, final

_STAT_BYTES: Final = 4096
"""A line of `/proc/<pid>/stat` has about 300 bytes; the name in it has at most 64."""


@final
class Seen(NamedTuple):
    """A process as it was seen: its number may be used again, the pair of number and start is its own."""

    pid: int
    parent: int
    group: int
    started: int
    ended: bool = False
    stopped: bool = False


def look(pid: int) -> Seen | None:
    """What `/proc` says of one process; nothing when it is gone."""
    try:
        place = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        line = os.read(place, _STAT_BYTES)
    except OSError:
        return None
    finally:
        os.close(place)
    # The name may hold spaces and parentheses; the last parenthesis ends it.
    fields = line[line.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    return Seen(
        pid, int(fields[1]), int(fields[2]), int(fields[19]), fields[0] in (b"Z", b"X"), fields[0] in (b"T", b"t")
    )


def below(*roots: int) -> list[Seen]:
    """Every process below any of `roots`, without them, in no order. One scan: what forks meanwhile may be missing."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    children: dict[int, list[Seen]] = {}
    for name in names:
        if name.isdecimal() and (seen := look(int(name))) is not None:
            children.setdefault(seen.parent, []).append(seen)
    found: list[Seen] = []
    todo = list(roots)
    while todo:
        nearest = children.pop(todo.pop(), [])
        found += nearest
        todo += [seen.pid for seen in nearest]
    return found


def lives(seen: Seen) -> bool:
    """Whether it is the process that was seen, and not one that has ended and waits to be reaped by its parent."""
    now = look(seen.pid)
    return now is not None and now.started == seen.started and not now.ended


def rests(pid: int) -> bool:
    """Whether a process starts nothing more: it is gone, ended or stopped."""
    seen = look(pid)
    return seen is None or seen.ended or seen.stopped


def send(seen: Seen, number: signal.Signals) -> None:
    """Signal the process that was seen; another one under the same number is left alone.

    It is held on to before it is looked at, so that the number cannot change hands between the look and the signal.
    """
    try:
        held = os.pidfd_open(seen.pid)
    except ProcessLookupError:
        return
    except OSError:
        held = None  # No descriptor is left: the look has to do.
    try:
        now = look(seen.pid)
        if now is None or now.started != seen.started:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if held is None:
                os.kill(seen.pid, number)
            else:
                signal.pidfd_send_signal(held, number)
    finally:
        if held is not None:
            os.close(held)
