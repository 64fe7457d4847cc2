"""Namespaces for a warden, made by bubblewrap where it is installed: what is not granted is not even there.

The warden becomes process 1 of its own process namespace, so that its death is the death of everything below it, and
the namespace dies with the server. A granted directory is handed over as a descriptor that was opened without following
a link: what a child may have put in its place since it was checked is not what gets bound.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, final

from hermes_ws.warden import landlock, places

_FOUND_IN: Final = ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap")
"""Where distributions put it. Not PATH: a directory there may belong to whoever is to be confined."""

TEMPORARY_BYTES: Final = 1024 * 1024 * 1024
"""What one warden's `/tmp` holds at most, and its `/dev/shm`: both are memory, and TMPDIR points to the disk."""

Choice = Path | Literal["auto"] | None
"""A program, the one that is installed, or none: namespaces are done without."""


def find() -> Path | None:
    """The bubblewrap of this machine; nothing when there is none."""
    for name in _FOUND_IN:
        if os.access(name, os.X_OK):
            return Path(name)
    return None


def chosen(choice: Choice) -> Path | None:
    """The program that a choice means."""
    return find() if choice == "auto" else choice


@final
@dataclass(frozen=True, slots=True)
class Mount:
    """A granted path and a descriptor of what was there when it was opened; closed by whoever made it."""

    path: str
    descriptor: int
    write: bool


@final
@dataclass(frozen=True, slots=True)
class Wanted:
    """What the namespaces of one warden are made of."""

    mounts: Sequence[Mount]
    prefixes: tuple[str, ...]
    room: Path
    network: Literal["allow", "deny"]
    own_user: bool
    """False keeps the user namespace of the server, for a warden that is to become another user."""


def open_mounts(read: Iterable[Path], write: Iterable[Path]) -> list[Mount]:
    """Open what is granted; a path that goes through a link or is missing is left out, and the warden says so.

    Blocks on the file system: call it in a thread. The caller closes the descriptors.
    """
    mounts: list[Mount] = []
    for paths, may_write in ((read, False), (write, True)):
        for path in paths:
            try:
                mounts.append(Mount(str(path), landlock.open_straight(str(path)), may_write))
            except OSError:
                continue
    # A directory inside of another one is bound after it, or it would be hidden.
    return sorted(mounts, key=lambda mount: mount.path.count("/") if mount.path != "/" else 0)


def arguments(wanted: Wanted) -> bytes:
    """What bubblewrap is told, for `--args`: zero-terminated words, which no list of processes shows."""
    words = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--as-pid-1", "--die-with-parent", "--cap-drop", "ALL"]
    if wanted.own_user:
        words.append("--unshare-user")
    else:
        words += [word for name in ("SETUID", "SETGID", "SETPCAP") for word in ("--cap-add", f"CAP_{name}")]
    if wanted.network == "deny":
        words.append("--unshare-net")
    words += ["--hostname", "confined", "--proc", "/proc", "--dev", "/dev"]
    for shared in ("/tmp", "/dev/shm"):
        words += ["--perms", "1777", "--size", str(TEMPORARY_BYTES), "--tmpfs", shared]
    for path in places.programs(wanted.prefixes):
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        else:
            words += ["--ro-bind", path, path]
    for path in places.settings():
        words += ["--ro-bind-try", path, path]
    # The room itself, which the child imports before it confines itself; its package needs a file to be one.
    package = wanted.room.parent
    words += ["--ro-bind", str(package / "__init__.py"), str(package / "__init__.py")]
    words += ["--ro-bind", str(wanted.room), str(wanted.room)]
    if not wanted.own_user:
        # Another user has to pass through what leads there; it holds nothing but the way.
        ways = {str(way) for mount in wanted.mounts for way in Path(mount.path).parents if str(way) != "/"}
        words += [word for way in sorted(ways) for word in ("--perms", "0755", "--dir", way)]
    for mount in wanted.mounts:
        words += ["--bind-fd" if mount.write else "--ro-bind-fd", str(mount.descriptor), mount.path]
    words += ["--chdir", "/"]
    return b"".join(os.fsencode(word) + b"\0" for word in words)
