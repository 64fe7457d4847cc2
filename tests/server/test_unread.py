"""What becomes of output that a client does not read, over real sockets."""

from __future__ import annotations

import trio
import trio.lowlevel

from hermes_ws.server.life import Life
from hermes_ws.server.limits import Limits
from tests.server.stage import BLOCK, fill_socket, some_frame, stage

TEXT, BINARY, CONT, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10


async def test_requests_are_read_while_output_is_blocked() -> None:
    """FLOW-02."""
    async with stage() as on:
        client = await on.opened(receive_buffer=16384)
        await fill_socket(on.desk, client)
        await client.call("stop", "hold")
        while not on.desk.held:
            await trio.lowlevel.checkpoint()
        on.desk.release()
        for _ in range(4):
            assert len((await client.message())["result"]) == BLOCK
        assert (await client.message())["id"] == "stop"


async def test_a_client_that_takes_nothing_is_closed_at_the_send_deadline_and_told_so() -> None:
    """FLOW-01: the deadline closes that connection only."""
    async with stage(limits=Limits(send_deadline=0.1)) as on:
        slow = await on.opened(receive_buffer=16384)
        connection = on.connection
        fast = await on.opened()
        await fill_socket(on.desk, slow)
        for number in range(5):
            await fast.call(number, "echo")
            assert (await fast.message())["id"] == number
        await connection.wait_ended()
        assert on.desk.gone_ids == [connection.id]
        assert await slow.closed_with() == 4412
        await fast.call("after", "echo")
        assert (await fast.message())["id"] == "after"


async def test_a_slow_client_that_keeps_reading_is_not_closed() -> None:
    async with stage(limits=Limits(send_deadline=0.3)) as on:
        client = await on.opened(receive_buffer=16384)
        await client.call(1, "big", bytes=1_000_000)
        began = trio.current_time()
        got = 0
        while trio.current_time() - began < 0.6:
            got += len(await client.stream.receive_some(8192))
            await trio.sleep(0.02)
        assert on.connection.life is Life.OPEN
        assert got < 1_000_000


async def test_answers_that_nobody_reads_are_bounded_in_bytes() -> None:
    """FLOW-12: a request is answered, if only with a refusal."""
    async with stage(limits=Limits(unread_bytes=2_000_000)) as on:
        client = await on.opened(receive_buffer=16384)
        for number in range(30):
            await client.call(number, "big", bytes=500_000)
        await client.call("last", "gateway.ping")
        answers = [await client.message() for _ in range(31)]
        assert [answer["id"] for answer in answers] == [*range(30), "last"]
        refused = [answer["error"]["data"] for answer in answers if "error" in answer]
        assert refused
        assert all(each["type"] == "overloaded" and each["retry_after_s"] > 0 for each in refused)


async def test_a_client_that_asks_and_never_reads_is_closed_with_4429() -> None:
    async with stage(limits=Limits(unread_frames=50)) as on:
        client = await on.opened(receive_buffer=16384)
        await fill_socket(on.desk, client)
        await client.send(b"".join(client.request(number, "gateway.ping") for number in range(100)))
        assert await client.closed_with() == 4429


async def test_notifications_that_nobody_reads_are_bounded() -> None:
    async with stage(limits=Limits(unread_frames=50)) as on:
        client = await on.opened(receive_buffer=16384)
        connection = on.connection
        await fill_socket(on.desk, client)
        for _ in range(60):
            connection.notify(some_frame())
        assert await client.closed_with() == 4429
