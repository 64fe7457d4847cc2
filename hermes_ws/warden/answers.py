"""Reading what a warden answers, as from a stranger, and turning errnos into errors that teach."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, final

from hermes_ws.contract import errors
from hermes_ws.warden import orders
from hermes_ws.warden.grants import Confinement

_NOTE_CHARACTERS = 500
"""A note is a sentence; one that is longer is not from us."""

_NOTES = 32
"""More notes than there are things to note."""

_ERRNO = 4095
"""The largest errno of the kernel."""


OVER: Final[Mapping[str, str]] = MappingProxyType(
    {
        orders.PROCESSES_OVER: "Ended: more processes than terminal.processes allows.",
        orders.DISK_OVER: "Ended: the profile's home/ holds more than terminal.disk_bytes allows.",
    }
)
"""What is said of a command that was ended because a limit of all commands together was passed."""


Header = Mapping[str, object]
"""The first line of a file operation's answer, not yet believed."""


@final
@dataclass(frozen=True, slots=True)
class Ended:
    """How an order ended. With a `stage` nothing was started, and `errno` says why."""

    number: int
    exit_code: int | None
    signal: int | None
    over: str | None
    stage: str | None
    errno: int


def ended(data: bytes) -> Ended:
    """The end of an order; raises `orders.Malformed`."""
    answer = orders.decode(data)
    stage = None if answer.get("stage") is None else orders.text(answer, "stage")
    if stage not in (None, "fork", "cwd", "limits", "exec"):
        raise orders.Malformed("no such stage")
    over = None if answer.get("over") is None else orders.text(answer, "over")
    if over not in (None, orders.PROCESSES_OVER, orders.DISK_OVER):
        raise orders.Malformed("no such limit")
    return Ended(
        number=orders.integer(answer, "id"),
        exit_code=orders.maybe(answer, "exit", high=255),
        signal=orders.maybe(answer, "signal", low=1, high=64),
        over=over,
        stage=stage,
        errno=orders.maybe(answer, "errno", high=_ERRNO) or 0,
    )


def confinement(data: bytes, *, bubblewrap: bool) -> Confinement:
    """What the warden says once it is ready; raises `orders.Malformed`, and `WardenFailed` with its reason.

    Whether it was started in namespaces the server knows itself.
    """
    if not data:
        raise errors.WardenFailed("The warden ended before it was ready.")
    answer = orders.decode(data)
    if "fatal" in answer:
        raise errors.WardenFailed(f"The warden could not start: {orders.text(answer, 'fatal')[:_NOTE_CHARACTERS]}")
    report = orders.section(answer, "ready")
    return Confinement(
        landlock_abi=orders.integer(report, "landlock_abi", high=1000),
        seccomp=orders.flag(report, "seccomp"),
        bubblewrap=bubblewrap,
        dropped_capabilities=orders.flag(report, "dropped_capabilities"),
        notes=tuple(note[:_NOTE_CHARACTERS] for note in orders.texts(report, "notes")[:_NOTES]),
        processes="kernel" if orders.flag(report, "counts_processes") else "counted",
    )


def file_header(answer: bytes, path: Path) -> tuple[Header, bytes]:
    """The first line of a file operation's answer and the bytes after it; raises what the line stands for."""
    line, found, rest = answer.partition(b"\n")
    if not found or len(line) > orders.HEADER_BYTES:
        raise errors.WardenFailed(f"The operation on {path} ended without an answer.")
    try:
        header = orders.decode(line)
        number = orders.maybe(header, "errno", high=_ERRNO)
    except orders.Malformed as error:
        raise errors.WardenFailed(f"The operation on {path} was answered with nonsense.") from error
    if number:
        raise file_error(number, path)
    if "expression" in header:
        raise errors.InvalidParams(
            f"The expression cannot be searched for: {str(header['expression'])[:_NOTE_CHARACTERS]}."
        )
    return header, rest


def lines(answer: bytes, path: Path) -> tuple[list[Header], bool]:
    """The lines of a listing or a search, and whether there was more; raises what the first line stands for.

    An answer without a last line was cut off, by a deadline or by its size: there was more.
    """
    _, rest = file_header(answer, path)
    told: list[Header] = []
    for line in rest.split(b"\n")[: orders.LINES + 1]:
        if not line:
            continue
        try:
            value = orders.decode(line)
        except orders.Malformed:
            break
        if "errno" in value:
            break
        if "more" in value:
            return told, value["more"] is not False
        told.append(value)
    return told, True


def not_started(end: Ended, path: Path) -> errors.HermesError:
    """The error for an order whose child never got to its work; `path` is the working directory or the file."""
    if end.stage == "fork":
        return errors.LimitReached(f"No process can be started: {os.strerror(end.errno)}.")
    if end.stage == "cwd":
        return file_error(end.errno, path)
    return errors.WardenFailed(f"The limits of the command cannot be set: {os.strerror(end.errno)}.")


def file_error(number: int, path: Path) -> errors.HermesError:
    """The error for an errno at a path."""
    place = _shown(path)
    if number in (errno.ENOENT, errno.ENOTDIR):
        return errors.NotFound(f"{place} does not exist.", path=place)
    if number in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EXDEV):
        return errors.PermissionDenied(
            f"{place} may not be used: {os.strerror(number)}.",
            hint="terminal.read and terminal.write in config.yaml grant more; a session may choose another directory.",
            path=place,
        )
    if number in (errno.ENOSPC, errno.EDQUOT):
        return errors.StorageFull(f"There is no room for {place}.", path=place)
    if number == errno.EISDIR:
        return errors.InvalidParams(f"{place} is a directory.", path=place)
    if number == errno.ENXIO:
        return errors.InvalidParams(f"{place} is no regular file.", path=place)
    if number in (errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL):
        return errors.InvalidParams(f"{place} is no usable path: {os.strerror(number)}.", path=place)
    return errors.FileFailed(f"{place} could not be used: {os.strerror(number)}.", path=place)


def _shown(path: Path) -> str:
    """The path as text that can go anywhere: bytes that are no UTF-8 become question marks."""
    return str(path).encode("utf-8", "replace").decode("utf-8")
