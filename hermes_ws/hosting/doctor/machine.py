"""What the machine is, and what its kernel enforces: found out by trying."""

from __future__ import annotations

import os
import platform
import resource
import sqlite3
import sys
from collections.abc import Iterator
from typing import Final

from hermes_ws.hosting.doctor.finding import Finding
from hermes_ws.warden.grants import Confinement

PYTHON: Final = (3, 11)
SQLITE: Final = (3, 37, 0)
"""STRICT tables."""

DESCRIPTORS: Final = 1024
"""Below this a few hundred clients use them up."""


def look_at_machine() -> Iterator[Finding]:
    """The interpreter, the libraries and the limits of this process."""
    system = platform.system()
    if system == "Linux":
        yield Finding("system", system, "ok", f"Linux {platform.release()}.")
    else:
        yield Finding(
            "system", system, "error" if system == "Windows" else "warning",
            f"{system} gives no protection between profiles but that of the process.",
            "Serve on Linux, for example in a virtual machine.",
        )  # fmt: skip
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] >= PYTHON:
        yield Finding("python", version, "ok", f"Python {version}.")
    else:
        yield Finding("python", version, "error", f"Python {version} is too old.", "Install Python 3.11 or newer.")
    if sqlite3.sqlite_version_info >= SQLITE:
        yield Finding("sqlite", sqlite3.sqlite_version, "ok", f"SQLite {sqlite3.sqlite_version}.")
    else:
        yield Finding(
            "sqlite", sqlite3.sqlite_version, "error", f"SQLite {sqlite3.sqlite_version} is too old.",
            "Install a Python that brings SQLite 3.37 or newer.",
        )  # fmt: skip
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= DESCRIPTORS:
        yield Finding("descriptors", str(soft), "ok", f"{soft} files may be open at once.")
    else:
        yield Finding(
            "descriptors", str(soft), "warning", f"Only {soft} files may be open at once ({hard} if asked for).",
            f"Raise the limit: ulimit -n {min(hard, 65536)}, or LimitNOFILE= in the service's unit.",
        )  # fmt: skip
    if os.geteuid() == 0:
        yield Finding(
            "user", "root", "warning", "This is root: what confinement does not cover, commands may do.",
            "Serve as a user of its own, or set terminal.user in the settings of each profile.",
        )  # fmt: skip


def look_at_kernel(found: Confinement) -> Iterator[Finding]:
    """Each layer of confinement, as a warden that was started for it reported it."""
    if found.landlock_abi:
        yield Finding("confinement", "landlock", "ok", f"Landlock is enforced (ABI {found.landlock_abi}).")
    else:
        yield Finding(
            "confinement", "landlock", "error", "Landlock is not there: commands can read what the user can.",
            "Use a kernel of 5.13 or newer with landlock in lsm=; in a container, allow its system calls.",
        )  # fmt: skip
    if found.seccomp:
        yield Finding("confinement", "seccomp", "ok", "System calls are filtered.")
    else:
        yield Finding(
            "confinement", "seccomp", "error", "System calls are not filtered: sockets of the user are in reach.",
            "Use a kernel with CONFIG_SECCOMP_FILTER.",
        )  # fmt: skip
    if found.bubblewrap:
        yield Finding("confinement", "bubblewrap", "ok", "Commands have namespaces of their own.")
    else:
        yield Finding(
            "confinement", "bubblewrap", "warning",
            "Commands have no namespaces of their own: they can tell which files and processes there are.",
            "Install bubblewrap (apt-get install bubblewrap), and allow user namespaces to it.",
        )  # fmt: skip
    if found.dropped_capabilities:
        yield Finding("confinement", "capabilities", "ok", "Commands have no capabilities.")
    else:
        yield Finding(
            "confinement", "capabilities", "warning", "Capabilities could not all be taken from commands.",
            "Serve as a user without capabilities.",
        )  # fmt: skip
    for note in found.notes:
        yield Finding("confinement", "note", "info", note)
