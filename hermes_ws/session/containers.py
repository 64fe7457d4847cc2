"""The containers of a profile's sessions while it is open: one for each session and load of the policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, final

from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.terminal import TerminalPolicy

if TYPE_CHECKING:
    from hermes_ws.session.docker import DockerClient


@final
class Containers:
    """They end with their session, with the policy under which they were made, and with the profile's wardens."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, int], tuple[TerminalPolicy, DockerClient]] = {}

    def get(self, scope: ProfileScope, session_id: str, make: Callable[[str], DockerClient]) -> DockerClient:
        """The container of a session; `make` is given its name."""
        key = (session_id, scope.loaded)
        if key not in self._made:
            self._made[key] = (scope.terminal, make(f"hermes-{session_id}-{scope.loaded}"))
        return self._made[key][1]

    async def end_session(self, session_id: str) -> None:
        """The session was closed or deleted."""
        await self._end([key for key in self._made if key[0] == session_id])

    async def end_other_policies(self, policy: TerminalPolicy) -> None:
        """The profile was loaded again, with another policy."""
        await self._end([key for key, (made, _) in self._made.items() if made != policy])

    @property
    def count(self) -> int:
        """How many there are; an idle one keeps no profile open."""
        return len(self._made)

    async def _end(self, keys: list[tuple[str, int]]) -> None:
        for key in keys:
            _, client = self._made.pop(key)
            await client.aclose()
