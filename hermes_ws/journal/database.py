"""The journal of one open home: its writer, its readers, and the tails of its threads.

`transact` changes something and returns when that is durable and published; `read` looks at one coherent moment. All
that a task on the event loop ever does here is wait: SQLite is used in other threads, which carry the home's context.
"""

from __future__ import annotations

import contextvars
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar, final

import trio

from hermes_ws.contract.errors import StorageUnavailable, ThreadUnknown
from hermes_ws.journal import retention, threads
from hermes_ws.journal.address import Address, ThreadKey
from hermes_ws.journal.blobs import Blobs
from hermes_ws.journal.opening import Durability, Opened, Place
from hermes_ws.journal.readers import Readers
from hermes_ws.journal.schema import STEPS, Step, copy_to
from hermes_ws.journal.stored_event import StoredEvent
from hermes_ws.journal.tail import ThreadTail
from hermes_ws.journal.transaction import Transaction
from hermes_ws.journal.writer import Later, Writer
from hermes_ws.wire.frames import Frame

__all__ = ["Database", "Durability", "Later", "Statistics", "ThreadKey", "Transaction"]

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class Statistics:
    """What an open home's journal holds and has done since it was opened."""

    epoch: int
    groups: int
    works: int
    tails: int
    read_connections: int
    read_only: bool


@final
class _Board:
    """The open tails of a home, and whether it can be written."""

    def __init__(self) -> None:
        self.tails: dict[ThreadKey, ThreadTail] = {}
        self.trouble: StorageUnavailable | None = None
        self._changed: dict[ThreadTail, None] = {}

    def publish(self, key: ThreadKey, event: StoredEvent) -> None:
        tail = self.tails.get(key)
        if tail is not None:
            tail.publish(event)
            self._changed[tail] = None

    def notify(self) -> None:
        changed, self._changed = self._changed, {}
        for tail in changed:
            tail.notify()

    def wrote(self, trouble: StorageUnavailable | None) -> None:
        self.trouble = trouble


@final
class Database:
    """One home's database, owned by this process as long as it is open. Made by `open`, ended by `close`."""

    def __init__(
        self,
        profile: str,
        place: Place,
        writer: Writer,
        board: _Board,
        readers: Readers,
        blobs: Blobs,
        opened: Opened,
    ) -> None:
        self.epoch: Final = opened.epoch
        """The number of this ownership of the home; each owner has a higher one."""
        self.recovered: Final = opened.recovered
        """Whether the last owner ended without closing. The file was checked, and found sound."""
        self.durability: Final = place.durability
        self.blobs: Final = blobs
        """The large contents of the home, beside the file."""
        self._profile = profile
        self._place = place
        self._writer = writer
        self._board = board
        self._readers = readers
        self._closed: trio.Event | None = None

    @classmethod
    async def open(
        cls,
        home_path: Path,
        database: Path,
        lock: Path,
        *,
        instance_id: str,
        profile: str,
        durability: Durability = "full",
        network_file_systems: tuple[str, ...] = (),
        context: contextvars.Context | None = None,
        steps: tuple[Step, ...] = tuple(STEPS),
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Own the home and open its database, made or migrated as needed.

        `profile` is the name that events carry. `context` is the home's; everything that touches the file runs in it or
        in a copy. Raises `ProfileUnusable` when another process owns the home or it lies on a network not named,
        `StorageUnavailable` when the file is damaged, newer, or cannot be used; then nothing was written.
        """
        for path in (database, lock):
            if not path.is_relative_to(home_path):
                raise ValueError(f"{path} does not lie in the home {home_path}")
        own = context if context is not None else contextvars.copy_context()
        place = Place(database, lock, instance_id, durability, steps, network_file_systems)
        board = _Board()
        writer = Writer(place, board, own.copy(), clock)
        opened = await writer.start()
        blobs = Blobs(database.parent / "blobs", own, clock)
        return cls(profile, place, writer, board, Readers(database, own), blobs, opened)

    @property
    def trouble(self) -> StorageUnavailable | None:
        """Why the last write failed; None when it did not. The home is read-only until a write succeeds again, or for
        good when the file is damaged: then nothing more is written to it.
        """
        return self._board.trouble

    async def probe(self) -> bool:
        """Whether the home can be written, found out by a write that changes nothing. Ends `trouble` if it can."""
        try:
            await self._writer.transact(_touch)
        except StorageUnavailable:
            return False
        return True

    async def backup(self, to: Path) -> None:
        """Copy the database as it is now, durable, to a file that must not exist; writing goes on meanwhile.

        SQLite's own online backup, in one read transaction. Raises `StorageUnavailable`, and leaves nothing behind.
        """
        await self._readers.use(lambda connection: copy_to(connection, to))

    async def remove_session(
        self, session_id: str, gone: Callable[[tuple[ThreadKey, ...]], None], before: float | None = None
    ) -> bool:
        """Remove a session if retention may (`retention.remove`); `gone` lets those go who listen to its threads."""

        def work(tx: Transaction) -> bool:
            keys = retention.remove(tx, session_id, before)
            if keys is not None:
                tx.after_commit(lambda: gone(keys))
            return keys is not None

        return await self.transact(work)

    async def transact(self, work: Callable[[Transaction], T], *, behind: Later[Any] | None = None) -> T:
        """Run `work` in the writer's thread, and return what it returned when it is durable and published.

        Its events stand in the tails, in the order of commits, before this returns. What it raises undoes it and is
        raised here; other works of the same commit are not touched. Raises `StorageUnavailable`, `StorageFull` and
        `StaleEpoch`. Once queued it cannot be cancelled: it has happened, or this raises. What is given as `behind`
        comes next, with nothing in between, and mostly with the same commit; it happens also when this one does not.
        """
        return await self._writer.transact(work, behind)

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run `query` in a worker thread, in one read transaction on a connection that cannot write."""
        return await self._readers.read(query)

    def tail(self, key: ThreadKey) -> ThreadTail:
        """The tail of a thread that is open. Raises RuntimeError if it is not: `open_tail` comes first."""
        tail = self._board.tails.get(key)
        if tail is None:
            raise RuntimeError(
                f"the tail of {key} is not open; probably open_tail(key) was not awaited, or it was closed"
            )
        return tail

    def tail_if_open(self, key: ThreadKey) -> ThreadTail | None:
        """The tail of a thread, for whoever has something to tell in passing; None when nobody can be listening."""
        return self._board.tails.get(key)

    async def open_tail(self, key: ThreadKey) -> ThreadTail:
        """The tail of a thread, opened where its journal ends now. Raises `ThreadUnknown`.

        From here on it gets what is committed. Whoever opens it twice gets the same one.
        """
        tail = self._board.tails.get(key)
        if tail is not None and tail.generation > 0:
            return tail
        if tail is None:
            # It stands on the board before the read, so that what is committed meanwhile is not missed.
            tail = ThreadTail(Address(self._profile, key.session_id, key.thread_id))
            self._board.tails[key] = tail
        record = await self.read(lambda connection: threads.get(connection, key))
        if record is not None:
            tail.adopt(record.generation, record.head)
        elif tail.generation == 0:
            self._board.tails.pop(key, None)
            raise ThreadUnknown(f"There is no thread {key.thread_id} in this session.")
        return self._board.tails.setdefault(key, tail)

    def close_tail(self, key: ThreadKey) -> bool:
        """Give a tail's memory free. False, and it stays, while somebody opens it, listens, or lets a text grow."""
        tail = self._board.tails.get(key)
        if tail is None:
            return True
        held = tail.statistics()
        if held.listeners or held.live_texts or tail.generation == 0:
            return False
        del self._board.tails[key]
        return True

    def end_tail(self, key: ThreadKey, farewell: Frame) -> None:
        """A thread was deleted: whoever listens to it is told this, as the last thing, and is let go."""
        tail = self._board.tails.pop(key, None)
        if tail is not None:
            tail.end(farewell)

    def statistics(self) -> Statistics:
        """Counts of what is open and done."""
        return Statistics(
            epoch=self.epoch,
            groups=self._writer.groups,
            works=self._writer.works,
            tails=len(self._board.tails),
            read_connections=self._readers.open,
            read_only=self.trouble is not None,
        )

    async def close(self) -> None:
        """Finish what is queued, mark the file as closed, and give the home free. Not cancellable; repeatable."""
        with trio.CancelScope(shield=True):
            if self._closed is not None:
                await self._closed.wait()
                return
            self._closed = trio.Event()
            try:
                await self._readers.close()
                await self._writer.close()
            finally:
                self._closed.set()


def _touch(tx: Transaction) -> None:
    tx.connection.execute("UPDATE meta SET value = value WHERE key = 'clean'")
