"""A run as lines of JSON, for programs: `init` first, whatever comes of it, and exactly one `result` at the end.

Between them stand `text` (all of them together are the answer), `tool_use` and `tool_result`. Every line has the time
in milliseconds since 1970 and is written at once; that the reader went away is no failure of the work.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TextIO, final

from pydantic import JsonValue

from hermes_ws.contract.content import Usage
from hermes_ws.contract.events import ToolComplete, ToolStart

OUTPUT_CHARACTERS = 5000
"""Of a tool's output on one line; the whole is in the session."""


@final
class StreamJson:
    """The lines of one run."""

    def __init__(self, stream: TextIO, model: str | None) -> None:
        self._stream = stream
        self._model = model
        self._began = time.monotonic()
        self._session_id: str | None = None
        self._usage = Usage()
        self._ended = False
        self.answer = ""

    def init(self) -> None:
        """The first line. The session is not known yet, and the model only where it was asked for."""
        self._line("system", subtype="init", model=self._model, session_id=None)

    def bind(self, session_id: str) -> None:
        """The session is known from now on."""
        self._session_id = session_id

    def text(self, text: str) -> None:
        """A piece of the answer."""
        if text:
            self.answer += text
            self._line("text", text=text)

    def tool_use(self, call: ToolStart) -> None:
        """A tool begins."""
        self._line("tool_use", name=call.name, tool_call_id=call.call_id, input=call.arguments)

    def tool_result(self, done: ToolComplete) -> None:
        """A tool has ended."""
        cut = done.output[:OUTPUT_CHARACTERS] + ("..." if len(done.output) > OUTPUT_CHARACTERS else "")
        self._line(
            "tool_result",
            name=done.name,
            tool_call_id=done.call_id,
            output=cut,
            duration_ms=done.duration_ms,
            is_error=done.is_error,
        )

    def used(self, usage: Usage) -> None:
        """What it consumed."""
        self._usage = usage

    def result(self, status: int, error: str | None = None) -> None:
        """The last line, once."""
        if self._ended:
            return
        self._ended = True
        used = self._usage
        tokens: dict[str, JsonValue] = {
            "input": used.input_tokens,
            "output": used.output_tokens,
            "total": used.input_tokens + used.output_tokens,
            "cache_read": used.cached_tokens,
            "cache_write": 0,
        }
        fields: dict[str, JsonValue] = {
            "session_id": self._session_id,
            "exit_code": status,
            "text": self.answer,
            "tokens": tokens,
            "duration_ms": round((time.monotonic() - self._began) * 1000),
        }
        if error is not None:
            fields["error"] = error
        self._line("result", **fields)

    def _line(self, type: str, **fields: JsonValue | Mapping[str, JsonValue]) -> None:
        line = json.dumps({"type": type, "timestamp": round(time.time() * 1000), **fields}, ensure_ascii=False)
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (BrokenPipeError, ValueError):
            return
