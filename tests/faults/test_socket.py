"""Sockets that take little, take nothing, break, or belong to somebody who is gone."""

from __future__ import annotations

import json
import logging
import os
import socket
import time

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_ws.server import outbox as outbox_module
from hermes_ws.server.limits import Limits
from hermes_ws.server.outbox import Outbox
from hermes_ws.wire.frames import Frame
from tests.faults.plan import AGAIN, INTERRUPTED, RESET, Plan
from tests.server.stage import Desk, HungUp, RawClient, new_tail, publish, stage


async def listening(client: RawClient) -> None:
    await client.call("listen", "listen")
    assert (await client.message())["id"] == "listen"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    frames=st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=20),
    takes=st.lists(st.integers(0, 120), max_size=60),
    direct=st.booleans(),
)
def test_however_little_a_socket_takes_every_frame_arrives_whole_and_in_order(
    frames: list[bytes], takes: list[int], direct: bool
) -> None:
    async def main() -> None:
        ours, theirs = trio.socket.socketpair()
        box = Outbox(ours)
        given = iter(takes)
        real = os.write

        def write(fd: int, data: bytes) -> int:
            size = next(given, None)
            if size is None:
                return real(fd, data)
            if size == 0:
                raise BlockingIOError
            return real(fd, bytes(data)[:size])

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(outbox_module.os, "write", write)
            for content in frames:
                if box.idle and direct:
                    box.write_at_once((Frame(content, ""),))
                else:
                    box.put(Frame(content, "").ws)
                box.flush()
            for _ in range(200):
                if box.flush():
                    break
        assert box.idle
        expected = b"".join(Frame(content, "").ws for content in frames)
        got = b""
        while len(got) < len(expected):
            got += await theirs.recv(65536)
        assert got == expected
        ours.close()
        theirs.close()

    trio.run(main)


@pytest.mark.parametrize("fault", [AGAIN, INTERRUPTED], ids=["again", "interrupted"])
async def test_a_write_that_is_put_off_is_made_later(monkeypatch: pytest.MonkeyPatch, fault: object) -> None:
    async with stage() as on:
        client = await on.opened()
        await listening(client)
        plan = Plan({"write": {0: fault, 2: fault}})  # pyright: ignore[reportArgumentType]
        real = os.write

        def write(fd: int, data: bytes) -> int:
            plan.pass_border("write")
            return real(fd, data)

        monkeypatch.setattr(outbox_module.os, "write", write)
        plan.arm()
        for number in range(4):
            publish(on.desk.tail, str(number))
        assert [(await client.message())["params"]["payload"]["message"] for _ in range(4)] == ["0", "1", "2", "3"]
        assert plan.met


async def test_a_socket_that_breaks_ends_its_own_connection_and_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage() as on:
        broken = await on.opened()
        await listening(broken)
        (victim,) = on.listener.connections
        good = await on.opened()
        await listening(good)
        fd = victim.fileno()
        plan = Plan({"write": {0: RESET, 1: RESET}}, armed=True)
        real = os.write

        def write(to: int, data: bytes) -> int:
            if to == fd:
                plan.pass_border("write")
            return real(to, data)

        monkeypatch.setattr(outbox_module.os, "write", write)
        publish(on.desk.tail, "1")
        await victim.wait_ended()
        publish(on.desk.tail, "2")
        assert [(await good.message())["params"]["payload"]["message"] for _ in range(2)] == ["1", "2"]
        assert on.desk.tail.statistics().listeners == 1


async def test_a_stalled_client_is_let_go_and_a_second_one_never_notices(caplog: pytest.LogCaptureFixture) -> None:
    """Case FLOW-01, FLOW-11, FLOW-14: one log line, with what waits and never what it is."""
    async with stage(limits=Limits(send_deadline=0.3)) as on:
        stalled = await on.opened(receive_buffer=16384)
        await listening(stalled)
        (victim,) = on.listener.connections
        good = await on.opened()
        await listening(good)
        with caplog.at_level(logging.INFO):
            ended = False

            async def watch() -> None:
                nonlocal ended
                await victim.wait_ended()
                ended = True

            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch)
                number = 0
                while not ended:
                    publish(on.desk.tail, f"{number} canary " + "x" * 20_000)
                    text = (await good.message())["params"]["payload"]["message"]
                    assert text.startswith(f"{number} ")
                    number += 1
        (line,) = [each for each in caplog.messages if "took nothing" in each]
        assert "canary" not in line
        publish(on.desk.tail, "goes on")
        assert (await good.message())["params"]["payload"]["message"] == "goes on"
        assert on.desk.tail.statistics().bytes < 3_000_000


async def test_a_client_whose_machine_is_gone_is_noticed_by_its_silence() -> None:
    """Case FLOW-13, RES-08: no pong ever comes; one ping waits, not a thousand."""
    async with stage(limits=Limits(ping_every=0.1)) as on:
        client = await on.opened()
        await listening(client)
        (connection,) = on.listener.connections
        for _ in range(50):
            publish(on.desk.tail, "still publishing")
        with trio.fail_after(20):
            await connection.wait_ended()
        pings = 0
        try:
            while True:
                opcode, _ = await client.receive()
                pings += opcode == 9
        except HungUp:
            pass
        assert 1 <= pings <= 3
        assert on.desk.tail.statistics().listeners == 0


async def test_one_that_floods_is_not_taken_for_dead() -> None:
    """Case FLOW-15."""
    async with stage(limits=Limits(ping_every=0.05)) as on:
        client = await on.opened()

        async def answers() -> int:
            got = 0
            while got < 3000:
                opcode, payload = await client.receive()
                if opcode == 1 and "id" in json.loads(payload):
                    got += 1
            return got

        async with trio.open_nursery() as nursery:

            async def flood() -> None:
                for number in range(3000):
                    await client.call(number, "echo")

            nursery.start_soon(flood)
            assert await answers() == 3000
        assert on.listener.statistics().connections == 1


async def test_half_a_frame_and_then_nothing_holds_nobody_up() -> None:
    async with stage(limits=Limits(ping_every=0.1)) as on:
        half = await on.opened()
        (victim,) = on.listener.connections
        good = await on.opened()
        await half.send(RawClient.frame(1, b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{}}')[:20])
        await good.call(1, "echo")
        assert (await good.message())["id"] == 1
        with trio.fail_after(20):
            await victim.wait_ended()


async def test_a_client_that_resets_in_the_middle_of_a_catch_up_leaves_nothing_behind() -> None:
    tail = new_tail()
    for number in range(1500):
        publish(tail, f"{number} " + "x" * 1000)
    async with stage(Desk(tail=tail)) as on:
        client = await on.opened(receive_buffer=8192)
        await client.call(1, "listen", after="1:0")
        await client.message()
        (connection,) = on.listener.connections
        client.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.stream.socket.close()
        with trio.fail_after(20):
            await connection.wait_ended()
        assert tail.statistics().listeners == 0


async def test_a_loop_that_was_held_up_takes_nobody_for_dead() -> None:
    """Case FLOW-03: the answer to the ping came while the loop stood still."""
    async with stage(limits=Limits(ping_every=0.2)) as on:
        client = await on.opened()
        (connection,) = on.listener.connections
        for _ in range(4):
            opcode, payload = await client.receive()
            assert opcode == 9
            # The answer is in the socket; then nothing of the server runs until the next two pings are due.
            os.write(client.stream.socket.fileno(), RawClient.frame(10, payload))
            time.sleep(0.5)  # noqa: ASYNC251
        await client.call(1, "echo")
        assert (await client.message())["id"] == 1
        assert connection.fileno() >= 0
