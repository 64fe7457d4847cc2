"""A served home and people at it, for the cases about resuming, attaching and queueing: the server in memory."""

from __future__ import annotations

import itertools
from typing import Any

from tests.model.watcher import Watcher
from tests.model.world import Seat, World


class Seated:
    """Asks for things as a client does, and waits until what they bring about has come to rest."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._numbers = itertools.count(1)

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole answer, on a connection that comes and goes."""
        seat = Seat(self.world, f"asking-{next(self._numbers)}")
        self.world.server.seats.append(seat)
        try:
            return await seat.call(method, **params)
        finally:
            seat.leave()

    async def get(self, method: str, **params: Any) -> dict[str, Any]:
        answered = await self.ask(method, **params)
        assert "result" in answered, answered
        result: dict[str, Any] = answered["result"]
        return result

    async def session(self) -> str:
        return str((await self.get("session.create", subscribe=False))["session_id"])

    async def submit(self, session_id: str, text: str, **options: Any) -> dict[str, Any]:
        input_id = options.pop("input_id", f"input-{next(self._numbers)}")
        return await self.get("prompt.submit", session_id=session_id, input_id=input_id, text=text, **options)

    async def state(self, session_id: str) -> dict[str, Any]:
        return await self.get("thread.state", session_id=session_id)

    async def watching(self, session_id: str, name: str = "viewer") -> Watcher:
        watcher = Watcher(self.world, name, "full")
        await watcher.follow(session_id, fresh=True)
        return watcher

    async def wait(self, seconds: float) -> None:
        """Let time pass, at one step: what was to happen within it happens."""
        await self.world.rest()
        for _ in range(int(seconds / 0.5)):
            self.world.clock.jump(0.5)
            await self.world.rest()


def said(watcher: Watcher) -> list[tuple[str, str]]:
    """The transcript that a client has."""
    assert watcher.state is not None
    return [(message.role, message.text.strip()) for message in watcher.state.messages or []]
