"""Resource limits of one child, set between fork and exec.

Memory is `RLIMIT_DATA`: `RLIMIT_AS` breaks WebAssembly, which reserves address space and never touches it. The number
of processes has no limit here (`RLIMIT_NPROC` does nothing for root and counts the whole user otherwise); the warden
counts its descendants instead.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping
from typing import NamedTuple, final

from hermes_ws.warden import orders


@final
class ChildLimits(NamedTuple):
    """What one child may use, in bytes, seconds and pieces. Nothing means: as the server itself."""

    memory_bytes: int | None
    processes: int | None
    open_files: int
    file_bytes: int | None
    cpu_s: int | None

    @staticmethod
    def parse(order: Mapping[str, object]) -> ChildLimits:
        """The limits in an order; raises `orders.Malformed`."""
        return ChildLimits(
            memory_bytes=orders.maybe(order, "memory_bytes"),
            processes=orders.maybe(order, "processes"),
            open_files=orders.integer(order, "open_files"),
            file_bytes=orders.maybe(order, "file_bytes"),
            cpu_s=orders.maybe(order, "cpu_s"),
        )


def apply(limits: ChildLimits) -> None:
    """Set them on this process, hard and soft alike; never above what it has."""
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_NOFILE, limits.open_files)
    _lower(resource.RLIMIT_FSIZE, limits.file_bytes)
    _lower(resource.RLIMIT_CPU, limits.cpu_s)
    _lower(resource.RLIMIT_DATA, limits.memory_bytes)


def _lower(which: int, value: int | None) -> None:
    if value is None:
        return
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))
