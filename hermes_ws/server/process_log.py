"""The log of the process: what happened to the server, and nothing of any profile.

What belongs to a profile goes into that profile's own log, redacted with its secrets. Here stand starts, stops, refused
connections and incidents: a bug of ours, with its stack but without the values in it.
"""

from __future__ import annotations

import traceback
from typing import TextIO, final

import structlog
from pydantic import JsonValue


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
        stack = [f"{each.filename}:{each.lineno} {each.name}" for each in traceback.extract_tb(bug.__traceback__)]
        self._log.error("incident", incident=incident, kind=type(bug).__name__, stack=stack, **fields)
