"""Reading and writing files for the server, each in a short-lived child under the same rules as a command.

The answer goes into the pipe that the server gave: one line of JSON, then the bytes. A fork per operation costs a
millisecond and means that a file system which hangs holds up one operation and nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from typing import Final

from hermes_ws.warden import orders

_PIECE: Final = 64 * 1024
"""What a pipe takes at once."""

_FILE_MODE: Final = 0o666
"""As every program makes files; the mask of the server applies."""


Places = tuple[str, ...] | None
"""Where an operation may work when no kernel rule says so; nothing when one does, or nobody wants it."""


def read(path: str, offset: int, limit: int, answer: int, places: Places) -> Callable[[], None]:
    """An operation that sends at most `limit` bytes of the regular file at `path`, from `offset` on."""

    def operation() -> None:
        must_be_within(os.path.realpath(path), places)
        # O_NONBLOCK: opening a pipe with nobody at the other end must not wait.
        place = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        state = os.fstat(place)
        _must_be_regular(state)
        say(answer, {"size": state.st_size})
        rest = limit
        at = offset
        while rest > 0 and (piece := os.pread(place, min(rest, _PIECE), at)):
            _send(answer, piece)
            at += len(piece)
            rest -= len(piece)

    return answering(operation, answer)


def write(path: str, content: int, answer: int, places: Places) -> Callable[[], None]:
    """An operation that puts the bytes of the memfd `content` at `path`: beside it first, then renamed.

    Missing parents are made. A link is followed, so that what it points to is replaced and the link stays. Mode and
    owner of a file that is replaced stay, as far as they may.
    """

    def operation() -> None:
        target = os.path.realpath(path)
        must_be_within(target, places)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        before = _state(target)
        if before is not None:
            _must_be_regular(before)
        beside = os.path.join(os.path.dirname(target), f".{os.urandom(6).hex()}.tmp")
        place = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
        try:
            size = _copy(content, place)
            if before is not None:
                with contextlib.suppress(OSError):
                    os.fchown(place, before.st_uid, before.st_gid)
                os.fchmod(place, stat.S_IMODE(before.st_mode))
            os.fsync(place)
            os.rename(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise
        say(answer, {"size": size, "created": before is None})

    return answering(operation, answer)


def answering(operation: Callable[[], None], answer: int) -> Callable[[], None]:
    """The operation, with what goes wrong told in place of an answer."""

    def attempt() -> None:
        try:
            operation()
        except OSError as error:
            with contextlib.suppress(OSError):
                say(answer, {"errno": error.errno or errno.EIO})

    return attempt


def refusing(path: str, granted: tuple[str, ...], operation: Callable[[], None], answer: int) -> Callable[[], None]:
    """The operation in a namespace, where what is not granted is not there: told as what it is, a refusal."""

    def attempt() -> None:
        try:
            must_be_within(os.path.realpath(path), granted)
        except OSError as error:
            with contextlib.suppress(OSError):
                say(answer, {"errno": error.errno or errno.EACCES})
        else:
            operation()

    return attempt


def _state(path: str) -> os.stat_result | None:
    try:
        return os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None


def must_be_within(target: str, places: Places) -> None:
    """Raise `PermissionError` for a place that is granted neither by the kernel nor by this list."""
    if places is None:
        return
    for place in places:
        root = os.path.realpath(place)
        if target == root or target.startswith(root.rstrip("/") + "/"):
            return
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _must_be_regular(state: os.stat_result) -> None:
    if stat.S_ISDIR(state.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(state.st_mode):
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))


def _copy(content: int, place: int) -> int:
    at = 0
    while piece := os.pread(content, _PIECE, at):
        _send(place, piece)
        at += len(piece)
    return at


def say(answer: int, header: dict[str, object]) -> None:
    """Send one line of an answer."""
    _send(answer, orders.encode(header) + b"\n")


def _send(place: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(place, view) :]
