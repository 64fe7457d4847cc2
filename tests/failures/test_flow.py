"""FLOW: back-pressure, slow clients, a blocked loop, keep-alive."""

from __future__ import annotations

import json
import logging
import time

import pytest
import trio

from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.server.limits import Limits
from tests.e2e.process import Server
from tests.server.stage import publish, stage
from tests.session.house import House, eventually, new_session, say

FREE = "approvals:\n  mode: auto\n"


async def test_flow_02_a_flood_of_output_does_not_keep_an_interrupt_out(house: House) -> None:
    """A command prints without end; the interrupt is taken at once and ends it."""
    house.home("default", config=FREE + "terminal:\n  output_bytes: 65536\n")
    async with house.served():
        _, thread, viewer = await new_session(await house.runtime())
        await say(thread, "/do run yes flooding", "one")
        await viewer.until("tool.progress")
        assert thread.interrupt(1).outcome == "accepted"
        done = await viewer.until("execution.finished")
        assert done["payload"]["outcome"] == "interrupted"
        assert thread.tail.statistics().bytes < 4_000_000


async def test_flow_03_a_held_loop_neither_loses_what_is_told_nor_cuts_a_client(runtime: ProfileRuntime) -> None:
    """The writer's thread never waits for the loop: what it commits meanwhile is there when the loop goes on."""
    _, thread, viewer = await new_session(runtime)
    await say(thread, "/do say hello", "one")
    for _ in range(5):
        time.sleep(0.1)  # noqa: ASYNC251
        await trio.lowlevel.checkpoint()
    assert (await viewer.until("execution.finished"))["payload"]["outcome"] == "completed"


def test_flow_04_long_waits_of_several_agents_leave_the_server_answering(shared_server: Server) -> None:
    """Three turns wait for a minute; a ping is answered long before any of them."""
    client = shared_server.connect()
    sessions = [client.call("session.create")["session_id"] for _ in range(3)]
    for session_id in sessions:
        client.submit(session_id, "/do wait 60")
    for session_id in sessions:
        client.until(lambda e, id=session_id: e["type"] == "execution.started" and e["session_id"] == id)
    for _ in range(5):
        assert client.call("gateway.ping") is not None
    running = [client.call("thread.state", session_id=each)["execution"] for each in sessions]
    assert all(each is not None for each in running)
    for session_id, execution in zip(sessions, running, strict=True):
        generation = execution["execution_generation"]
        assert (
            client.call("session.interrupt", session_id=session_id, execution_generation=generation)["outcome"]
            == "accepted"
        )
    client.close()


def test_flow_10_a_burst_cuts_nobody_off_on_any_socket(shared_server: Server) -> None:
    """Five hundred small pieces at once over TCP, to a client that reads at its own pace and one that reads late."""
    quick, late = shared_server.connect(), shared_server.connect()
    session_id = quick.call("session.create")["session_id"]
    late.call("session.resume", session_id=session_id)
    admitted = quick.submit(session_id, "/do stream 500 0 5")
    assert quick.finished(admitted["admission_id"])["outcome"] == "completed"
    assert late.finished(admitted["admission_id"])["outcome"] == "completed"
    whole = []
    for client in (quick, late):
        (complete,) = [
            e["payload"]["text"]
            for e in client.events
            if e["type"] == "message.complete" and e["payload"]["role"] == "assistant"
        ]
        pieces = "".join(e["payload"]["text"] for e in client.events if e["type"] == "message.delta")
        assert complete.startswith(pieces)
        whole.append(complete)
    assert whole[0] == whole[1]
    assert len(whole[0]) >= 2500
    quick.close()
    late.close()


async def test_flow_11_a_subscription_that_was_replaced_cannot_end_the_new_one() -> None:
    """Subscribing again and again, while events come; each is delivered once."""
    async with stage() as on:
        client = await on.opened()
        for number in range(50):
            await client.call(number, "listen", after=f"1:{number}")
            assert (await client.message())["id"] == number
            publish(on.desk.tail, str(number))
            assert (await client.message())["params"]["payload"]["message"] == str(number)
        assert on.desk.tail.statistics().listeners == 1


async def test_flow_12_every_request_is_answered_while_events_pile_up() -> None:
    """A client that lets megabytes of events wait gets each of its replies, and before the bulk of them."""
    async with stage() as on:
        client = await on.opened(receive_buffer=16384)
        await client.call("listen", "listen")
        assert (await client.message())["id"] == "listen"
        for number in range(150):
            publish(on.desk.tail, f"{number} " + "x" * 10_000)
        for number in range(100):
            await client.call(number, "echo")
        got: set[int] = set()
        seen = 0
        while len(got) < 100:
            message = await client.message()
            if "id" in message:
                got.add(message["id"])
            else:
                seen += 1
        assert got == set(range(100))
        assert seen < 150


async def test_flow_14_what_overflowed_is_in_the_log_and_what_was_in_it_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The line names the connection and how much waits."""
    async with stage(limits=Limits(send_deadline=0.2)) as on:
        client = await on.opened(receive_buffer=8192)
        await client.call(1, "listen")
        await client.message()
        (connection,) = on.listener.connections
        with caplog.at_level(logging.INFO):
            for _ in range(150):
                publish(on.desk.tail, "a private sentence " + "x" * 10_000)
            await connection.wait_ended()
        (line,) = [each for each in caplog.messages if connection.id in each]
        assert "threads wait" in line
        assert "private" not in caplog.text


async def test_flow_16_a_reader_that_is_told_to_hurry_loses_nothing() -> None:
    """The one reader task of a connection is never cancelled for a time-out: requests in tiny pieces all arrive."""
    async with stage() as on:
        client = await on.opened()
        data = b"".join(client.request(number, "echo", text="ü" * 20) for number in range(20))
        for first in range(0, len(data), 7):
            await client.send(data[first : first + 7])
            await trio.lowlevel.checkpoint()
        assert [(await client.message())["id"] for _ in range(20)] == list(range(20))
        assert json.dumps(on.desk.seen).count("echo") == 20
        await eventually(lambda: on.connection.statistics().owed == 0)
