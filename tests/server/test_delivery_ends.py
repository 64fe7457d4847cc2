"""A thread that is replaced or deleted while connections follow it."""

from __future__ import annotations

import trio
import trio.testing

from hermes_ws.contract.errors import ThreadUnknown
from hermes_ws.journal.stored_event import StoredEvent
from hermes_ws.journal.tail import ThreadTail
from hermes_ws.server.ports import Page
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import Frame, event_frame
from tests.server.stage import ADDRESS, Desk, RawClient, new_tail, publish, stage, stored


def in_generation(generation: int, seq: int, type: str = "notice") -> StoredEvent:
    return StoredEvent(generation, seq, type, 1.0, b'{"generation":%d}' % generation)


def replace(tail: ThreadTail, generation: int = 2) -> None:
    """What the journal does when it is replaced: the first event of the new generation says so."""
    tail.publish(in_generation(generation, 1, "thread.rebased"))
    tail.publish(in_generation(generation, 2))
    tail.notify()


FAREWELL: Frame = event_frame({"type": "session.closed", "session_id": "s-1", "ts": 1.0, "payload": {"deleted": True}})


async def listening(client: RawClient, after: str) -> None:
    await client.call(1, "listen", after=after)
    assert (await client.message())["id"] == 1


async def told(client: RawClient, count: int) -> list[tuple[str, str | None]]:
    messages = [(await client.message())["params"] for _ in range(count)]
    return [(each["type"], each.get("cursor")) for each in messages]


async def test_one_that_is_up_to_date_is_rebased_and_gets_the_new_generation_from_its_beginning() -> None:
    async with stage() as on:
        publish(on.desk.tail)
        client = await on.opened()
        await listening(client, "1:0")
        assert await told(client, 1) == [("notice", "1:1")]
        replace(on.desk.tail)
        assert await told(client, 2) == [("thread.rebased", "2:1"), ("notice", "2:2")]


async def test_one_that_reads_the_database_meanwhile_is_rebased_and_not_cut_off() -> None:
    arrived, go_on = trio.Event(), trio.Event()
    tail = new_tail(events=1)
    for _ in range(3):
        publish(tail)

    async def read(after: Cursor, budget: int) -> Page:
        arrived.set()
        await go_on.wait()
        return Page((in_generation(2, 1, "thread.rebased").frame(ADDRESS),), Cursor(2, 1))

    async with stage(Desk(tail=tail, read=read)) as on:
        client = await on.opened()
        await listening(client, "1:0")
        await arrived.wait()
        replace(tail)
        go_on.set()
        assert await told(client, 2) == [("thread.rebased", "2:1"), ("notice", "2:2")]


async def test_a_replacement_that_the_database_tells_first_repeats_nothing() -> None:
    """The reader sees the commit before it is published."""
    tail = new_tail(events=1)
    for _ in range(3):
        publish(tail)

    async def read(after: Cursor, budget: int) -> Page:
        frames = tuple(
            in_generation(2, seq, "thread.rebased" if seq == 1 else "notice").frame(ADDRESS) for seq in (1, 2)
        )
        return Page(frames, Cursor(2, 2))

    async with stage(Desk(tail=tail, read=read)) as on:
        client = await on.opened()
        await listening(client, "1:0")
        assert await told(client, 2) == [("thread.rebased", "2:1"), ("notice", "2:2")]
        replace(tail)
        tail.publish(in_generation(2, 3))
        tail.notify()
        assert await told(client, 1) == [("notice", "2:3")]


async def test_live_text_of_before_is_not_continued_after_a_replacement() -> None:
    async with stage() as on:
        tail = on.desk.tail
        publish(tail)
        client = await on.opened()
        await listening(client, "1:1")
        tail.live_begin("message.delta", "m-1")
        tail.live_append("message.delta", "m-1", "old text")
        assert (await client.message())["params"]["payload"]["text"] == "old text"
        tail.live_end("message.delta", "m-1")
        replace(tail)
        tail.live_begin("message.delta", "m-1")
        tail.live_append("message.delta", "m-1", "new")
        assert await told(client, 2) == [("thread.rebased", "2:1"), ("notice", "2:2")]
        assert (await client.message())["params"]["payload"] == {"message_id": "m-1", "offset": 0, "text": "new"}


async def test_a_deleted_thread_says_so_last_and_lets_its_subscribers_go() -> None:
    async with stage() as on:
        client = await on.opened()
        await listening(client, "1:0")
        publish(on.desk.tail)
        on.desk.tail.end(FAREWELL)
        assert [type for type, _ in await told(client, 2)] == ["notice", "session.closed"]
        assert on.connection.subscriptions() == ()
        assert on.desk.tail.statistics().listeners == 0
        await client.call(2, "echo")
        assert (await client.message())["id"] == 2


async def test_a_thread_deleted_while_one_reads_the_database_does_not_cut_the_connection() -> None:
    for end_first in (True, False):
        arrived, go_on = trio.Event(), trio.Event()
        tail = new_tail(events=1)
        for _ in range(3):
            publish(tail)

        async def read(after: Cursor, budget: int, arrived: trio.Event = arrived, go_on: trio.Event = go_on) -> Page:
            arrived.set()
            await go_on.wait()
            raise ThreadUnknown("It is gone.")

        async with stage(Desk(tail=tail, read=read)) as on:
            client = await on.opened()
            await listening(client, "1:0")
            await arrived.wait()
            if end_first:
                tail.end(FAREWELL)
            go_on.set()
            await trio.testing.wait_all_tasks_blocked(0.01)
            if not end_first:
                tail.end(FAREWELL)
            assert [type for type, _ in await told(client, 1)] == ["session.closed"]
            await client.call(2, "echo")
            assert (await client.message())["id"] == 2


async def test_who_subscribes_to_a_thread_that_has_just_ended_is_told_so() -> None:
    async with stage() as on:
        publish(on.desk.tail, "kept in memory")
        on.desk.tail.end(FAREWELL)
        client = await on.opened()
        await listening(client, "1:0")
        assert [type for type, _ in await told(client, 2)] == ["notice", "session.closed"]


async def test_a_page_that_is_ahead_of_memory_is_given_once() -> None:
    """The database tells what was committed before it is published."""
    tail = new_tail(events=1)
    for _ in range(3):
        publish(tail)

    async def read(after: Cursor, budget: int) -> Page:
        return Page(tuple(stored(seq, str(seq)).frame(ADDRESS) for seq in range(1, 6)), Cursor(1, 5))

    async with stage(Desk(tail=tail, read=read)) as on:
        client = await on.opened()
        await listening(client, "1:0")
        assert await told(client, 5) == [("notice", f"1:{seq}") for seq in range(1, 6)]
        for _ in range(3):
            publish(tail)
        assert await told(client, 1) == [("notice", "1:6")]
