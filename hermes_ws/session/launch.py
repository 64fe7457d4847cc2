"""The launch request of a session: what it was made with, frozen into its row and read back at each execution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self, cast, final

from pydantic import JsonValue

from hermes_ws.contract.methods.sessions import CreateParams
from hermes_ws.contract.model import Result


@final
class Launch(Result):
    """Read leniently, since an older or newer server may have written it."""

    model: str | None = None
    provider: str | None = None
    max_turns: int | None = None
    toolsets: list[str] | None = None

    @classmethod
    def of(cls, params: CreateParams) -> Self:
        """What is kept of a request."""
        return cls(model=params.model, provider=params.provider, max_turns=params.max_turns, toolsets=params.toolsets)

    @classmethod
    def read(cls, stored: Mapping[str, JsonValue]) -> Self:
        """What was stored."""
        return cls.model_validate(stored)

    def overrides(self) -> dict[str, JsonValue]:
        """What was asked for; what was not is left to the agent's definition and the profile."""
        return cast("dict[str, JsonValue]", self.model_dump(mode="json", exclude_none=True))
