"""A client as the contract wants it: it folds what it receives, and resumes from the last event that it handled."""

from __future__ import annotations

from typing import Any

from hermes_ws.client.folding import advance
from hermes_ws.client.follow import Resumed
from hermes_ws.contract.events import Envelope
from hermes_ws.contract.methods.threads import Snapshot
from tests.model.world import Seat, World


class Watcher:
    """Follows one session at a time. `attentive` ones read at each step, the others when a test lets them."""

    def __init__(self, world: World, name: str, live: str) -> None:
        self.name = name
        self.live = live
        self.seat: Seat | None = None
        self.session_id: str | None = None
        self.state: Snapshot | None = None
        self.attentive = True
        self.gone = False
        """Whether it was told that the session is gone, or was put away."""
        self.events: list[Envelope] = []
        self._world = world

    async def connect(self) -> None:
        if self.seat is None:
            self.seat = Seat(self._world, self.name)
            self._world.server.seats.append(self.seat)
            await self.seat.hello(self.live)

    async def drop(self) -> None:
        """The socket breaks: what was sent and not read is lost."""
        if self.seat is not None:
            self.seat.leave()
            self.seat = None

    async def follow(self, session_id: str, *, fresh: bool) -> None:
        """Listen to the session, from where it stands, or anew."""
        await self.connect()
        assert self.seat is not None
        if self.session_id is not None and self.session_id != session_id:
            await self.seat.call("thread.unsubscribe", session_id=self.session_id)
            await self.read()
        if fresh or self.session_id != session_id or self.state is None:
            self.session_id, self.state, self.events = session_id, None, []
        after = {} if self.state is None else {"after": self.state.cursor}
        self.gone = False
        self.seat.send("thread.subscribe", session_id=session_id, **after)
        await self._world.rest()
        await self.read()

    async def read(self) -> None:
        """Handle everything that has come, in order. The answer to a subscription comes before its first event."""
        assert self.seat is not None
        for frame in await self.seat.read():
            if "result" in frame and "position" in frame["result"]:
                self.state = advance(self.state, Resumed(Snapshot.model_validate(frame["result"])))
            elif "error" in frame:
                assert frame["error"]["data"]["type"] == "session_unknown", frame
                self.gone = True
            elif frame.get("method") == "event":
                self._take(Envelope.model_validate(frame["params"]))

    def _take(self, event: Envelope) -> None:
        if event.session_id != self.session_id:
            return
        self.gone = self.gone or event.type == "session.closed"
        self.events.append(event)
        self.state = advance(self.state, event)

    @property
    def listens(self) -> bool:
        return self.seat is not None and self.session_id is not None and not self.gone


def comparable(state: Snapshot, *, live: bool, messages: int) -> dict[str, Any]:
    """What two states of the same moment have in common: all but how the client came to it."""
    told = state.model_dump(mode="json", exclude={"position", "messages", "more_messages", "questions"})
    own = [question.model_dump(mode="json") for question in state.questions if question.thread_id == state.thread_id]
    told["questions"] = own
    told["messages"] = [message.model_dump(mode="json") for message in (state.messages or [])[-messages:]]
    if state.in_progress is not None and not live:
        told["in_progress"]["text"] = None
    return told
