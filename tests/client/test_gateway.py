"""Calls and subscriptions over one connection."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from hermes_ws.client.connect import connect
from hermes_ws.client.failures import (
    ConnectFailed,
    ConnectionLost,
    NotSent,
    OutcomeUnknown,
    RemoteError,
    ReplyRefused,
    TooLarge,
)
from hermes_ws.client.gateway import Gateway
from hermes_ws.contract.errors import SessionBusy
from hermes_ws.contract.events import Envelope
from hermes_ws.contract.methods.connection import GATEWAY_PING
from hermes_ws.contract.methods.prompts import PROMPT_SUBMIT, SubmitParams
from hermes_ws.contract.methods.runtime import RUNTIME_DESCRIBE
from hermes_ws.contract.methods.sessions import SESSION_CREATE, SESSION_RESUME, CreateParams, ResumeParams
from hermes_ws.contract.methods.threads import SubscribeParams
from hermes_ws.contract.model import Empty
from tests.client.peer import TOKEN, Peer, peer_at


def over(peer: Peer, backend: str, body: Callable[[Gateway], Awaitable[None]], **options: object) -> None:
    """Run `body` with a connection to the peer, under the backend."""

    async def main() -> None:
        with anyio.fail_after(30):
            async with connect(peer.url, token=TOKEN, **options) as gateway:  # type: ignore[arg-type]
                await body(gateway)

    anyio.run(main, backend=backend)


def test_a_call_gives_the_typed_result(peer: Peer, backend: str) -> None:
    async def body(gateway: Gateway) -> None:
        described = await gateway.call(RUNTIME_DESCRIBE, Empty())
        assert described.pid == 4242
        assert gateway.ready.instance_id == "instance-1"

    over(peer, backend, body)


def test_what_a_client_can_do_is_said_once_and_in_full(peer: Peer, backend: str) -> None:
    async def body(gateway: Gateway) -> None:
        await gateway.call(GATEWAY_PING, Empty())

    over(peer, backend, body, server_requests=["approval"], live="coalesced", client_name="tester")
    (said,) = peer.declared
    assert said["client"]["name"] == "tester"
    assert said["server_requests"] == ["approval"]
    assert said["live"] == "coalesced"


def test_a_refusal_keeps_its_type_and_its_hint(peer: Peer, backend: str) -> None:
    peer.refuse["session.create"] = SessionBusy("It is busy.", hint="Wait.", active=3)

    async def body(gateway: Gateway) -> None:
        with pytest.raises(RemoteError) as caught:
            await gateway.call(SESSION_CREATE, CreateParams())
        assert (caught.value.type, caught.value.code, caught.value.hint) == ("session_busy", 4009, "Wait.")
        assert caught.value.data["active"] == 3
        await gateway.call(GATEWAY_PING, Empty())

    over(peer, backend, body)


def test_a_lost_reply_leaves_the_outcome_unknown_and_nothing_is_sent_again(peer: Peer, backend: str) -> None:
    """Case TURN-07."""
    peer.lose_reply_of.add("session.create")

    async def body(gateway: Gateway) -> None:
        with pytest.raises(OutcomeUnknown, match=r"session\.create"):
            await gateway.call(SESSION_CREATE, CreateParams())
        assert isinstance(gateway.lost, ConnectionLost)
        with pytest.raises(NotSent):
            await gateway.call(GATEWAY_PING, Empty())

    over(peer, backend, body)
    assert len(peer.asked("session.create")) == 1


def test_a_reply_that_does_not_come_in_time_is_unknown_and_the_connection_goes_on(peer: Peer, backend: str) -> None:
    async def body(gateway: Gateway) -> None:
        # The peer cannot answer while its lock is held.
        with peer.lock, pytest.raises(OutcomeUnknown, match="no reply came"):
            await gateway.call(RUNTIME_DESCRIBE, Empty(), deadline_s=0.2)
        assert (await gateway.call(GATEWAY_PING, Empty())).ok

    over(peer, backend, body)


def test_a_blank_identifier_in_a_reply_is_refused(peer: Peer, backend: str) -> None:
    peer.doctor = lambda method, result: result | {"session_id": " "} if method == "session.create" else result

    async def body(gateway: Gateway) -> None:
        with pytest.raises(ReplyRefused, match="session_id is blank"):
            await gateway.create(CreateParams())

    over(peer, backend, body)


def test_a_reply_of_another_shape_is_refused_by_its_path(peer: Peer, backend: str) -> None:
    peer.doctor = lambda method, result: result | {"pid": "many"} if method == "runtime.describe" else result

    async def body(gateway: Gateway) -> None:
        with pytest.raises(ReplyRefused, match="pid"):
            await gateway.call(RUNTIME_DESCRIBE, Empty())

    over(peer, backend, body)


def test_keys_that_a_newer_server_adds_are_passed_over(peer: Peer, backend: str) -> None:
    peer.doctor = lambda _, result: result | {"added_later": [1]}

    async def body(gateway: Gateway) -> None:
        assert (await gateway.call(RUNTIME_DESCRIBE, Empty())).launch == "default"

    over(peer, backend, body)


def test_a_request_beyond_the_frame_limit_is_not_sent(peer: Peer, backend: str) -> None:
    async def body(gateway: Gateway) -> None:
        with pytest.raises(TooLarge):
            await gateway.call(PROMPT_SUBMIT, SubmitParams(session_id="s", input_id="i", text="x" * 200_000))
        await gateway.call(GATEWAY_PING, Empty())

    over(peer, backend, body)
    assert peer.asked("prompt.submit") == []


def test_a_cancelled_call_leaves_whole_frames_on_the_socket(peer: Peer, backend: str) -> None:
    async def body(gateway: Gateway) -> None:
        for _ in range(20):
            with anyio.move_on_after(0):
                await gateway.call(RUNTIME_DESCRIBE, Empty())
            with anyio.move_on_after(0.001):
                await gateway.call(RUNTIME_DESCRIBE, Empty())
        assert (await gateway.call(GATEWAY_PING, Empty())).ok

    over(peer, backend, body)


def test_events_follow_the_snapshot_in_order(peer: Peer, backend: str) -> None:
    async def body(gateway: Gateway) -> None:
        created, events = await gateway.create(CreateParams())
        params = SubmitParams(session_id=created.session_id, input_id="i-1", text="say hello there")
        admitted = await gateway.call(PROMPT_SUBMIT, params)
        seen: list[Envelope] = []
        async for event in events:
            seen.append(event)
            if event.type == "execution.finished":
                break
        committed = [event.seq for event in seen if event.cursor is not None]
        assert committed == list(range(1, len(committed) + 1))
        live = "".join(str(event.payload["text"]) for event in seen if event.type == "message.delta")
        assert live == "hello there"
        assert seen[-1].admission_id == admitted.admission_id

    over(peer, backend, body)


def test_subscribing_again_ends_the_former_subscription(peer: Peer, backend: str) -> None:
    """Case ATTACH-03: on one connection a thread has one subscription, which moves."""

    async def body(gateway: Gateway) -> None:
        created, former = await gateway.create(CreateParams())
        _, latter = await gateway.subscribe(SubscribeParams(session_id=created.session_id))
        await gateway.call(PROMPT_SUBMIT, SubmitParams(session_id=created.session_id, input_id="i", text="say hi"))
        assert [event async for event in former] == []
        assert (await anext(latter)).type == "execution.queued"

    over(peer, backend, body)


def test_a_session_is_found_again_and_listened_to(peer: Peer, backend: str) -> None:
    async def body(gateway: Gateway) -> None:
        created = await gateway.call(SESSION_CREATE, CreateParams(subscribe=False))
        snapshot, _ = await gateway.resume(ResumeParams(session_id=created.session_id))
        assert (snapshot.session_id, snapshot.position) == (created.session_id, "fresh")
        with pytest.raises(RemoteError) as caught:
            await gateway.call(SESSION_RESUME, ResumeParams(session_id="nobody"))
        assert caught.value.type == "session_unknown"

    over(peer, backend, body)


def test_the_end_of_the_connection_reaches_a_waiting_reader_with_its_reason(peer: Peer, backend: str) -> None:
    async def body(gateway: Gateway) -> None:
        _, events = await gateway.create(CreateParams())
        await anyio.to_thread.run_sync(peer.close_all, 4503, "profile gone")
        with pytest.raises(ConnectionLost) as caught:
            await anext(events)
        assert (caught.value.code, caught.value.retry) == (4503, False)

    over(peer, backend, body)


def test_what_the_block_raises_comes_out_unwrapped(peer: Peer, backend: str) -> None:
    async def body(gateway: Gateway) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        over(peer, backend, body)


def test_a_wrong_token_is_told_as_such_and_trying_again_is_useless(peer: Peer, backend: str) -> None:
    async def main() -> None:
        async with connect(peer.url, token="another"):
            pytest.fail("it let us in")

    with pytest.raises(ConnectFailed, match="does not accept the token") as caught:
        anyio.run(main, backend=backend)
    assert not caught.value.retry
    assert "another" not in str(caught.value)


def test_another_major_version_is_refused_by_both_numbers(peer: Peer, backend: str) -> None:
    """Case SKEW-05."""
    for major, whose in ((0, "server"), (2, "client")):
        peer.major = major

        async def main() -> None:
            async with connect(peer.url, token=TOKEN):
                pytest.fail("it let us in")

        with pytest.raises(ConnectFailed, match=f"version {major}") as caught:
            anyio.run(main, backend=backend)
        assert whose in caught.value.hint


def test_nobody_there_may_be_tried_again(backend: str) -> None:
    with peer_at() as peer:
        url = peer.url

    async def main() -> None:
        async with connect(url, token=TOKEN):
            pytest.fail("nobody should be there")

    with pytest.raises(ConnectFailed, match="No server") as caught:
        anyio.run(main, backend=backend)
    assert caught.value.retry


@pytest.mark.parametrize("length", [20, 180])
def test_a_unix_socket_is_dialled_however_long_its_path_is(tmp_path: Path, backend: str, length: int) -> None:
    directory = tmp_path / ("d" * length)
    directory.mkdir()
    short = Path("/proc/self/fd")
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        with peer_at(short / str(descriptor) / "gateway.sock"):

            async def main() -> None:
                async with connect(socket=directory / "gateway.sock", token=TOKEN) as gateway:
                    assert (await gateway.call(GATEWAY_PING, Empty())).ok

            anyio.run(main, backend=backend)
    finally:
        os.close(descriptor)


def test_a_server_that_hangs_up_in_the_handshake_may_be_tried_again(backend: str) -> None:
    """It was killed or began to end just then; what answers with something else is no such server."""

    async def dialled(said: bytes) -> ConnectFailed:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(anyio.abc.SocketAttribute.local_port)

        async def hang_up(stream: anyio.abc.SocketStream) -> None:
            async with stream:
                await stream.receive()
                if said:
                    await stream.send(said)

        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, hang_up)
            with pytest.raises(ConnectFailed) as failed:
                async with connect(f"ws://127.0.0.1:{port}/ws", token="t"):
                    pass
            tasks.cancel_scope.cancel()
        return failed.value

    assert anyio.run(dialled, b"", backend=backend).retry
    assert not anyio.run(dialled, b"SSH-2.0-OpenSSH_9\r\n\r\n", backend=backend).retry
