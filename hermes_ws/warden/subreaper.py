"""The server as the last parent: what a killed warden leaves behind comes here and is ended.

The kernel gives orphans to the nearest ancestor that asked for them. A warden asks, so orphans reach the server only
when their warden is gone. Which children the server started on purpose has to be known, for all others are orphans;
hence this object, which the owner of all wardens makes once and hands to each.
"""

from __future__ import annotations

import os
import signal
from typing import final

import trio

from hermes_ws.warden import cgroup, descendants, libc
from hermes_ws.warden.cgroup import Delegated

END_WITHIN_S = 5.0
"""Seconds to end orphans. One that hangs in the kernel is left to the next call."""

_LOOK_S = 0.005
"""Seconds between two looks: a killed process is gone in about one millisecond."""


@final
class Subreaper:
    """The children of this process that are meant to be; everything else below it is an orphan."""

    def __init__(self, delegated: Delegated | None = None) -> None:
        self.delegated = delegated
        """The control group that may be divided among wardens, where there is one."""
        self._ours: set[int] = set()

    def adopt(self, pid: int) -> None:
        """From now on `pid` is a child that was started on purpose. Call it before anything is awaited."""
        self._ours.add(pid)

    def forget(self, pid: int) -> None:
        """`pid` was reaped; its number may come back as anybody's."""
        self._ours.discard(pid)

    async def end_orphans(self) -> int:
        """SIGKILL every orphan and what is below it, reap them, and return how many there were.

        Returns when none is left, or after `END_WITHIN_S`. Cancelling leaves the rest to the next call.
        """
        ended: set[int] = set()
        with trio.move_on_after(END_WITHIN_S):
            while orphans := self._orphans():
                for seen in orphans:
                    ended.add(seen.pid)
                    descendants.send(seen, signal.SIGKILL)
                    if seen.parent == os.getpid():
                        _reap(seen.pid)
                await trio.sleep(_LOOK_S)
        return len(ended)

    def _orphans(self) -> list[descendants.Seen]:
        below = descendants.below(os.getpid())
        kept = set(self._ours)
        # What a living warden started is its own business, however deep.
        while more := {seen.pid for seen in below if seen.parent in kept} - kept:
            kept |= more
        return [seen for seen in below if seen.pid not in kept]


def become_subreaper() -> Subreaper:
    """Make this process the parent of orphans below it. For a server process: whatever else it starts is ended."""
    libc.prctl(libc.PR_SET_CHILD_SUBREAPER, 1)
    return Subreaper(cgroup.delegated())


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
