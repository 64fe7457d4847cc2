"""The start of a server process: take the environment away, then run.

A process environment is inherited by every child and can be read by others, so it is no place for what belongs to a
profile. `serve` reads it once, keeps it in memory that only this process has, and executes itself anew with the base
names alone; what is then in `/proc/<pid>/environ` says nothing. Nothing heavy is imported before that.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, final

from hermes_ws.scope.environment import MEMORY_NAME, StartEnvironment, pack, split, unpack

_PR_SET_DUMPABLE = 4


@final
@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What `hermes-ws serve` was told. Without `profiles_root` the homes are those of `HERMES_HOME`.

    With `standalone` it serves its parent over standard input and output, and nobody else.
    """

    profiles_root: Path | None = None
    profile: str | None = None
    host: str = "127.0.0.1"
    port: int = 8787
    socket: Path | None = None
    announce: bool = False
    idle_exit: float | None = None
    parent_pid: int | None = None
    standalone: bool = False
    tls_cert: Path | None = None
    tls_key: Path | None = None
    behind_proxy: tuple[str, ...] = ()


def main(options: ServeOptions) -> int:
    """Serve until told to stop; the exit status. Does not return in the first of its two lives: it executes itself."""
    start = _inherited()
    if start is None:
        _begin_anew(split(os.environ))
    _hide()
    gc.disable()  # nothing is given back while everything is loaded; `running` enables it when that is done
    from hermes_ws.server.process_log import ProcessLog
    from hermes_ws.server.running import run

    with ProcessLog(sys.stderr).hearing():
        return run(options, start)


def _inherited() -> StartEnvironment | None:
    """What the first life handed on, found by the name of the memory it lies in."""
    for entry in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{entry}").startswith(f"/memfd:{MEMORY_NAME} "):
                return unpack(int(entry))
    return None


def _begin_anew(start: StartEnvironment) -> NoReturn:
    pack(start)
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], dict(start.base))


def _hide() -> None:
    """Other processes of the same user may not trace this one or read its memory and environment."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
