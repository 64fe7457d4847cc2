"""Changing the files of the bound profile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from hermes_ws.journal.failures import os_error
from hermes_ws.methods.ports import ProfileCall
from hermes_ws.scope.current import in_thread

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def edit(call: ProfileCall, path: Path, change: Callable[[Path, *Ts], T], *args: *Ts) -> T:
    """Run a change of a file in one of the profile's threads. Raises what it raises; the disk's trouble as
    `StorageUnavailable`.
    """
    try:
        return await in_thread(call.runtime.limiter, lambda: change(path, *args))
    except OSError as error:
        raise os_error(error, path) from error
