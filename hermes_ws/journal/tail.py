"""The end of a thread in memory: its recent events, encoded once, and the texts that are growing.

Delivery pulls from here: a subscriber is a cursor and its `LiveMarks`, and `take` gives it what comes after them.
Nothing is queued per subscriber, so memory does not depend on how many there are or how slow they are. Whoever is
further behind than what is kept reads the database and comes back.

Everything here runs on the trio thread and nothing waits; whatever one call sees is one moment.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from hermes_ws.contract.model import Result
from hermes_ws.journal.address import Address
from hermes_ws.journal.live import LiveKind, LiveMarks, LiveText
from hermes_ws.journal.stored_event import StoredEvent
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import Frame, event_frame

__all__ = ["TAIL_BYTES", "TAIL_EVENTS", "Address", "LiveKind", "LiveMarks", "Statistics", "Taken", "ThreadTail"]

TAIL_EVENTS = 2048
"""Events kept in memory per thread: a client that reconnects within minutes finds all of them here."""

TAIL_BYTES = 2 * 1024 * 1024
"""Bytes of events kept in memory per thread; two of the largest events there can be."""

PASSING_KEPT = 16
"""Events told in passing that are kept for subscribers which have not looked yet. Whoever is further behind than this
learns the same from what is committed."""

_SLACK: Final = 8
"""What is dropped at once is at least this part of the bound, so that dropping costs nothing per event."""

_log = logging.getLogger(__name__)


@final
@dataclass(frozen=True, slots=True)
class Taken:
    """What follows a cursor: `frames` in order, and the `cursor` of the subscriber that has them.

    `missing`: the cursor is older than what is kept, or of another generation; there are no frames, and the database
    says what follows. `more`: the budget ended before the tail did, so ask again.
    """

    frames: tuple[Frame, ...]
    cursor: Cursor
    missing: bool = False
    more: bool = False


@final
@dataclass(frozen=True, slots=True)
class Statistics:
    """What a tail holds now."""

    events: int
    bytes: int
    live_texts: int
    listeners: int


@final
class ThreadTail:
    """The in-memory end of one thread's journal. `head` is the sequence of its last committed event."""

    def __init__(
        self,
        address: Address,
        *,
        events: int = TAIL_EVENTS,
        bytes: int = TAIL_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.address: Final = address
        self.generation = 0
        self.head = 0
        self._clock = clock
        self._most_events = events
        self._most_bytes = bytes
        self._frames: list[Frame] = []
        self._bytes = 0
        self._ts = 0.0
        self._listeners: dict[Callable[[], None], None] = {}
        self._live: dict[tuple[LiveKind, str], LiveText] = {}
        self._memo: tuple[int, int, Taken] | None = None
        self._passing: list[tuple[Frame, int | None]] = []
        self.passed = 0
        """How many events were told in passing. A subscriber that begins now has missed so many."""
        self.farewell: Frame | None = None
        """What subscribers are told last: the thread is gone, and nothing follows. See `end`."""

    # --- subscribers -------------------------------------------------------------------------------------------------

    def attach(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever there may be something new. It must neither wait nor raise."""
        self._listeners[listener] = None

    def detach(self, listener: Callable[[], None]) -> None:
        """Stop calling it; no effect if it is not attached."""
        self._listeners.pop(listener, None)

    def take(self, after: Cursor, live: LiveMarks | None, budget: int) -> Taken:
        """What follows `after`, up to about `budget` bytes but at least one frame if there is one.

        Committed events first; a subscriber that has them all gets the pieces of live text after its marks, which are
        moved. With `live=None` it gets no live text. A cursor beyond the head gets nothing until the thread is there.
        """
        if after.generation != self.generation or after.seq < self.head - len(self._frames):
            return Taken((), after, missing=True)
        committed = self._committed(after, budget)
        if live is None or committed.more or committed.cursor.seq != self.head:
            return committed
        if live.passed != self.passed:
            committed = self._with_passing(committed, live)
        if not self._live:
            if live.offsets:
                live.offsets.clear()
            return committed
        return self._with_live(committed, live, budget)

    def _committed(self, after: Cursor, budget: int) -> Taken:
        memo = self._memo
        if memo is not None and memo[0] == after.seq and memo[1] == budget:
            return memo[2]
        if after.seq >= self.head:
            taken = Taken((), after)
        else:
            first = len(self._frames) - (self.head - after.seq)
            last, size = first, 0
            while last < len(self._frames) and (last == first or size + len(self._frames[last]) <= budget):
                size += len(self._frames[last])
                last += 1
            frames = tuple(self._frames[first:last])
            taken = Taken(frames, Cursor(self.generation, after.seq + len(frames)), more=last < len(self._frames))
        self._memo = (after.seq, budget, taken)
        return taken

    def _with_passing(self, committed: Taken, live: LiveMarks) -> Taken:
        missed = self._passing[live.passed - self.passed :]
        live.passed = self.passed
        frames = tuple(frame for frame, only_at in missed if only_at is None or only_at == self.head)
        return Taken((*committed.frames, *frames), committed.cursor) if frames else committed

    def _with_live(self, committed: Taken, live: LiveMarks, budget: int) -> Taken:
        offsets = live.offsets
        frames: list[Frame] = []
        left = budget - sum(map(len, committed.frames))
        more = False
        for key, text in self._live.items():
            mark = offsets.get(key, 0)
            while mark < text.end:
                reached, frame = text.piece(mark, self.address)
                if len(frame) > left and (frames or committed.frames):
                    more = True
                    break
                frames.append(frame)
                left -= len(frame)
                mark = offsets[key] = reached
            if more:
                break
        if len(offsets) > len(self._live):
            for key in [key for key in offsets if key not in self._live]:
                del offsets[key]
        if not frames and not more:
            return committed
        return Taken((*committed.frames, *frames), committed.cursor, more=more)

    # --- committed events --------------------------------------------------------------------------------------------

    def adopt(self, generation: int, head: int) -> None:
        """Learn where the thread stands from a read of the database; what was published since stays ahead of it."""
        if (generation, head) > (self.generation, self.head):
            self._restart(generation, head)

    def publish(self, event: StoredEvent) -> None:
        """Keep a committed event. For the database only, in the order of commits; `notify` follows."""
        if event.generation != self.generation or event.seq != self.head + 1:
            self._restart(event.generation, event.seq - 1)
        frame = event.frame(self.address)
        self._frames.append(frame)
        self._bytes += len(frame)
        self.head = event.seq
        self._ts = event.ts
        self._memo = None
        if len(self._frames) > self._most_events or self._bytes > self._most_bytes:
            self._drop()

    def notify(self) -> None:
        """Call the listeners. One that raises is a bug of ours; it is logged, detached, and harms no other."""
        for listener in tuple(self._listeners):
            try:
                listener()
            except Exception:
                _log.exception("a listener of thread %s failed and was detached", self.address.thread_id)
                self.detach(listener)

    def end(self, farewell: Frame) -> None:
        """The thread was deleted: each subscriber gets this frame, after what it can still have, and is let go."""
        self.farewell = farewell
        self._live.clear()
        self.notify()

    def _restart(self, generation: int, head: int) -> None:
        self.generation = generation
        self.head = head
        self._frames.clear()
        self._bytes = 0
        self._memo = None

    def _drop(self) -> None:
        most_events = self._most_events - self._most_events // _SLACK
        most_bytes = self._most_bytes - self._most_bytes // _SLACK
        count, size = 0, self._bytes
        while len(self._frames) - count > 1 and (len(self._frames) - count > most_events or size > most_bytes):
            size -= len(self._frames[count])
            count += 1
        del self._frames[:count]
        self._bytes = size

    # --- told in passing ---------------------------------------------------------------------------------------------

    def tell(
        self,
        type: str,
        payload: Result,
        *,
        execution_generation: int | None = None,
        admission_id: str | None = None,
        until_next: bool = False,
    ) -> None:
        """Tell a live event to those who listen now. It is stored nowhere; what is committed says the same.

        `until_next`: it says something only until the next event of the thread is committed, and is dropped then.
        """
        address = self.address
        frame = event_frame(
            {
                "type": type,
                "profile": address.profile,
                "session_id": address.session_id or None,
                "thread_id": address.thread_id,
                "execution_generation": execution_generation,
                "admission_id": admission_id,
                "ts": self._now(),
                "payload": payload.model_dump(mode="json"),
            }
        )
        self._passing = [*self._passing[1 - PASSING_KEPT :], (frame, self.head if until_next else None)]
        self.passed += 1
        self.notify()

    # --- live texts --------------------------------------------------------------------------------------------------

    def live_begin(
        self, kind: LiveKind, id: str, *, execution_generation: int | None = None, admission_id: str | None = None
    ) -> None:
        """Begin a live text, after the event that announces it was committed. Raises RuntimeError if it has begun."""
        if (kind, id) in self._live:
            raise RuntimeError(f"the live text {kind} {id} has begun already; probably two tasks tell the same call")
        self._live[kind, id] = LiveText(
            kind,
            id,
            execution_generation=execution_generation,
            admission_id=admission_id,
            began_at=self.head,
            ts=self._now(),
        )

    def live_append(self, kind: LiveKind, id: str, text: str) -> bool:
        """Grow a live text and tell the listeners. False when it is over: output may straggle in later."""
        live = self._live.get((kind, id))
        if live is None:
            return False
        if text:
            live.append(text, self._now())
            self.notify()
        return True

    def live_end(self, kind: LiveKind, id: str) -> None:
        """Forget a live text, in the same step in which the whole is published (`Transaction.after_commit`)."""
        self._live.pop((kind, id), None)

    def live_text(self, kind: LiveKind, id: str) -> str:
        """What is kept of a live text; empty when there is none."""
        live = self._live.get((kind, id))
        return live.text() if live is not None else ""

    def in_progress(self, at: Cursor | None = None) -> tuple[str, str] | None:
        """`(message_id, text)` of the message that is being generated.

        With `at`, only if a client that stands there has seen the message begin; otherwise it gets the text as live
        events when it has caught up.
        """
        for (kind, id), live in self._live.items():
            if kind == "message.delta":
                if at is not None and (at.generation != self.generation or at.seq < live.began_at):
                    return None
                return id, live.text()
        return None

    def statistics(self) -> Statistics:
        """Counts of what is held."""
        return Statistics(len(self._frames), self._bytes, len(self._live), len(self._listeners))

    def _now(self) -> float:
        self._ts = max(self._ts, self._clock())
        return self._ts
