"""What a run took, in a file for programs. It is written also when the run fails, and never makes one fail."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from pydantic import JsonValue

    from hermes_ws.contract.content import Usage


@final
class UsageFile:
    """The file, or nothing where none was asked for."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._session: Mapping[str, JsonValue] = {}
        self._usage: Usage | None = None

    def bind(self, session_id: str, info: Mapping[str, JsonValue]) -> None:
        """The session is known from now on, and what is told about it."""
        self._session = {
            "session_id": session_id,
            "model": info.get("model"),
            "provider": info.get("provider"),
        }

    def used(self, usage: Usage) -> None:
        """What the execution consumed."""
        self._usage = usage

    def failed(self, failure: str) -> None:
        """It came to nothing before there was an execution, or in one."""
        self.write("failed", failure)

    def write(self, outcome: str, failure: str | None) -> None:
        """Write it, with the directories above it. `outcome` is that of the execution, or `failed`, or `detached`."""
        if self._path is None:
            return
        used = self._usage
        cost = used.cost_usd if used is not None else None
        tokens = (used.input_tokens, used.output_tokens, used.cached_tokens) if used is not None else (0, 0, 0)
        told: dict[str, JsonValue] = {
            "session_id": None,
            "model": None,
            "provider": None,
            **self._session,
            **({"model": used.model} if used is not None and used.model else {}),
            "input_tokens": tokens[0],
            "output_tokens": tokens[1],
            "cache_read_tokens": tokens[2],
            "total_tokens": tokens[0] + tokens[1],
            "estimated_cost_usd": cost,
            "cost_status": "unknown" if cost is None else "estimated",
            "completed": outcome == "completed",
            "partial": outcome not in ("completed", "failed"),
            "interrupted": outcome == "interrupted",
            "failed": failure is not None,
            "turn_exit_reason": outcome,
        }
        if failure is not None:
            told["failure"] = failure
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(told, indent=2) + "\n", "utf-8")
