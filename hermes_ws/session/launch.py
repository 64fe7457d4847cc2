"""The launch request of a session: what it was made with, frozen into its row and read back at each execution.

A key that came with the request is no part of it: it lives in memory only (`Keys`), and ends with the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self, cast, final

from pydantic import JsonValue

from hermes_ws.contract.errors import LaunchCredentialsUnavailable
from hermes_ws.contract.methods.sessions import CreateParams
from hermes_ws.contract.model import Result


@final
class Launch(Result):
    """Read leniently, since an older or newer server may have written it."""

    model: str | None = None
    provider: str | None = None
    max_turns: int | None = None
    toolsets: list[str] | None = None
    base_url: str | None = None
    has_key: bool = False
    """Whether the request brought a key of its own."""
    reasoning: str | None = None
    skills: list[str] | None = None
    frozen: str = ""
    """The skills of the request, as they were when it was made."""
    checkpoints: bool = False
    yolo: bool = False
    accept_hooks: bool = False
    pass_session_id: bool = False
    ignore_rules: bool = False
    ignore_user_config: bool = False
    safe_mode: bool = False

    @classmethod
    def of(cls, params: CreateParams, frozen: str = "") -> Self:
        """What is kept of a request."""
        given = params.model_dump(mode="json", include=set(cls.model_fields), exclude_none=True)
        return cls.model_validate({**given, "has_key": params.api_key is not None, "frozen": frozen})

    @classmethod
    def read(cls, stored: Mapping[str, JsonValue]) -> Self:
        """What was stored."""
        return cls.model_validate(stored)

    def overrides(self) -> dict[str, JsonValue]:
        """What was asked for; what was not is left to the agent's definition and the profile."""
        return cast("dict[str, JsonValue]", self.model_dump(mode="json", exclude_none=True, exclude_defaults=True))

    def inherited(self) -> dict[str, JsonValue]:
        """What a session that is made out of this one is made with: not its bypasses, which are its own."""
        return self.model_copy(update={"yolo": False, "accept_hooks": False}).overrides()

    def options(self) -> dict[str, JsonValue]:
        """The switches that are on, for those who look at the session: nobody works in a bypass without seeing it."""
        switches = ("checkpoints", "yolo", "accept_hooks", "ignore_rules", "ignore_user_config", "safe_mode")
        return {name: True for name in switches if getattr(self, name)}


@final
class Keys:
    """The keys that launch requests brought, for as long as the profile is open. They are written nowhere."""

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}

    def keep(self, session_id: str, key: str | None) -> None:
        """Remember the key of a session, if it brought one."""
        if key is not None:
            self._keys[session_id] = key

    def hand_on(self, session_id: str, to: str) -> None:
        """Another session was made out of this one, with all that it was made with."""
        self.keep(to, self._keys.get(session_id))

    def forget(self, session_id: str) -> None:
        """The session is gone."""
        self._keys.pop(session_id, None)

    def of(self, session_id: str, launch: Launch) -> str | None:
        """The key; None for a session that brought none. Raises `LaunchCredentialsUnavailable` after a restart."""
        if not launch.has_key:
            return None
        key = self._keys.get(session_id)
        if key is None:
            raise LaunchCredentialsUnavailable(
                "This session was started with a key of its own, which the server no longer has."
            )
        return key
