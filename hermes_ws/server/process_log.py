"""The log of the process: what happened to the server, and nothing of any profile.

What belongs to a profile goes into that profile's own log, redacted with its secrets. Here stand starts, stops, refused
connections and incidents: a bug of ours, with its stack but without the values in it.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, TextIO, final

import structlog
from pydantic import JsonValue

PACKAGE: Final = "hermes_ws"
"""The name above the loggers of all rooms."""


@final
class ProcessLog:
    """Text for a person on a terminal, one JSON object per line elsewhere. Owned by the server, not by a module."""

    def __init__(self, stream: TextIO) -> None:
        renderer: structlog.typing.Processor = structlog.processors.JSONRenderer()
        if stream.isatty():
            renderer = structlog.dev.ConsoleRenderer(colors=False)
        self._log: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
            structlog.PrintLogger(stream),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                renderer,
            ],
            wrapper_class=structlog.make_filtering_bound_logger(20),
            cache_logger_on_first_use=False,
        )

    def info(self, event: str, **fields: JsonValue) -> None:
        """Something that was to be expected."""
        self._log.info(event, **fields)

    def warning(self, event: str, **fields: JsonValue) -> None:
        """Something that somebody should look at."""
        self._log.warning(event, **fields)

    def incident(self, incident: str, bug: BaseException, **fields: JsonValue) -> None:
        """A bug of ours. Frames and the type are logged; the message is not, since it may quote what a profile said."""
        told = {"kind": type(bug).__name__, "stack": _frames(bug.__traceback__)}
        self._log.error("incident", incident=incident, **told, **fields)

    @contextmanager
    def hearing(self) -> Generator[None]:
        """While this lasts, what rooms that do not know this log say to Python's own logging stands here as well."""
        package = logging.getLogger(PACKAGE)
        heard = _Heard(self)
        before = package.level
        package.addHandler(heard)
        package.setLevel(logging.INFO)
        try:
            yield
        finally:
            package.setLevel(before)
            package.removeHandler(heard)

    def heard(self, record: logging.LogRecord) -> None:
        """What somebody said, and of the failure that it is about the frames and the type."""
        told: dict[str, JsonValue] = {"room": record.name.removeprefix(f"{PACKAGE}.")}
        if record.exc_info and record.exc_info[0] is not None:
            told |= {"kind": record.exc_info[0].__name__, "stack": _frames(record.exc_info[2])}
        self._log.log(record.levelno, record.getMessage(), **told)


@final
class _Heard(logging.Handler):
    def __init__(self, log: ProcessLog) -> None:
        super().__init__()
        self._to = log

    def emit(self, record: logging.LogRecord) -> None:
        self._to.heard(record)


def _frames(stack: TracebackType | None) -> list[JsonValue]:
    return [f"{each.filename}:{each.lineno} {each.name}" for each in traceback.extract_tb(stack)]
