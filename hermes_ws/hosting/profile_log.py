"""A profile's own log: JSON lines in `<home>/logs/profile.log`, rotated by size, without any of its secrets.

Writing never waits. Lines go into a bounded queue that one task of the runtime empties in a worker thread; when the
disk cannot keep up, lines are dropped and the next one says how many.
"""

from __future__ import annotations

import logging
import math
import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final, final

import trio
from pydantic import JsonValue

from hermes_ws.contract.errors import HermesError
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.identity import ProfileName
from hermes_ws.wire.frames import encode

_log = logging.getLogger(__name__)

LOG_BYTES = 5 * 1024 * 1024
"""One file of this size is still opened by every editor."""

LOG_FILES = 3
"""The current one and two before it: a busy week."""

WAITING_LINES = 1000
"""A burst of errors; beyond it the number is what matters."""

FIELD_CHARACTERS = 32_768
"""One field of a line; a stack of several tasks fits."""


@final
class ProfileLog:
    """Owned by the runtime, which runs `run` in its nursery and `flush`es when it closes."""

    def __init__(
        self, path: Path, redact: Callable[[str], str], limiter: trio.CapacityLimiter, *, largest: int = LOG_BYTES
    ) -> None:
        self._path: Final = path
        self._redact = redact
        self._limiter = limiter
        self._largest: Final = largest
        self._waiting: list[bytes] = []
        self._dropped = 0
        self._news = trio.Event()

    def redact_with(self, redact: Callable[[str], str]) -> None:
        """Redact with the secrets of another load from now on."""
        self._redact = redact

    def write(self, level: str, event: str, **fields: JsonValue) -> None:
        """One line: when, how serious, what, and what belongs to it."""
        if len(self._waiting) >= WAITING_LINES:
            self._dropped += 1
            return
        line: dict[str, object] = {"ts": round(time.time(), 3), "level": level, "event": event}
        if self._dropped:
            line["dropped_before"] = self._dropped
            self._dropped = 0
        for name, value in fields.items():
            line[name] = self._redact(value[:FIELD_CHARACTERS]) if isinstance(value, str) else _plain(value)
        self._waiting.append(encode(line) + b"\n")
        self._news.set()

    async def run(self) -> None:
        """Empty the queue into the file until cancelled."""
        while True:
            await self._news.wait()
            self._news = trio.Event()
            await self.flush()

    async def flush(self) -> None:
        """Write what waits. What the disk refuses is lost: a log must not stop what it tells of."""
        lines, self._waiting = self._waiting, []
        if lines:
            await in_thread(self._limiter, self._append, b"".join(lines))

    def _append(self, data: bytes) -> None:
        try:
            if self._path.exists() and self._path.stat().st_size + len(data) > self._largest:
                self._rotate()
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, data)
            finally:
                os.close(fd)
        except OSError:
            return

    def _rotate(self) -> None:
        for number in range(LOG_FILES - 1, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            newer = self._path if number == 1 else self._path.with_name(f"{self._path.name}.{number - 1}")
            if newer.exists():
                newer.replace(older)


def _plain(value: JsonValue) -> JsonValue:
    """Only scalars are logged besides text: what is nested is for the journal."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float) else type(value).__name__


def report_failure(name: ProfileName, log: ProfileLog | None, error: Exception) -> None:
    """Leave word in the profile's log, if it has one by now; of an unforeseen failure also in the process's, where
    nothing is redacted, without its message."""
    if log is not None:
        log.write("error", "runtime.failed", stack="".join(traceback.format_exception(error)))
    if not isinstance(error, HermesError):
        frames = "".join(traceback.format_tb(error.__traceback__))
        _log.error("profile %s failed: %s\n%s", name, type(error).__name__, frames)
