"""What the work of a transaction may do: run SQL, append events, and leave word for after the commit.

Several transactions share one commit (a group). Each stands for itself: what a failed one did is undone to its own
savepoint. Appended events are collected and written with one statement for many, because each statement gives up the
interpreter's lock and has to get it back; they are written before any SQL of the work runs, so that it sees them. A
work that only appends needs no savepoint, since what it appended is still in memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, final

from hermes_ws.contract.errors import LimitReached, StaleEpoch, ThreadUnknown
from hermes_ws.contract.model import Result
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.stored_event import StoredEvent
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import encode

PAYLOAD_BYTES = 900 * 1024
"""The largest payload of an event. With its envelope it stays below the 1 MiB that a client must take in one frame."""

INSERTED_AT_ONCE = 8
"""Events in one INSERT. Measured: with 8 a row costs what it costs alone, with 32 twice that; and a busy event loop
holds the interpreter's lock against the writer once for eight rows instead of for each."""

HEADS_KEPT = 4096
"""Threads whose head the writer remembers; beyond it forgets all and reads them again, at some microseconds each."""

HEAD: Final = (
    "coalesce((SELECT seq FROM event WHERE event.thread = thread.id AND event.generation = thread.generation"
    " ORDER BY seq DESC LIMIT 1), 0)"
)
"""The head of a row of `thread`: the number of its last event, found by its key. It is stored nowhere else, so that an
append writes one row and the two can never differ."""

_COLUMNS: Final = "thread, generation, seq, type, ts, execution_generation, admission_id, payload"
_Row = tuple[int, int, int, str, float, "int | None", "str | None", bytes]


@final
@dataclass(frozen=True, slots=True)
class Head:
    """Where a thread's journal ends; `id` is the thread's number in this file."""

    id: int
    generation: int
    seq: int


@final
@dataclass(slots=True)
class Committed:
    """What a work leaves behind when its group is committed: events and calls, in the order in which it made them."""

    events: list[tuple[ThreadKey, StoredEvent]] = field(default_factory=list[tuple[ThreadKey, StoredEvent]])
    calls: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])


@final
class Group:
    """One commit: begun, filled by works in turn, and ended. Lives in the writer's thread."""

    def __init__(self, connection: sqlite3.Connection, epoch: int, now: float, heads: dict[ThreadKey, Head]) -> None:
        self.connection: Final = connection
        self.epoch: Final = epoch
        self.now: Final = now
        self.heads: Final = heads
        self.rows: list[_Row] = []
        self.size = 0
        """Works and events so far."""
        self.broken = False
        """Whether a work could not be undone, so that nothing of the group may be committed."""

    def begin(self) -> None:
        """Take the write lock and see that the home is still ours. Raises `StaleEpoch`, sqlite3 errors."""
        self.connection.execute("BEGIN IMMEDIATE")
        found = self.connection.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
        if found is None or found[0] != self.epoch:
            active = int(found[0]) if found is not None else None
            raise StaleEpoch("Another process owns this home now.", epoch=self.epoch, active=active)

    def run(self, work: Callable[[Transaction], object]) -> tuple[object, Committed]:
        """Run one work. Whatever it raises leaves the group as it was before, unless SQLite gave up the whole of it."""
        tx = Transaction(self)
        try:
            value = work(tx)
            tx.finish()
        except BaseException:
            tx.undo()
            raise
        self.size += 1 + len(tx.committed.events)
        return value, tx.committed

    def write(self, rows: list[_Row]) -> None:
        """Write collected events and empty the list."""
        for first in range(0, len(rows), INSERTED_AT_ONCE):
            part = rows[first : first + INSERTED_AT_ONCE]
            values = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * len(part))
            self.connection.execute(
                f"INSERT INTO event ({_COLUMNS}) VALUES {values}", [cell for row in part for cell in row]
            )
        rows.clear()

    def commit(self) -> None:
        """Write what is collected and make all of it durable. Raises sqlite3 errors; then nothing of it is there."""
        self.write(self.rows)
        self.connection.execute("COMMIT")
        if len(self.heads) > HEADS_KEPT:
            self.heads.clear()

    def abandon(self) -> None:
        """Undo the whole group. Does not raise: the connection may be beyond answering."""
        self.heads.clear()
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        except sqlite3.Error:
            return


@final
class Transaction:
    """One work's view of the home, in the writer's thread. Not to be used after the work returned.

    `epoch` is the number of this owner of the home; `now` is seconds since 1970 and never goes back, whatever the
    clock does.
    """

    def __init__(self, group: Group) -> None:
        self.epoch: Final = group.epoch
        self.now: Final = group.now
        self.committed: Final = Committed()
        self._group = group
        self._savepoint = False
        self._heads: dict[ThreadKey, Head] = {}
        self._stale: set[ThreadKey] | None = None
        self._rows: list[_Row] = []

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, for SQL that sees everything appended so far. No BEGIN, COMMIT or ROLLBACK on it."""
        group = self._group
        if not self._savepoint:
            group.write(group.rows)
            group.connection.execute("SAVEPOINT work")
            self._savepoint = True
        if self._rows:
            group.write(self._rows)
        return group.connection

    def append(
        self,
        thread: ThreadKey,
        type: str,
        payload: Result,
        *,
        execution_generation: int | None = None,
        admission_id: str | None = None,
    ) -> Cursor:
        """Append an event to a thread's journal; its cursor. It is published after the commit, before `transact` ends.

        Raises `ThreadUnknown`, and `LimitReached` for a payload that would not fit into a frame.
        """
        body = encode(payload)
        if len(body) > PAYLOAD_BYTES:
            raise LimitReached(
                f"An event of type {type} would take {len(body)} bytes; {PAYLOAD_BYTES} is the most.",
                hint="Shorten the text, or keep it in a file and name the file.",
                limit=PAYLOAD_BYTES,
            )
        before = self.head(thread)
        head = Head(before.id, before.generation, before.seq + 1)
        self._heads[thread] = head
        self._rows.append(
            (head.id, head.generation, head.seq, type, self.now, execution_generation, admission_id, body)
        )
        event = StoredEvent(head.generation, head.seq, type, self.now, body, execution_generation, admission_id)
        self.committed.events.append((thread, event))
        return event.cursor

    def head(self, thread: ThreadKey) -> Head:
        """Where the thread's journal ends, with what this work appended. Raises `ThreadUnknown`."""
        head = self._heads.get(thread)
        if head is None and (self._stale is None or thread not in self._stale):
            head = self._group.heads.get(thread)
        if head is None:
            row = self._group.connection.execute(
                f"SELECT id, generation, {HEAD} FROM thread WHERE session_id = ? AND thread_id = ?",
                (thread.session_id, thread.thread_id),
            ).fetchone()
            if row is None:
                raise ThreadUnknown(f"There is no thread {thread.thread_id} in this session.")
            head = self._heads[thread] = Head(*row)
        return head

    def forget_head(self, thread: ThreadKey) -> None:
        """Read the thread's head from the tables again: this work replaced its journal, or deleted it.

        To be called after the statements that do so; what it appended before must not be among what it removed.
        """
        if self._stale is None:
            self._stale = set()
        self._stale.add(thread)
        self._heads.pop(thread, None)

    def after_commit(self, fn: Callable[[], None]) -> None:
        """Call `fn` on the trio thread, after this work's events stand in the tails and before anybody is told of them.

        Calls of one group run in the order of its works. Not called if the work or the commit fails.
        """
        self.committed.calls.append(fn)

    def finish(self) -> None:
        """End the work: hand what it collected to the group. For the group only."""
        group = self._group
        if self._savepoint:
            group.write(self._rows)
            group.connection.execute("RELEASE work")
        else:
            group.rows.extend(self._rows)
        for thread in self._stale or ():
            group.heads.pop(thread, None)
        group.heads.update(self._heads)

    def undo(self) -> None:
        """Undo the work, or mark the group as broken. For the group only."""
        connection = self._group.connection
        try:
            if self._savepoint and connection.in_transaction:
                connection.execute("ROLLBACK TO work")
                connection.execute("RELEASE work")
        except sqlite3.Error:
            self._group.broken = True
