"""What a connection is told of its threads, over real sockets."""

from __future__ import annotations

import json
from dataclasses import replace

import trio
import trio.lowlevel
from trio.testing import wait_all_tasks_blocked

from hermes_ws.contract.errors import StorageUnavailable
from hermes_ws.contract.events import Notice
from hermes_ws.journal.tail import LiveMarks
from hermes_ws.server.delivery import BUDGET
from hermes_ws.server.ports import Page
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import event_frame
from hermes_ws.wire.negotiation import UNSPOKEN
from tests.server.stage import ADDRESS, Desk, RawClient, Stage, new_tail, no_page, publish, stage, stored


async def test_the_reply_comes_before_the_first_event() -> None:
    async with stage() as on:
        for number in range(3):
            publish(on.desk.tail, str(number))
        client = await on.opened()
        await client.call(1, "listen", after="1:0")
        assert (await client.message())["id"] == 1
        assert [await _text(client) for _ in range(3)] == ["0", "1", "2"]


async def test_events_reach_an_idle_client_without_its_writer_being_woken() -> None:
    async with stage() as on:
        client = await _listening(on)
        await wait_all_tasks_blocked()
        publish(on.desk.tail, "now")
        # Nothing was awaited since: what is in the socket was put there by `publish` itself.
        with trio.fail_after(5):
            assert await _text(client) == "now"
        assert on.connection.statistics().delivery.ready == 0


async def test_answers_overtake_events_of_a_client_that_is_behind() -> None:
    async with stage() as on:
        client = await _listening(on, receive_buffer=16384)
        for number in range(200):
            publish(on.desk.tail, f"{number} " + "x" * 10_000)
        await client.call("urgent", "echo")
        while "echo" not in on.desk.seen:
            await trio.lowlevel.checkpoint()
        before = 0
        while (await client.message()).get("id") != "urgent":
            before += 1
        assert before < 150
        assert [int((await _text(client)).split(" ")[0]) for _ in range(200 - before)] == list(range(before, 200))


async def test_what_is_told_in_passing_reaches_those_who_listen_and_nobody_who_comes_later() -> None:
    async with stage() as on:
        early = await _listening(on)
        on.desk.tail.tell("notice", Notice(level="info", type="test", message="passing"))
        late = await _listening(on)
        publish(on.desk.tail, "stays")
        told = (await early.message())["params"]
        assert told["payload"]["message"] == "passing"
        assert "cursor" not in told
        assert [await _text(early), await _text(late)] == ["stays", "stays"]


async def test_a_slow_client_does_not_disturb_a_fast_one() -> None:
    """FLOW-11."""
    async with stage() as on:
        await _listening(on, receive_buffer=16384)
        fast = await _listening(on)
        for number in range(300):
            publish(on.desk.tail, f"{number} " + "x" * 10_000)
            assert (await _text(fast)).startswith(f"{number} ")


async def test_ten_megabytes_that_nobody_reads_take_no_memory_of_their_own() -> None:
    async with stage() as on:
        await _listening(on, receive_buffer=16384)
        for _ in range(1000):
            publish(on.desk.tail, "x" * 10_000)
        statistics = on.connection.statistics()
        assert statistics.unread_bytes == 0
        assert on.desk.tail.statistics().bytes < 3_000_000


async def test_a_burst_of_small_events_cuts_nobody_off() -> None:
    """FLOW-09."""
    async with stage() as on:
        client = await _listening(on)
        for number in range(1500):
            publish(on.desk.tail, str(number))
        assert [await _text(client) for _ in range(1500)] == [str(number) for number in range(1500)]


async def test_what_is_older_than_memory_comes_from_the_database_in_the_same_frames() -> None:
    history = [stored(seq, f"event {seq}") for seq in range(1, 501)]

    async def read(after: Cursor, budget: int) -> Page:
        await trio.lowlevel.checkpoint()
        some = history[after.seq : after.seq + 70]
        return Page(tuple(each.frame(ADDRESS) for each in some), Cursor(1, after.seq + len(some)))

    tail = new_tail(events=16)
    for each in history:
        tail.publish(each)
    async with stage(Desk(tail=tail, read=read)) as on:
        client = await on.opened()
        await client.call(1, "listen", after="1:0")
        await client.message()
        publish(tail, "event 501")
        events = [(await client.message())["params"] for _ in range(501)]
        assert [event["seq"] for event in events] == list(range(1, 502))
        assert [event["payload"]["message"] for event in events] == [f"event {seq}" for seq in range(1, 502)]


async def test_answers_go_on_while_the_database_is_slow() -> None:
    arrived, go_on = trio.Event(), trio.Event()

    async def read(after: Cursor, budget: int) -> Page:
        arrived.set()
        await go_on.wait()
        return Page((stored(1, "late").frame(ADDRESS),), Cursor(1, 1))

    tail = new_tail(events=1)
    publish(tail)
    publish(tail, "second")
    async with stage(Desk(tail=tail, read=read)) as on:
        client = await on.opened()
        await client.call(1, "listen", after="1:0")
        await client.message()
        await arrived.wait()
        await client.call(2, "echo")
        assert (await client.message())["id"] == 2
        go_on.set()
        assert [await _text(client), await _text(client)] == ["late", "second"]


async def test_a_database_that_cannot_be_read_closes_the_connection_so_that_it_resumes() -> None:
    async def read(after: Cursor, budget: int) -> Page:
        raise StorageUnavailable("The disk is gone.")

    tail = new_tail(events=1)
    publish(tail)
    publish(tail)
    async with stage(Desk(tail=tail, read=read)) as on:
        client = await on.opened()
        await client.call(1, "listen", after="1:0")
        assert await client.closed_with() == 4400


async def test_a_journal_that_does_not_go_on_closes_the_connection_instead_of_asking_for_ever() -> None:
    async def read(after: Cursor, budget: int) -> Page:
        return Page((), after)

    tail = new_tail(events=1)
    publish(tail)
    publish(tail)
    async with stage(Desk(tail=tail, read=read)) as on:
        client = await on.opened()
        await client.call(1, "listen", after="1:0")
        assert await client.closed_with() == 4400


async def test_subscribing_again_moves_the_subscription() -> None:
    async with stage() as on:
        for number in range(3):
            publish(on.desk.tail, str(number))
        client = await _listening(on)
        await client.call(2, "listen", after="1:1")
        assert (await client.message())["id"] == 2
        assert [await _text(client), await _text(client)] == ["1", "2"]
        publish(on.desk.tail, "3")
        assert await _text(client) == "3"
        assert on.connection.subscriptions() == (ADDRESS,)
        assert on.desk.tail.statistics().listeners == 1


async def test_nothing_comes_after_unsubscribing() -> None:
    async with stage() as on:
        client = await _listening(on)
        assert on.connection.unsubscribe(ADDRESS)
        assert not on.connection.unsubscribe(ADDRESS)
        publish(on.desk.tail)
        await client.call(2, "echo")
        assert (await client.message())["id"] == 2
        assert on.desk.tail.statistics().listeners == 0


async def test_a_connection_that_ends_leaves_no_listener_behind() -> None:
    async with stage() as on:
        client = await _listening(on)
        connection = on.connection
        await client.close()
        await connection.wait_ended()
        assert on.desk.tail.statistics().listeners == 0
        publish(on.desk.tail)


async def test_a_closing_connection_takes_no_subscription() -> None:
    async with stage() as on:
        await on.opened()
        connection = on.connection
        connection.close(1001)
        connection.subscribe(on.desk.tail, Cursor(1, 0), LiveMarks(), no_page)
        assert connection.subscriptions() == ()


async def test_the_short_way_to_the_socket_leaves_the_farewell_of_a_thread_to_come() -> None:
    async with stage() as on:
        client = await _listening(on)
        tail = on.desk.tail
        publish(tail, "last words")
        tail.farewell = event_frame({"type": "session.closed", "ts": 1.0, "payload": {}})
        tail.notify()
        assert await _text(client) == "last words"
        assert (await client.message())["params"]["type"] == "session.closed"
        assert on.connection.subscriptions() == ()


async def test_types_that_a_client_opted_out_of_are_left_out_and_the_rest_goes_on() -> None:
    async with stage() as on:
        client = await _listening(on)
        on.connection.negotiated = replace(UNSPOKEN, opt_out=frozenset({"usage.update"}))
        publish(on.desk.tail, "1")
        publish(on.desk.tail, "2", "usage.update")
        publish(on.desk.tail, "3")
        assert [await _text(client), await _text(client)] == ["1", "3"]


async def test_a_client_that_negotiated_batches_gets_arrays_of_events_and_single_answers() -> None:
    async with stage() as on:
        client = await on.opened()
        on.connection.negotiated = replace(UNSPOKEN, batch=True)
        for number in range(40):
            publish(on.desk.tail, f"{number} " + "x" * 5000)
        await client.call(1, "listen", after="1:0")
        assert (await client.message())["id"] == 1
        got: list[str] = []
        while len(got) < 40:
            opcode, payload = await client.receive()
            assert opcode == 1
            assert len(payload) <= BUDGET + 6000
            batch = json.loads(payload)
            assert isinstance(batch, list)
            got += [each["params"]["payload"]["message"].split(" ")[0] for each in batch]
        assert got == [str(number) for number in range(40)]


async def test_live_text_comes_as_it_grows() -> None:
    async with stage() as on:
        client = await _listening(on)
        tail = on.desk.tail
        tail.live_begin("message.delta", "m-1")
        for piece in ("Hel", "lo, ", "world"):
            tail.live_append("message.delta", "m-1", piece)
        pieces = [(await client.message())["params"]["payload"] for _ in range(3)]
        assert [(piece["offset"], piece["text"]) for piece in pieces] == [(0, "Hel"), (3, "lo, "), (7, "world")]


async def test_live_text_is_not_sent_to_a_client_that_wants_none() -> None:
    async with stage() as on:
        client = await _listening(on)
        on.connection.negotiated = replace(UNSPOKEN, live="none")
        tail = on.desk.tail
        tail.live_begin("message.delta", "m-1")
        tail.live_append("message.delta", "m-1", "Hello")
        publish(tail, "committed")
        assert await _text(client) == "committed"


async def test_coalesced_live_text_arrives_over_a_socket_by_itself() -> None:
    async with stage() as on:
        client = await _listening(on)
        on.connection.negotiated = replace(UNSPOKEN, live="coalesced")
        tail = on.desk.tail
        tail.live_begin("message.delta", "m-1")
        for piece in ("a", "b", "c", "d"):
            tail.live_append("message.delta", "m-1", piece)
        first = (await client.message())["params"]["payload"]
        second = (await client.message())["params"]["payload"]
        assert (first["text"], second["text"]) == ("a", "bcd")


async def _listening(on: Stage, *, receive_buffer: int | None = None) -> RawClient:
    client = await on.opened(receive_buffer=receive_buffer)
    await client.call("listen", "listen")
    assert (await client.message())["id"] == "listen"
    return client


async def _text(client: RawClient) -> str:
    return (await client.message())["params"]["payload"]["message"]
