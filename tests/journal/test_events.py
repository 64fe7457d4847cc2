"""Reading the journal back, and what a cursor is worth."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from hermes_ws.contract.events import Notice
from hermes_ws.journal import events
from hermes_ws.journal.address import Address
from hermes_ws.journal.database import Database, ThreadKey, Transaction
from hermes_ws.journal.stored_event import StoredEvent
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import encode, event_frame

KEY = ThreadKey("ses-1", "main")


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        (None, ("fresh", Cursor(3, 7))),
        (Cursor(3, 0), ("ok", Cursor(3, 0))),
        (Cursor(3, 7), ("ok", Cursor(3, 7))),
        (Cursor(3, 8), ("ahead", Cursor(3, 0))),
        (Cursor(4, 0), ("ahead", Cursor(3, 0))),
        (Cursor(2, 99), ("rebased", Cursor(3, 0))),
    ],
)
def test_where_a_client_stands(client: Cursor | None, expected: tuple[str, Cursor]) -> None:
    """Cases REPLAY-02, REPLAY-14, REPLAY-16: never another stream's events, and never silently fewer."""
    assert events.position(client, 3, 7) == expected


@given(st.integers(1, 5), st.integers(0, 9), st.integers(1, 5), st.integers(0, 9))
def test_only_a_cursor_that_this_journal_had_goes_on(generation: int, head: int, of: int, seq: int) -> None:
    start = events.position(Cursor(of, seq), generation, head)
    had = of == generation and seq <= head
    assert (start.position == "ok") == had
    assert start.cursor == (Cursor(of, seq) if had else Cursor(generation, 0))


async def fill(journal: Database, *texts: str) -> None:
    def work(tx: Transaction) -> None:
        for text in texts:
            tx.append(KEY, "notice", Notice(level="info", type="t", message=text))

    await journal.transact(work)


async def test_pages_follow_each_other_without_a_gap(journal: Database) -> None:
    await fill(journal, *map(str, range(10)))
    seen, cursor, more = list[int](), Cursor(1, 0), True
    while more:
        page, more = await journal.read(lambda connection: events.since(connection, KEY, cursor, 4))  # noqa: B023
        seen += [event.seq for event in page]
        cursor = page[-1].cursor
    assert seen == list(range(1, 11))
    assert await journal.read(lambda connection: events.since(connection, KEY, cursor, 4)) == ([], False)


async def test_a_page_is_bounded_in_bytes_but_never_empty(journal: Database) -> None:
    await fill(journal, "x" * 900, "y" * 900, "z" * 900)
    for budget, expected in ((1, 1), (2000, 2), (10_000, 3)):
        page, more = await journal.read(
            lambda connection: events.since(connection, KEY, Cursor(1, 0), 10, budget)  # noqa: B023
        )
        assert (len(page), more) == (expected, expected < 3)


async def test_of_a_thread_or_a_generation_that_is_not_there_nothing_comes(journal: Database) -> None:
    await fill(journal, "a")
    for key, cursor in ((ThreadKey("ses-1", "none"), Cursor(1, 0)), (KEY, Cursor(2, 0))):
        assert await journal.read(lambda connection: events.since(connection, key, cursor)) == ([], False)  # noqa: B023


@given(
    st.text(),
    st.floats(0, 1e15),
    st.none() | st.integers(0, 2**60),
    st.none() | st.text(min_size=1),
    st.dictionaries(st.text(), st.text() | st.integers(-(2**60), 2**60) | st.none()),
)
def test_a_frame_is_that_of_its_envelope(
    name: str, ts: float, generation: int | None, admission_id: str | None, payload: dict[str, JsonValue]
) -> None:
    event = StoredEvent(2, 7, "notice", ts, encode(payload), generation, admission_id)
    address = Address(name, "ses-1", "main")
    envelope = {**event.envelope(address).model_dump(exclude={"payload"}), "payload": payload}
    assert event.frame(address).json == event_frame(envelope).json


async def test_the_frame_from_disk_is_the_frame_from_memory(journal: Database) -> None:
    tail = await journal.open_tail(KEY)
    await fill(journal, "grüße")
    (live,) = tail.take(Cursor(1, 0), None, 1).frames
    ((event,), _) = await journal.read(lambda connection: events.since(connection, KEY, Cursor(1, 0)))
    address = Address("work", "ses-1", "main")
    assert event.frame(address).json == live.json
    assert orjson.loads(live.json) == {
        "jsonrpc": "2.0",
        "method": "event",
        "params": event.envelope(address).model_dump(exclude_none=True),
    }
    assert event.envelope(address).payload == {"level": "info", "type": "t", "message": "grüße", "hint": ""}
