"""What the server wants of a warden, and what it gets back: values, nothing that runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

OPEN_FILES = 1024
"""Descriptors for one child unless the policy says otherwise: what a shell has everywhere."""


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """What one child may use. `processes` counts everything below the warden together."""

    memory_bytes: int | None = None
    processes: int | None = None
    open_files: int = OPEN_FILES
    file_bytes: int | None = None
    cpu_s: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Grants:
    """What the children of one warden may touch. Paths are resolved by the caller, before they are checked.

    One that goes through a link when the warden starts is not granted: since it was checked, a child may have put a
    link there. What was not granted is among the notes of the `Confinement`.
    """

    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    network: Literal["allow", "deny"] = "allow"
    confine: Literal["auto", "required", "off"] = "auto"
    unix_sockets: Literal["deny", "allow"] = "deny"
    limits: Limits = Limits()
    user: tuple[int, int] | None = None
    """Whom the children are, by number of user and group, where the server is root."""
    disk: tuple[Path, int] | None = None
    """A directory, and how many bytes it may hold."""


@final
@dataclass(frozen=True, slots=True)
class Confinement:
    """What holds the children of a warden, each part as it was tried, with what is missing in words."""

    landlock_abi: int
    seccomp: bool
    bubblewrap: bool
    dropped_capabilities: bool
    notes: tuple[str, ...] = ()
    processes: Literal["cgroup", "kernel", "counted"] = "counted"
    """Who holds the number of processes: a control group, the kernel for each user namespace, or the warden by counting
    several times a second, so that a burst may go over it for a moment."""
    memory: Literal["cgroup", "process"] = "process"
    """Whether memory is limited for all children together, or for each process by itself."""

    @property
    def level(self) -> Literal["kernel", "process"]:
        """`kernel` when the kernel refuses what is not granted, `process` when only permissions do."""
        return "kernel" if self.landlock_abi > 0 else "process"


@final
@dataclass(frozen=True, slots=True)
class Command:
    """A program to run. `env` is the whole environment; nothing is added to it.

    Deadline, output and input are for one that runs to its end; one that is opened has pipes and no deadline.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    deadline_s: float = math.inf
    output_bytes: int = 0
    stdin: bytes = b""


@final
@dataclass(frozen=True, slots=True)
class Size:
    """The size of a terminal."""

    rows: int
    columns: int


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """A file or directory as a listing tells it, by its path below what was listed."""

    name: str
    kind: Literal["file", "directory", "link", "other"]
    size: int


@final
@dataclass(frozen=True, slots=True)
class Match:
    """A line in which an expression was found."""

    name: str
    line: int
    text: str


@final
@dataclass(frozen=True, slots=True)
class Listed:
    """What a listing told; `more` when there was more than it was asked for."""

    entries: tuple[Entry, ...]
    more: bool


@final
@dataclass(frozen=True, slots=True)
class Found:
    """What a search told, likewise."""

    matches: tuple[Match, ...]
    more: bool


@final
@dataclass(frozen=True, slots=True)
class Looking:
    """What to search for: an expression or the text itself, in files whose name or path fits a shell's pattern."""

    expression: str
    literal: bool = False
    ignore_case: bool = False
    pattern: str | None = None
    limit: int = 200


@final
@dataclass(frozen=True, slots=True)
class Finished:
    """What became of a command.

    `output` is standard output and error in the order in which they were written; past the limit its middle is
    replaced by a line that says how much is missing. A program that could not be started has the exit code of a shell
    (127 not found, 126 not allowed) and a sentence as its output.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    truncated: bool
    output: bytes
    duration_ms: int


@final
@dataclass(frozen=True, slots=True)
class FileRead:
    """A piece of a file, and how large the file was when it was opened."""

    data: bytes
    size: int


@final
@dataclass(frozen=True, slots=True)
class FileWritten:
    """A file that is on the disk, whole."""

    size: int
    created: bool


@final
@dataclass(frozen=True, slots=True)
class WardenStatistics:
    """What a warden is doing and has done."""

    pid: int
    running: int
    orders: int
    alive: bool
