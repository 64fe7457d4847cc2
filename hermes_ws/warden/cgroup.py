"""A control group for each warden, where the server was delegated one: memory and processes of all its children
together, held by the kernel. Where there is none, or another version of control groups, other limits hold.

A warden is put into its group before it is told anything, so that whatever it starts is born inside.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import final

from hermes_ws.warden import descendants
from hermes_ws.warden.grants import Limits

MOUNT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")

_CONTROLLERS = ("memory", "pids")
_SERVER = "server"
"""The group that the server itself moves to: one that has members may delegate nothing."""


@final
class Delegated:
    """A group that this server may divide. Found once; made ready at the first use."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ready = False

    def group(self, name: str, limits: Limits) -> Path | None:
        """A group of this name with these limits; nothing when the kernel refuses it after all."""
        try:
            if not self._ready:
                self._prepare()
            made = self._path / name
            made.mkdir()
            _write(made / "pids.max", "max" if limits.processes is None else str(limits.processes + 2))
            _write(made / "memory.max", "max" if limits.memory_bytes is None else str(limits.memory_bytes))
            with contextlib.suppress(OSError):
                _write(made / "memory.oom.group", "0")
        except OSError:
            return None
        return made

    def _prepare(self) -> None:
        own = self._path / _SERVER
        own.mkdir(exist_ok=True)
        _write(own / "cgroup.procs", str(os.getpid()))
        _write(self._path / "cgroup.subtree_control", " ".join(f"+{name}" for name in _CONTROLLERS))
        self._ready = True


def delegated(own: Path = OWN, mount: Path = MOUNT) -> Delegated | None:
    """The group that this process is in, when it is of version 2, has the controllers, and belongs to this user."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return None
    path = next((line[3:] for line in lines if line.startswith("0::/")), None)
    if path in (None, "/"):
        # The root of all groups is the machine's, not ours.
        return None
    place = mount / str(path).lstrip("/")
    try:
        offered = (place / "cgroup.controllers").read_text().split()
    except OSError:
        return None
    writable = all(os.access(place / name, os.W_OK) for name in ("cgroup.procs", "cgroup.subtree_control"))
    return Delegated(place) if writable and set(_CONTROLLERS) <= set(offered) else None


def enter(group: Path, pid: int) -> bool:
    """Put a process and what is below it into a group."""
    try:
        for each in (pid, *(seen.pid for seen in descendants.below(pid))):
            _write(group / "cgroup.procs", str(each))
    except OSError:
        return False
    return True


def leave(group: Path) -> None:
    """Take a group away that has no members any more; one that still has is left to the next start."""
    with contextlib.suppress(OSError):
        group.rmdir()


def _write(place: Path, text: str) -> None:
    with open(place, "w") as file:
        file.write(text)
