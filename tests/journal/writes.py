"""Works that write into a journal, and a writer that is held while others are queued."""

from __future__ import annotations

import threading
from collections.abc import Callable

import trio
import trio.testing

from hermes_ws.contract.events import Notice
from hermes_ws.journal import events
from hermes_ws.journal.database import Database, ThreadKey, Transaction
from hermes_ws.journal.stored_event import StoredEvent
from hermes_ws.wire.cursor import Cursor

KEY = ThreadKey("ses-1", "main")


def notice(text: str = "") -> Notice:
    return Notice(level="info", type="test", message=text)


def say(text: str = "", key: ThreadKey = KEY) -> Callable[[Transaction], Cursor]:
    return lambda tx: tx.append(key, "notice", notice(text))


async def stored(journal: Database, key: ThreadKey = KEY) -> list[StoredEvent]:
    found, more = await journal.read(lambda connection: events.since(connection, key, Cursor(1, 0), 5000, 10**9))
    assert not more
    return found


class Held:
    """The writer, held in the middle of a work, so that what is queued meanwhile comes in one group after it."""

    def __init__(self) -> None:
        self._go = threading.Event()
        self._there = threading.Event()

    def work(self, tx: Transaction) -> None:
        self._there.set()
        self._go.wait(10)

    async def reached(self) -> None:
        await trio.to_thread.run_sync(self._there.wait, 10)

    def release(self) -> None:
        self._go.set()


async def queue(nursery: trio.Nursery, journal: Database, *works: Callable[[Transaction], object]) -> None:
    """Queue works in this order."""
    for work in works:
        nursery.start_soon(journal.transact, work)
        await trio.testing.wait_all_tasks_blocked()
