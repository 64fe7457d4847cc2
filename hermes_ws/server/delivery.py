"""What a connection is told of the threads that it listens to.

The journal is the queue: a subscription is a cursor, and nothing is kept for it. When the socket takes data, each
subscription that has something new gives at most `BUDGET` bytes in turn, from the thread's tail in memory, or from the
database when the cursor is older than that. So memory does not depend on how slow a client is, and a client that fell
behind gets many events in one write.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

import trio

from hermes_ws.contract.errors import HermesError, SessionUnknown, ThreadUnknown
from hermes_ws.contract.methods.connection import LiveLevel
from hermes_ws.journal.tail import Address, LiveMarks, Taken, ThreadTail
from hermes_ws.server.outbox import Outbox
from hermes_ws.server.ports import ReadPage
from hermes_ws.server.subscription_life import TRANSITIONS, Happened, Phase
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import Frame, batch_frame
from hermes_ws.wire.negotiation import UNSPOKEN, Negotiated

BUDGET: Final = 64 * 1024
"""Bytes one subscription gives in its turn: large enough that catching up costs few writes, small enough that another
thread's event and a reply wait for milliseconds only."""

TURNS: Final = 4
"""Subscriptions that give in one write; together what `outbox.SEND_BYTES` joins."""

COALESCE: Final = 0.1
"""Seconds between two live pieces of a thread for a client that wants them coalesced; ten a second read as flowing."""


@final
class Subscription:
    """One thread, as one connection follows it."""

    __slots__ = ("_delivery", "_live_at", "cursor", "marks", "page", "phase", "read", "tail")

    def __init__(self, delivery: Delivery, tail: ThreadTail, start: Cursor, marks: LiveMarks, read: ReadPage) -> None:
        self._delivery = delivery
        self._live_at = -math.inf
        self.tail: Final = tail
        self.cursor = start
        self.marks: Final = marks
        self.read: Final = read
        self.page: tuple[Frame, ...] = ()
        self.phase = Phase.FOLLOWING

    def move(self, happened: Happened) -> None:
        """Go on to the phase in which this leaves it. What has ended stays so."""
        self.phase = TRANSITIONS.get((self.phase, happened), self.phase)

    def news(self) -> None:
        """The thread has something new. Called by its tail."""
        if self.phase is not Phase.FOLLOWING:
            return
        delivery = self._delivery
        outbox = delivery.direct
        if outbox is not None and outbox.idle and not self.page and self.tail.farewell is None:
            taken = self.tail.take(self.cursor, self.marks, BUDGET)
            if not taken.missing:
                self.cursor = taken.cursor
                if not taken.frames or (outbox.write_at_once(taken.frames) and not taken.more):
                    return
        self.move(Happened.NEWS)
        delivery.ready.append(self)
        delivery.wake()

    def take(self, live: LiveLevel) -> tuple[Sequence[Frame], bool]:
        """The next frames, and whether there may be more. With a coalescing client live pieces come at their time."""
        if self.page:
            page, self.page = self.page, ()
            return page, True
        if live == "full":
            taken = self.tail.take(self.cursor, self.marks, BUDGET)
        elif live == "coalesced":
            taken = self._take_coalesced()
        else:
            taken = self.tail.take(self.cursor, None, BUDGET)
        if taken.missing:
            return self._elsewhere(live)
        self.cursor = taken.cursor
        if self.tail.farewell is not None and not taken.more:
            self._delivery.unsubscribe(self.tail.address)
            return (*taken.frames, self.tail.farewell), False
        return taken.frames, taken.more

    def _elsewhere(self, live: LiveLevel) -> tuple[Sequence[Frame], bool]:
        """What follows is not in memory: the thread is gone, or its journal was replaced, or the database has it."""
        if self.tail.farewell is not None:
            self._delivery.unsubscribe(self.tail.address)
            return (self.tail.farewell,), False
        if self.cursor.generation < self.tail.generation:
            # The first event of each later generation says that it is one, so the client learns it in its place.
            self.rebase(Cursor(self.tail.generation, 0))
            return (), True
        if self.cursor.generation > self.tail.generation:
            # The database told it first. What it had to give is given, and the rest comes when it is published.
            return (), False
        self._delivery.fetch(self)
        return (), False

    def rebase(self, start: Cursor) -> None:
        """Go on in another generation: nothing of the old one follows, and no live text of it continues."""
        self.cursor = start
        self.marks.offsets.clear()

    def _take_coalesced(self) -> Taken:
        now = trio.current_time()
        if now < self._live_at:
            self._delivery.later(self._live_at, self)
            return self.tail.take(self.cursor, None, BUDGET)
        taken = self.tail.take(self.cursor, self.marks, BUDGET)
        if taken.frames:
            self._live_at = now + COALESCE
        return taken


@final
@dataclass(frozen=True, slots=True)
class DeliveryStatistics:
    """How many subscriptions there are, and how many of them have something to give."""

    subscriptions: int
    ready: int
    reading: int


@final
class Delivery:
    """The subscriptions of one connection.

    `outbox` is where frames may go as they are, without the connection looking at them; None when there is compression.
    `wake` is called when one has become ready, `alarm` when `due` has changed; `start` has `fill` run in the nursery of
    the connection, `failed` ends it because the journal cannot be read.
    """

    __slots__ = (
        "_alarm",
        "_due",
        "_failed",
        "_negotiated",
        "_outbox",
        "_start",
        "_subscriptions",
        "direct",
        "ready",
        "wake",
    )

    def __init__(
        self,
        *,
        outbox: Outbox | None,
        wake: Callable[[], None],
        alarm: Callable[[], None],
        start: Callable[[Subscription], None],
        failed: Callable[[str], None],
    ) -> None:
        self.wake: Final = wake
        self._alarm = alarm
        self._start = start
        self._failed = failed
        self._subscriptions: dict[Address, Subscription] = {}
        self._due: dict[Subscription, float] = {}
        self.ready: Final[list[Subscription]] = []
        self._outbox = outbox
        self._negotiated = UNSPOKEN
        self.direct = outbox
        """The outbox, when this client gets every frame as it is; else its frames are looked at in `gather`."""

    @property
    def negotiated(self) -> Negotiated:
        """What is in force on the connection."""
        return self._negotiated

    @negotiated.setter
    def negotiated(self, value: Negotiated) -> None:
        self._negotiated = value
        plain = value.live == "full" and not value.opt_out and not value.batch
        self.direct = self._outbox if plain else None

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def subscribe(self, tail: ThreadTail, start: Cursor, marks: LiveMarks, read: ReadPage) -> None:
        """Follow a thread from a cursor on. An earlier subscription to the same thread ends."""
        self.unsubscribe(tail.address)
        marks.passed = tail.passed
        subscription = Subscription(self, tail, start, marks, read)
        self._subscriptions[tail.address] = subscription
        tail.attach(subscription.news)
        subscription.news()

    def unsubscribe(self, address: Address) -> bool:
        """End the subscription to a thread; false when there was none. Nothing of it is given afterwards."""
        subscription = self._subscriptions.pop(address, None)
        if subscription is None:
            return False
        subscription.move(Happened.UNSUBSCRIBED)
        subscription.tail.detach(subscription.news)
        self._due.pop(subscription, None)
        return True

    def end(self) -> None:
        """End all of them."""
        for address in tuple(self._subscriptions):
            self.unsubscribe(address)
        self.ready.clear()

    def addresses(self) -> tuple[Address, ...]:
        """The threads that are followed."""
        return tuple(self._subscriptions)

    def statistics(self) -> DeliveryStatistics:
        """Counts, for the one who asks how a connection is doing."""
        reading = sum(each.phase is Phase.READING for each in self._subscriptions.values())
        return DeliveryStatistics(len(self._subscriptions), len(self.ready), reading)

    # --- giving ------------------------------------------------------------------------------------------------------

    def gather(self) -> Sequence[Frame]:
        """What the next write carries: of up to `TURNS` subscriptions that are ready, their turn's worth, in order."""
        ready = self.ready
        negotiated = self._negotiated
        gathered: Sequence[Frame] = ()
        for _ in range(min(len(ready), TURNS)):
            subscription = ready.pop(0)
            if subscription.phase is Phase.ENDED:
                continue
            frames, more = subscription.take(negotiated.live)
            if more:
                ready.append(subscription)
            else:
                subscription.move(Happened.GIVEN)
            gathered = (*gathered, *frames) if gathered else frames
        if negotiated.opt_out:
            gathered = [each for each in gathered if each.type not in negotiated.opt_out]
        if negotiated.batch and gathered:
            return _batches(gathered)
        return gathered

    # --- live pieces that wait for their time ------------------------------------------------------------------------

    def later(self, when: float, subscription: Subscription) -> None:
        """Look at the subscription again at `when`."""
        if subscription not in self._due:
            self._due[subscription] = when
            self._alarm()

    @property
    def due(self) -> float:
        """When the next one is to be looked at."""
        return min(self._due.values(), default=math.inf) if self._due else math.inf

    def tick(self, now: float) -> None:
        """Look at those whose time has come."""
        for subscription in [each for each, when in self._due.items() if when <= now]:
            del self._due[subscription]
            subscription.news()

    # --- older than what is in memory --------------------------------------------------------------------------------

    def fetch(self, subscription: Subscription) -> None:
        """Have a page read from the database; one at a time, and the next when this one has been given."""
        subscription.move(Happened.ELSEWHERE)
        self._start(subscription)

    async def fill(self, subscription: Subscription) -> None:
        """Read the page. The connection's nursery runs this."""
        try:
            page = await subscription.read(subscription.cursor, BUDGET)
        except (SessionUnknown, ThreadUnknown):
            # Deleted meanwhile. What the thread says last comes through its tail: it has, or will in a moment.
            subscription.move(Happened.READ)
            if subscription.tail.farewell is not None:
                subscription.news()
            return
        except HermesError as error:
            self._failed(error.message)
            return
        subscription.move(Happened.READ)
        if subscription.phase is Phase.ENDED:
            return
        if not page.frames and page.cursor == subscription.cursor:
            self._failed("the journal does not go on from where this connection is")
            return
        if page.cursor.generation != subscription.cursor.generation:
            subscription.rebase(page.cursor)
        subscription.page = page.frames
        subscription.cursor = page.cursor
        subscription.news()


def _batches(frames: Sequence[Frame]) -> list[Frame]:
    """As few arrays as there can be of at most `BUDGET` bytes each."""
    batches: list[Frame] = []
    group: list[Frame] = []
    size = 0
    for frame in frames:
        if group and size + len(frame) > BUDGET:
            batches.append(batch_frame(group))
            group, size = [], 0
        group.append(frame)
        size += len(frame)
    batches.append(batch_frame(group))
    return batches
