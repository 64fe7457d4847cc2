"""Timers of one profile that survive a restart. They are rows in its own store and tasks of its own runtime.

A timer is claimed before it fires: its row is taken out, or moved to its next time, in the same commit. So it fires
once, whatever happens next and however many look (case SCHED-06); a profile's timers lie in its home, so nobody else
has them to fire (cases SCHED-01 to 04). What was due while the profile was closed fires when it opens, and says how
late it is. Times are seconds since 1970.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import cast, final

import orjson
import trio
from pydantic import JsonValue

from hermes_ws.contract.errors import LimitReached, StorageUnavailable
from hermes_ws.journal.database import Database, Transaction

LOOK_S = 30.0
"""Seconds after which the clock is looked at again: it may have been set, or the machine may have slept."""

RETRY_S = 5.0
"""Seconds until a claim is tried again that the disk refused."""

MOST = 10_000
"""Timers of one profile: far more than a person has plans, and few enough to look through."""

PAYLOAD_BYTES = 65_536
"""A timer names what it is about; the thing itself lies elsewhere."""


@final
@dataclass(frozen=True, slots=True)
class Timer:
    """One timer as it is stored. `timer_id` is chosen by whoever sets it; setting it again moves it."""

    timer_id: str
    kind: str
    due: float
    payload: Mapping[str, JsonValue]


@final
@dataclass(frozen=True, slots=True)
class Fired:
    """A timer that was claimed. `late_s` is how long it has been due: large after the profile was closed."""

    timer: Timer
    late_s: float


Fire = Callable[[Fired], Awaitable[None]]
Again = Callable[[Timer, float], float | None]
"""From a timer that fires and the time now, when it is due next; None for never again."""


@final
@dataclass(frozen=True, slots=True)
class Kind:
    """What a kind of timer does."""

    fire: Fire
    again: Again


def once(timer: Timer, now: float) -> float | None:
    """`Again` of a timer that fires a single time."""
    return None


@final
class Timers:
    """The persisted timers of one open profile. `run` is a task of the runtime, and so is whatever fires."""

    def __init__(
        self,
        journal: Database,
        start_soon: Callable[[Callable[[], Awaitable[object]], str], None],
        wake: Callable[[float | None], Awaitable[None]],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._journal = journal
        self._start_soon = start_soon
        self._wake = wake
        self._clock = clock
        self._kinds: dict[str, Kind] = {}
        self._changed = trio.Event()
        self._told: float | None = None
        self.waiting = 0
        """How many are set, as of the last look."""

    def handle(self, kind: str, fire: Fire, again: Again = once) -> None:
        """Say what timers of this kind do, once, while the profile opens. Those of a kind that nobody handles wait."""
        if kind in self._kinds:
            raise RuntimeError(f"timers of kind {kind} have a handler; probably two parts chose one name")
        self._kinds[kind] = Kind(fire, again)
        self._poke()

    async def set(self, timer: Timer) -> None:
        """Set or move a timer; durable when this returns. Raises `LimitReached`, `StorageUnavailable`."""
        await self._journal.transact(lambda tx: self.set_in(tx, timer))

    def set_in(self, tx: Transaction, timer: Timer) -> None:
        """Set or move a timer in a transaction that does more. Raises `LimitReached`."""
        payload = orjson.dumps(dict(timer.payload))
        count = int(tx.connection.execute("SELECT count(*) FROM timer").fetchone()[0])
        if count >= MOST or len(payload) > PAYLOAD_BYTES:
            raise LimitReached("A profile has no room for more or larger timers than this.")
        tx.connection.execute(
            "INSERT INTO timer VALUES (?, ?, ?, ?) ON CONFLICT (timer_id) DO UPDATE"
            " SET kind = excluded.kind, due = excluded.due, payload = excluded.payload",
            (timer.timer_id, timer.kind, timer.due, payload),
        )
        tx.after_commit(self._poke)

    async def cancel(self, timer_id: str) -> bool:
        """Take a timer out; false when there is none (any more)."""
        return await self._journal.transact(lambda tx: self.cancel_in(tx, timer_id))

    def cancel_in(self, tx: Transaction, timer_id: str) -> bool:
        """Take a timer out in a transaction that does more."""
        gone = tx.connection.execute("DELETE FROM timer WHERE timer_id = ?", (timer_id,)).rowcount > 0
        tx.after_commit(self._poke)
        return gone

    async def all(self) -> tuple[Timer, ...]:
        """Those that are set, the next one first."""
        return await self._journal.read(_all)

    async def run(self) -> None:
        """Fire what is due, until cancelled."""
        while True:
            self._changed = trio.Event()
            try:
                due = await self._fire_due()
            except StorageUnavailable:
                await trio.sleep(RETRY_S)
                continue
            if due != self._told:
                await self._wake(due)
                self._told = due
            wait = LOOK_S if due is None else min(LOOK_S, max(0.0, due - self._clock()))
            with trio.move_on_after(wait):
                await self._changed.wait()

    async def _fire_due(self) -> float | None:
        """Claim and start what is due; when the next one is."""
        for timer in await self.all():
            now = self._clock()
            kind = self._kinds.get(timer.kind)
            if kind is None or timer.due > now:
                continue
            following = kind.again(timer, now)
            if await self._journal.transact(lambda tx, t=timer, f=following: _claim(tx, t, f)):
                fired = Fired(timer, now - timer.due)
                self._start_soon(lambda k=kind, f=fired: k.fire(f), f"timer {timer.timer_id}")
        left = await self.all()
        self.waiting = len(left)
        return min((timer.due for timer in left if timer.kind in self._kinds), default=None)

    def _poke(self) -> None:
        self._changed.set()


def _all(connection: sqlite3.Connection) -> tuple[Timer, ...]:
    rows = cast(
        "list[tuple[str, str, float, bytes]]",
        connection.execute("SELECT timer_id, kind, due, payload FROM timer ORDER BY due, timer_id").fetchall(),
    )
    return tuple(Timer(id, kind, due, orjson.loads(payload)) for id, kind, due, payload in rows)


def _claim(tx: Transaction, timer: Timer, following: float | None) -> bool:
    """Whether it is this caller's to fire: it stands as it was read, and is taken out or moved on."""
    as_read = (timer.timer_id, timer.due)
    if following is None:
        done = tx.connection.execute("DELETE FROM timer WHERE timer_id = ? AND due = ?", as_read)
    else:
        done = tx.connection.execute("UPDATE timer SET due = ? WHERE timer_id = ? AND due = ?", (following, *as_read))
    return done.rowcount == 1
