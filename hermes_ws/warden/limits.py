"""Resource limits of one child, set between fork and exec.

Memory is `RLIMIT_DATA`: `RLIMIT_AS` breaks WebAssembly, which reserves address space and never touches it. The number
of processes is `RLIMIT_NPROC` where it was seen to count, which is in a user namespace of somebody other than root; it
does nothing for root and counts the whole user elsewhere, so there the warden counts its descendants instead.
"""

from __future__ import annotations

import os
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


Plan = tuple[tuple[int, tuple[int, int]], ...]
"""Calls of `setrlimit`, worked out before the fork."""


_CORE = 1
"""No image of a process is kept: it would hold its secrets. One byte is too few for a file, and the only number that
the kernel also takes as a no where it hands images to a program, such as systemd's, which keeps them for all."""

SPARE_PROCESSES = 2
"""The warden itself, and the one that measures the disk, are counted with the children."""


def kernel_counts() -> bool:
    """Whether `RLIMIT_NPROC` refuses a fork here; tried in a child, which then cannot have one of its own."""
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
            second = os.fork()
            if second:
                os.waitpid(second, 0)
            os._exit(1)
        except BlockingIOError:
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    return status == 0


def plan(limits: ChildLimits, *, kernel_counted: bool) -> Plan:
    """What `apply` sets: hard and soft alike, never above what this process has."""
    processes = limits.processes if kernel_counted else None
    wanted = (
        (resource.RLIMIT_NPROC, None if processes is None else processes + SPARE_PROCESSES),
        (resource.RLIMIT_CORE, _CORE),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_DATA, limits.memory_bytes),
    )
    calls: list[tuple[int, tuple[int, int]]] = []
    for which, value in wanted:
        if value is not None:
            _, hard = resource.getrlimit(which)
            lower = value if hard == resource.RLIM_INFINITY else min(value, hard)
            calls.append((which, (lower, lower)))
    return tuple(calls)


def apply(calls: Plan) -> None:
    """Set the limits on this process, for good."""
    for which, pair in calls:
        resource.setrlimit(which, pair)
