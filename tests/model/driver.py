"""What the steps of the model are taken with: a world, those who watch it, and what was asked of it."""

import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from hypothesis.stateful import (
    RuleBasedStateMachine,
)

from hermes_ws.contract.methods.threads import Snapshot
from tests.model.watcher import Watcher
from tests.model.world import Seat, World

EXAMPLES = 40

TMPFS = Path("/dev/shm")


class Acknowledged:
    """An input that the server said it has accepted, or may have."""

    def __init__(self, session_id: str, params: dict[str, Any]) -> None:
        self.session_id = session_id
        self.params = params
        self.admission_id: str | None = None


class Driver(RuleBasedStateMachine):
    """Asks the server, over a connection that comes and goes, for what a step needs."""

    def __init__(self) -> None:
        super().__init__()
        base = TMPFS if TMPFS.is_dir() else None
        self.directory = Path(tempfile.mkdtemp(prefix="model-", dir=base))
        self.world = World(self.directory)
        self.watchers = [
            Watcher(self.world, "first", "full"),
            Watcher(self.world, "second", "full"),
            Watcher(self.world, "quiet", "none"),
        ]
        self.sessions: list[str] = []
        self.deleted: set[str] = set()
        self.inputs: list[Acknowledged] = []
        self.answered: set[str] = set()
        self.replaced: set[str] = set()
        self.marks = 0
        self.requests = 0

    def throw_away(self) -> None:
        """End the world, whatever state it is in."""
        self.world.end()
        shutil.rmtree(self.directory, ignore_errors=True)

    def do(self, fn: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        return self.world.do(fn, *args)

    # --- asking ------------------------------------------------------------------------------------------------------

    async def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        seat = Seat(self.world, "control")
        self.world.server.seats.append(seat)
        try:
            return await seat.call(method, **params)
        finally:
            seat.leave()

    async def _get(self, method: str, **params: Any) -> dict[str, Any]:
        frame = await self._ask(method, **params)
        assert "result" in frame, (method, params, frame)
        return frame["result"]

    async def _state(self, session_id: str, *, messages: bool = False) -> Snapshot:
        if messages:
            session = await (await self.world.runtime()).sessions.get(session_id)
            return await (await session.thread("main")).snapshot(None, messages=True)
        return Snapshot.model_validate(await self._get("thread.state", session_id=session_id))

    def _session(self, number: int) -> str:
        return self.sessions[number % len(self.sessions)]

    async def _one_that(self, number: int, fits: Callable[[Snapshot], bool]) -> str:
        """A session that fits, if there is one; so that a step is not wasted on one where it can do nothing."""
        found = [each for each in self.sessions if fits(await self._state(each))]
        return found[number % len(found)] if found else self._session(number)
