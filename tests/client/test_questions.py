"""Answering questions through handlers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
import pytest

from hermes_ws.client.connect import connect
from hermes_ws.client.gateway import Gateway
from hermes_ws.client.incoming import Asked
from hermes_ws.client.questions import Handlers
from hermes_ws.contract.events import Notice
from hermes_ws.contract.methods.connection import GATEWAY_PING
from hermes_ws.contract.methods.prompts import PROMPT_SUBMIT, SubmitParams
from hermes_ws.contract.methods.sessions import CreateParams
from hermes_ws.contract.model import Empty
from hermes_ws.contract.questions import ApprovalResult
from tests.client.peer import TOKEN, Peer


def over(peer: Peer, backend: str, handlers: Handlers, body: Callable[[Gateway], Awaitable[None]]) -> None:
    async def main() -> None:
        with anyio.fail_after(30):
            async with connect(peer.url, token=TOKEN, handlers=handlers) as gateway:
                await body(gateway)

    anyio.run(main, backend=backend)


async def ask(gateway: Gateway) -> str:
    created, _ = await gateway.create(CreateParams())
    params = SubmitParams(session_id=created.session_id, input_id=f"i-{created.session_id}", text="ask ls")
    await gateway.call(PROMPT_SUBMIT, params)
    return created.session_id


def test_a_handler_answers_and_declares_its_kind(peer: Peer, backend: str) -> None:
    handlers = Handlers()

    @handlers.answers("approval")
    async def approve(asked: Asked) -> ApprovalResult:
        assert asked.params["command"] == "ls"
        return ApprovalResult(choice="once")

    async def body(gateway: Gateway) -> None:
        await ask(gateway)
        await anyio.to_thread.run_sync(peer.wait_for, lambda: bool(peer.replies))

    over(peer, backend, handlers, body)
    assert peer.declared[0]["server_requests"] == ["approval"]
    assert peer.replies[0]["result"] == {"choice": "once", "reason": None}
    assert str(peer.replies[0]["id"]).startswith("srq-")


def test_a_handler_that_is_waiting_while_another_client_answers_is_cancelled(peer: Peer, backend: str) -> None:
    handlers = Handlers()
    ended = anyio.Event()

    @handlers.answers("approval")
    async def think(asked: Asked) -> ApprovalResult:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async def body(gateway: Gateway) -> None:
        session = await ask(gateway)
        await anyio.to_thread.run_sync(peer.wait_for, lambda: bool(peer.conversations[session].questions))
        (id,) = peer.conversations[session].questions
        await gateway.call(GATEWAY_PING, Empty())
        peer.settle(peer.conversations[session], id, {"choice": "deny"})
        await ended.wait()

    over(peer, backend, handlers, body)
    assert peer.replies == []


def test_a_long_question_holds_nothing_up(peer: Peer, backend: str) -> None:
    """Case ASK-11."""
    handlers = Handlers()
    asking = anyio.Event()

    @handlers.answers("approval")
    async def think(asked: Asked) -> ApprovalResult:
        asking.set()
        await anyio.sleep_forever()
        raise AssertionError

    async def body(gateway: Gateway) -> None:
        await ask(gateway)
        await asking.wait()
        for _ in range(3):
            assert (await gateway.call(GATEWAY_PING, Empty())).ok

    over(peer, backend, handlers, body)


def test_a_kind_without_handler_and_a_handler_that_declines_leave_the_question_open(peer: Peer, backend: str) -> None:
    handlers = Handlers()

    async def body(gateway: Gateway) -> None:
        session = await ask(gateway)
        await anyio.to_thread.run_sync(peer.wait_for, lambda: bool(peer.conversations[session].questions))
        await gateway.call(GATEWAY_PING, Empty())
        assert peer.conversations[session].questions

    over(peer, backend, handlers, body)

    @handlers.answers("approval")
    async def decline(asked: Asked) -> None:
        return None

    over(peer, backend, handlers, body)
    assert peer.replies == []


def test_a_broken_handler_is_no_decision(peer: Peer, backend: str, caplog: pytest.LogCaptureFixture) -> None:
    handlers = Handlers()
    asked_for = anyio.Event()

    @handlers.answers("approval")
    async def broken(asked: Asked) -> ApprovalResult:
        asked_for.set()
        raise ZeroDivisionError

    async def body(gateway: Gateway) -> None:
        await ask(gateway)
        await asked_for.wait()
        assert (await gateway.call(GATEWAY_PING, Empty())).ok

    with caplog.at_level(logging.ERROR):
        over(peer, backend, handlers, body)
    assert peer.replies == []
    assert "stays open" in caplog.text


def test_an_unknown_kind_is_declined_as_such(peer: Peer, backend: str) -> None:
    """Cases ASK-15, SKEW-03."""

    async def body(gateway: Gateway) -> None:
        session = await ask(gateway)
        at = peer.conversations[session]
        peer.open_question(at, "hologram", Notice(level="info", type="x", message="y"))
        await anyio.to_thread.run_sync(peer.wait_for, lambda: bool(peer.replies))

    over(peer, backend, Handlers(), body)
    (reply,) = peer.replies
    assert reply["error"]["code"] == -32601


def test_a_kind_that_does_not_exist_cannot_be_handled() -> None:
    with pytest.raises(ValueError, match="no kind of question"):
        Handlers().answers("hologram")
