"""One WebSocket, over real sockets on loopback."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import pytest
import trio
import trio.lowlevel
from trio.testing import wait_all_tasks_blocked
from websockets.trio.client import connect

from hermes_ws.server.life import Life
from hermes_ws.server.limits import Limits
from hermes_ws.wire.negotiation import UNSPOKEN
from tests.server.stage import BLOCK, TOKEN, HungUp, fill_socket, publish, some_frame, stage

TEXT, BINARY, CONT, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10


async def test_a_client_library_gets_the_welcome_first_and_then_its_answers() -> None:
    async with (
        stage() as on,
        connect(on.url, additional_headers={"Authorization": f"Bearer {TOKEN}"}, compression=None) as client,
    ):
        assert json.loads(await client.recv())["params"]["type"] == "gateway.ready"
        await client.send('{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":"ä"}}')
        assert json.loads(await client.recv()) == {"jsonrpc": "2.0", "id": 1, "result": {"a": "ä"}}


async def test_compression_is_not_negotiated_on_loopback() -> None:
    async with (
        stage() as on,
        connect(on.url, additional_headers={"Authorization": f"Bearer {TOKEN}"}) as client,
    ):
        assert client.protocol.extensions == []


async def test_with_compression_requests_answers_and_events_pass_as_without() -> None:
    async with (
        stage(compress=True) as on,
        connect(on.url, additional_headers={"Authorization": f"Bearer {TOKEN}"}) as client,
    ):
        assert client.protocol.extensions
        await client.recv()
        await client.send('{"jsonrpc":"2.0","id":1,"method":"listen"}')
        assert json.loads(await client.recv())["id"] == 1
        for number in range(20):
            publish(on.desk.tail, f"event {number} " + "x" * 2000)
        texts = [json.loads(await client.recv())["params"]["payload"]["message"] for _ in range(20)]
        assert [text.split(" ")[1] for text in texts] == [str(number) for number in range(20)]


async def test_a_message_may_come_in_fragments_with_control_frames_between() -> None:
    async with stage() as on:
        client = await on.opened()
        text = b'{"jsonrpc":"2.0","id":"\xc3\xa4","method":"echo"}'
        await client.send(client.frame(TEXT, text[:24], fin=False))
        await client.send(client.frame(PING, b"hi"))
        await client.send(client.frame(CONT, text[24:26], fin=False))
        await client.send(client.frame(CONT, b"", fin=False))
        await client.send(client.frame(CONT, text[26:]))
        assert await client.receive() == (PONG, b"hi")
        assert (await client.message())["id"] == "ä"


async def test_a_request_byte_by_byte_is_one_request() -> None:
    async with stage() as on:
        client = await on.opened()
        for byte in client.request(1, "echo", text="slowly"):
            await client.send(bytes([byte]))
        assert (await client.message())["result"] == {"text": "slowly"}


async def test_many_requests_in_one_write_are_answered_in_order() -> None:
    async with stage() as on:
        client = await on.opened()
        await client.send(b"".join(client.request(number, "echo") for number in range(200)))
        assert [(await client.message())["id"] for _ in range(200)] == list(range(200))


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        pytest.param([(BINARY, b"{}", {})], 1003, id="binary"),
        pytest.param([(TEXT, b'"\xff"', {})], 1007, id="not-utf-8"),
        pytest.param([(TEXT, b'"\xc3', {"fin": False}), (CONT, b'\x28"', {})], 1007, id="not-utf-8-in-fragments"),
        pytest.param([(TEXT, b"x" * 5000, {})], 1009, id="oversize"),
        pytest.param([(TEXT, b"x" * 3000, {"fin": False}), (CONT, b"x" * 3000, {})], 1009, id="oversize-in-fragments"),
        pytest.param([(TEXT, b"", {"fin": False}), *[(CONT, b"", {"fin": False})] * 20], 1009, id="endless-fragments"),
        pytest.param([(CONT, b"x", {})], 1002, id="continuation-of-nothing"),
        pytest.param([(TEXT, b"x", {"fin": False}), (TEXT, b"x", {})], 1002, id="message-within-a-message"),
        pytest.param([(3, b"x", {})], 1002, id="reserved-opcode"),
        pytest.param([(TEXT, b"{}", {"rsv": 4})], 1002, id="reserved-bit"),
        pytest.param([(TEXT, b"{}", {"masked": False})], 1002, id="unmasked"),
        pytest.param([(PING, b"x" * 126, {})], 1002, id="long-ping"),
        pytest.param([(PING, b"x", {"fin": False})], 1002, id="fragmented-ping"),
        pytest.param([(CLOSE, b"\x03", {})], 1002, id="half-a-close-code"),
        pytest.param([(CLOSE, b"\x03\xed", {})], 1002, id="a-close-code-that-is-never-sent"),
        pytest.param([(CLOSE, b"\x03\xe8", {})], 1000, id="goodbye"),
        pytest.param([(CLOSE, b"", {})], 1005, id="goodbye-without-a-code"),
    ],
)
async def test_what_breaks_a_rule_closes_the_connection_with_its_code(
    frames: list[tuple[int, bytes, dict[str, int]]], code: int
) -> None:
    async with stage(limits=Limits(frame_bytes=4096, fragments=10)) as on:
        client = await on.opened()
        for opcode, payload, how in frames:
            await client.send(client.frame(opcode, payload, **how))
        assert await client.closed_with() == code
        await client.close()
        other = await on.opened()
        await other.call(1, "echo")
        assert (await other.message())["id"] == 1
        assert on.desk.seen == ["echo"]


async def test_the_reason_of_1009_arrives_although_the_client_is_still_sending() -> None:
    async with stage(limits=Limits(frame_bytes=4096)) as on:
        client = await on.opened()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.send, client.frame(TEXT, b"x" * 2_000_000))
            assert await client.closed_with() == 1009


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", -32700),
        ('[{"jsonrpc":"2.0","id":1,"method":"echo"}]', -32600),
        ('{"jsonrpc":"2.0","method":"echo"}', -32600),
        ('{"jsonrpc":"2.0","id":7,"method":"echo","params":[1]}', -32602),
    ],
)
async def test_a_text_that_is_no_request_is_answered_and_the_connection_goes_on(text: str, code: int) -> None:
    async with stage() as on:
        client = await on.opened()
        await client.send(client.frame(TEXT, text.encode()))
        assert (await client.message())["error"]["code"] == code
        await client.call(1, "echo")
        assert (await client.message())["result"] == {}


async def test_a_lone_surrogate_arrives_as_a_replacement_character() -> None:
    """FRAME-01."""
    async with stage() as on:
        client = await on.opened()
        await client.send(client.frame(TEXT, rb'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"t":"a\ud83d"}}'))
        assert (await client.message())["result"] == {"t": "a\ufffd"}


async def test_answers_to_questions_and_cancellations_reach_the_dispatcher() -> None:
    async with stage() as on:
        client = await on.opened()
        await client.send(client.frame(TEXT, b'{"jsonrpc":"2.0","id":"srq-1","result":{"choice":"once"}}'))
        await client.send(client.frame(TEXT, b'{"jsonrpc":"2.0","method":"$/cancel","params":{"id":5}}'))
        await client.send(client.frame(TEXT, b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"?"}}'))
        await client.call(1, "gateway.ping")
        assert (await client.message())["result"] == {"ok": True}
        assert [answer.id for answer in on.desk.answers] == ["srq-1"]
        assert on.desk.cancelled_ids == [5]


async def test_gateway_ping_is_answered_by_the_reader_before_work_that_waits() -> None:
    async with stage() as on:
        client = await on.opened()
        await client.call(1, "hold")
        await client.call(2, "gateway.ping")
        assert (await client.message())["id"] == 2
        on.desk.release()
        assert (await client.message())["id"] == 1
        assert on.desk.seen == ["hold"]


async def test_a_ping_with_parameters_is_left_to_the_dispatcher() -> None:
    async with stage() as on:
        client = await on.opened()
        await client.call(1, "gateway.ping", x=1)
        assert "error" in await client.message()
        assert on.desk.seen == ["gateway.ping"]


async def test_closing_sends_what_was_queued_and_then_the_code() -> None:
    async with stage() as on:
        client = await on.opened()
        await client.call(1, "hold")
        while not on.desk.held:
            await trio.lowlevel.checkpoint()
        connection = on.connection
        on.desk.release()
        connection.close(4503, "the profile is gone " + "ä" * 100)
        connection.close(1000)
        assert connection.life is Life.CLOSING
        assert (await client.message())["result"] == "released"
        assert await client.closed_with() == 4503
        await client.send(client.frame(CLOSE, b"\x11\x97"))
        with pytest.raises(HungUp):
            await client.more()
        await client.close()
        await connection.wait_ended()
        assert on.desk.gone_ids == [connection.id]


async def test_a_client_that_does_not_answer_a_goodbye_is_cut_at_the_deadline() -> None:
    async with stage(limits=Limits(close_deadline=0.05)) as on:
        client = await on.opened()
        connection = on.connection
        connection.close(1001)
        assert await client.closed_with() == 1001
        await connection.wait_ended()
        assert on.listener.connections == ()
        await client.close()


async def test_requests_after_the_goodbye_are_not_looked_at() -> None:
    async with stage() as on:
        client = await on.opened()
        on.connection.close(1001)
        await client.call(1, "echo")
        assert await client.closed_with() == 1001
        await client.close()
        while on.listener.connections:
            await trio.lowlevel.checkpoint()
        assert on.desk.seen == []


async def test_the_server_says_goodbye_to_all_and_waits_for_them() -> None:
    async with stage() as on:
        clients = [await on.opened() for _ in range(3)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(on.listener.say_goodbye, 1001, "shutting down", 5)
            for client in clients:
                assert await client.closed_with() == 1001
                await client.close()
        assert on.listener.connections == ()


async def test_a_goodbye_that_nobody_answers_ends_at_its_deadline() -> None:
    async with stage() as on:
        client = await on.opened()
        await on.listener.say_goodbye(1001, "", 0.05)
        while on.listener.connections:
            await trio.lowlevel.checkpoint()
        await client.close()


async def test_a_client_that_vanishes_ends_its_connection() -> None:
    async with stage() as on:
        client = await on.opened()
        connection = on.connection
        await client.close()
        await connection.wait_ended()
        assert on.desk.gone_ids == [connection.id]
        connection.reply(some_frame())
        connection.close(1000)


async def test_the_server_pings_and_a_client_that_answers_stays() -> None:
    async with stage(limits=Limits(ping_every=0.03)) as on:
        client = await on.opened()
        for _ in range(4):
            opcode, payload = await client.receive()
            assert opcode == PING
            await client.send(client.frame(PONG, payload))
        assert on.connection.life is Life.OPEN


async def test_a_client_that_answers_nothing_is_taken_for_gone() -> None:
    """FLOW-13: half-open."""
    async with stage(limits=Limits(ping_every=0.03)) as on:
        client = await on.opened()
        await on.connection.wait_ended()
        assert on.listener.connections == ()
        await client.close()


async def test_unread_pings_cost_one_pong() -> None:
    """A flood of pings from a client that reads nothing does not pile up."""
    async with stage() as on:
        client = await on.opened(receive_buffer=16384)
        await fill_socket(on.desk, client)
        for _ in range(10):
            await client.send(client.frame(PING, b"x" * 100) * 500)
        await client.call("last", "echo")
        while on.desk.seen[-1] != "echo":
            await trio.lowlevel.checkpoint()
        assert on.connection.statistics().unread_bytes < 4 * BLOCK + 10_000
        pongs = 0
        while True:
            opcode, payload = await client.receive()
            pongs += opcode == PONG
            if opcode == TEXT and b'"last"' in payload[:60]:
                break
        assert pongs < 100


async def test_an_answer_larger_than_a_frame_becomes_an_error() -> None:
    async with stage(limits=Limits(frame_bytes=4096)) as on:
        client = await on.opened()
        await client.call(1, "big", bytes=5000)
        answer = await client.message()
        assert answer["id"] == 1
        assert answer["error"]["data"]["type"] == "limit_reached"


async def test_a_bug_behind_one_connection_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async with stage() as on:
        bad, good = await on.opened(), await on.opened()
        with caplog.at_level(logging.ERROR):
            await bad.call(1, "crash")
            await bad.to_the_end()
            await wait_all_tasks_blocked()
        assert "unforeseen" in caplog.text
        await good.call(1, "echo")
        assert (await good.message())["id"] == 1


async def test_a_path_binds_the_connection_to_its_profile() -> None:
    async with stage() as on:
        client = await on.opened(path="/p/work/ws")
        assert on.connection.profile == "work"
        await client.close()


async def test_what_comes_with_the_handshake_is_read() -> None:
    async with stage() as on:
        client = await on.raw()
        await client.send(client.upgrade_head() + client.request(1, "echo"))
        await client.response(body=False)
        assert (await client.message())["params"]["type"] == "gateway.ready"
        assert (await client.message())["id"] == 1


async def test_the_dispatcher_is_told_the_size_of_a_request() -> None:
    async with stage() as on:
        client = await on.opened()
        text = b'{"jsonrpc":"2.0","id":1,"method":"echo"}'
        await client.send(client.frame(TEXT, text))
        await client.message()
        assert on.desk.sizes == [len(text)]


async def test_who_has_only_just_come_is_not_counted_among_those_who_cannot_answer() -> None:
    """Until it has said what it can do, or shown that it will not say it, nobody knows."""
    async with stage() as on:
        await on.opened()
        silent = on.connection
        assert not silent.askable
        plain = await on.opened()
        (asks,) = set(on.listener.connections) - {silent}
        await plain.call(1, "echo")
        await plain.message()
        assert (silent.askable, asks.askable) == (False, True)
        silent.negotiated = replace(UNSPOKEN, spoken=True)
        assert silent.askable
