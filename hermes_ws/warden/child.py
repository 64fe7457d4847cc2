"""One child of the warden, with everything it started, and where it is on its way out.

A command is made the parent of its own orphans, so that as long as it lives whatever it started is found below it, also
what left its group and whose parents are gone. What was found when its end was asked for is held on to by number and
start time, and looked for again until nothing is left.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Final, final

from hermes_ws.warden import descendants
from hermes_ws.warden.descendants import Seen

_ROUNDS: Final = 20
"""Looks at what forks while it is being killed. Each round stops all that it finds, so that two are enough but for
processes that were created in the moment of looking."""


@final
class Child:
    """One order that has a process: a command, a terminal, a file operation."""

    __slots__ = ("code", "give_up_at", "kill_at", "left", "master", "number", "over", "pid", "relay", "status")

    def __init__(self, number: int, pid: int, status: int | None, *, master: int | None = None, relay: int = 0) -> None:
        self.number = number
        self.pid = pid
        self.status = status
        self.master = master
        self.relay = relay
        self.code: int | None = None
        self.kill_at: float | None = None
        self.give_up_at: float | None = None
        self.left: dict[tuple[int, int], Seen] = {}
        self.over: str | None = None

    def signal(self, number: signal.Signals) -> None:
        """Signal every member of the group, the leader alone while it has not made one yet, and all who left it."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            if self.code is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, number)
        except PermissionError:
            pass
        for seen in self.left.values():
            descendants.send(seen, number)

    def end(self) -> None:
        """Ask it to end: a terminal hangs up as well, since shells that people type into ignore SIGTERM."""
        self.look()
        self.signal(signal.SIGTERM)
        if self.master is not None:
            self.signal(signal.SIGHUP)
        self.signal(signal.SIGCONT)

    def look(self) -> bool:
        """Find who belongs to it and left its group; true when somebody was found who was not known."""
        roots = [seen.pid for seen in self.left.values() if descendants.lives(seen)]
        if self.code is None:
            roots.append(self.pid)
        found = {(seen.pid, seen.started): seen for seen in descendants.below(*roots) if seen.group != self.pid}
        new = found.keys() - self.left.keys()
        self.left.update(found)
        return bool(new)

    def kill(self) -> None:
        """End all of it, and what it forks meanwhile."""
        for _ in range(_ROUNDS):
            self.signal(signal.SIGSTOP)
            if not self.look():
                break
        self.signal(signal.SIGKILL)

    def is_gone(self) -> bool:
        """Whether nobody is left of it. Asked only after the leader was reaped."""
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return not any(descendants.lives(seen) for seen in self.left.values())
        return False

    def forget(self) -> None:
        """Let go of what the warden holds for it."""
        for descriptor in (self.status, self.master):
            if descriptor is not None:
                os.close(descriptor)
        self.status = self.master = None
