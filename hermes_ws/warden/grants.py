"""What the server wants of a warden, and what it gets back: values, nothing that runs."""

from __future__ import annotations

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


@final
@dataclass(frozen=True, slots=True)
class Confinement:
    """What holds the children of a warden, each part as it was tried, with what is missing in words."""

    landlock_abi: int
    seccomp: bool
    bubblewrap: bool
    dropped_capabilities: bool
    notes: tuple[str, ...] = ()

    @property
    def level(self) -> Literal["kernel", "process"]:
        """`kernel` when the kernel refuses what is not granted, `process` when only permissions do."""
        return "kernel" if self.landlock_abi > 0 else "process"


@final
@dataclass(frozen=True, slots=True)
class Command:
    """A program to run. `env` is the whole environment; nothing is added to it."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    deadline_s: float
    output_bytes: int
    stdin: bytes = b""


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
