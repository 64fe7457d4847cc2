"""One connection's view of one thread: where it was taken, and what happened since, in order.

The life of a subscription: it is *open* from the reply to `thread.subscribe` (or `session.resume`, `session.create`)
on; it *ends* once, with the reason: the connection was lost, the same thread was subscribed again, or this reader fell
too far behind. Events that came before the end are still handed out. In no case is anything lost for good: subscribe
again after the last event that was handled.
"""

from __future__ import annotations

from collections import deque
from typing import final

import anyio

from hermes_ws.client.failures import ClientError, Lagging
from hermes_ws.contract.events import Envelope

WAITING_EVENTS = 4096
"""Events that may wait for a reader that is busy. Some megabytes at most; beyond it, reading them again is cheaper."""


@final
class Subscription:
    """An async iterator over the events of a thread. For one reader."""

    def __init__(self, session_id: str, thread_id: str, *, waiting: int = WAITING_EVENTS) -> None:
        self.session_id = session_id
        self.thread_id = thread_id
        self._waiting = waiting
        self._events: deque[Envelope] = deque()
        self._end: ClientError | None = None
        self._ended = False
        self._news = anyio.Event()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Envelope:
        """The next event. Raises the reason of the end (ConnectionLost, Lagging), or stops where it was replaced."""
        while not self._events:
            if self._ended:
                if self._end is not None:
                    raise self._end
                raise StopAsyncIteration
            self._news = anyio.Event()
            await self._news.wait()
        return self._events.popleft()

    def push(self, event: Envelope) -> None:
        """For the connection's reader: one more event. Never blocks."""
        if self._ended:
            return
        if len(self._events) >= self._waiting:
            self.end(Lagging(self._waiting))
            return
        self._events.append(event)
        self._news.set()

    def end(self, reason: ClientError | None) -> None:
        """For the connection: nothing more comes. The first reason stays."""
        if not self._ended:
            self._ended = True
            self._end = reason
            self._news.set()
