"""What a session is called: its first words at once, then what a model says, and always what a person says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest
import trio

from hermes_ws.contract.methods.mutations import MutateParams
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal import insights, sessions
from hermes_ws.session import titles
from hermes_ws.session.session import Session
from tests.agent.chat_server import ChatServer, Wire
from tests.session.house import OWNER, House, eventually, new_session, say


@pytest.fixture
async def server(nursery: trio.Nursery) -> ChatServer:
    running = ChatServer()
    listeners = await nursery.start(partial(trio.serve_tcp, running.handle, 0, host="127.0.0.1"))
    running.port = listeners[0].socket.getsockname()[1]
    return running


@pytest.fixture
async def runtime(house: House, server: ChatServer) -> AsyncIterator[ProfileRuntime]:
    """A profile that speaks with the loopback model, and has a small one for titles."""
    provider = f'{{kind: openai, base_url: "{server.base_url}", api_key: x, prices: {{s: {{input: 100, output: 0}}}}}}'
    small = "model: {small: {provider: mine, name: s}}\n"
    house.home("default", config=f"{small}providers: {{mine: {provider}}}\n")
    async with house.served():
        yield await house.runtime()


async def titled(wire: Wire) -> None:
    await wire.begin()
    await wire.delta(content='"Order in the shed."')
    await wire.chunk({"choices": [], "usage": {"prompt_tokens": 10_000, "completion_tokens": 5}})
    await wire.delta("stop")
    await wire.end()


async def title(runtime: ProfileRuntime, session: Session) -> str | None:
    record = await runtime.journal.read(lambda connection: sessions.get(connection, session.session_id))
    return None if record is None else record.title


async def consumed(runtime: ProfileRuntime, session: Session) -> insights.Consumption:
    return await runtime.journal.read(lambda connection: insights.of_session(connection, session.session_id))


async def rename(runtime: ProfileRuntime, session: Session, title: str) -> None:
    params = {"session_id": session.session_id, "request_id": "r-1", "expected_revision": 1, "operation": "rename"}
    await runtime.sessions.mutate(MutateParams.model_validate({**params, "payload": {"title": title}}), OWNER)


async def test_the_small_model_names_a_session_after_its_first_turn_and_is_counted(
    runtime: ProfileRuntime, server: ChatServer
) -> None:
    server.answers = [titled]
    session, thread, viewer = await new_session(runtime)
    await say(thread, "Please tidy the shed\n/do say It is done.", "one")
    await viewer.until("execution.finished", outcome="completed")
    while (told := await viewer.until("session.info"))["payload"]["info"]["title"] == "Please tidy the shed":
        pass
    assert (told["payload"]["info"]["title"], told["payload"]["revision"]) == ("Order in the shed", 1)
    assert server.asked[0].body["model"] == "s"
    assert "It is done." in str(server.asked[0].body["messages"])
    assert (await consumed(runtime, session)).cost_usd == pytest.approx(1.0)
    await say(thread, "And the garden", "two")
    await viewer.until("execution.finished", outcome="completed")
    assert len(server.asked) == 1


async def test_a_persons_title_is_never_replaced(runtime: ProfileRuntime, server: ChatServer) -> None:
    asked, go_on = trio.Event(), trio.Event()

    async def slowly(wire: Wire) -> None:
        asked.set()
        await go_on.wait()
        await titled(wire)

    server.answers = [slowly]
    session, thread, viewer = await new_session(runtime)
    await say(thread, "Please tidy the shed", "one")
    await viewer.until("execution.finished", outcome="completed")
    with trio.fail_after(30):
        await asked.wait()
    assert await title(runtime, session) == "Please tidy the shed"
    await rename(runtime, session, "Mine")
    go_on.set()
    with trio.fail_after(30):
        while not (await consumed(runtime, session)).models["s"]:  # noqa: ASYNC110
            await trio.sleep(0.01)
    assert await title(runtime, session) == "Mine"


async def test_a_model_that_fails_or_hangs_leaves_the_first_words(
    runtime: ProfileRuntime, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(titles, "DEADLINE_S", 0.5)

    async def refuses(wire: Wire) -> None:
        await wire.refuse(401, {"error": {"message": "no"}})

    async def hangs(wire: Wire) -> None:
        await wire.begin()
        await wire.gone()

    for answer in (refuses, hangs):
        server.answers = [answer]
        session, thread, viewer = await new_session(runtime)
        await say(thread, "Please tidy the shed", f"in-{answer.__name__}")
        await viewer.until("execution.finished", outcome="completed")
        await eventually(lambda: not server.answers and not server.open)
        assert await title(runtime, session) == "Please tidy the shed"
        # Nobody waited for it, and nobody is told of it.
        assert not [each for each in viewer.events if each["type"] == "notice"]


async def test_words_are_enough_where_a_profile_says_so(house: House, server: ChatServer) -> None:
    provider = f'{{kind: openai, base_url: "{server.base_url}", api_key: x}}'
    small = "agent: {titles: words}\nmodel: {small: {provider: mine, name: s}}\n"
    house.home("default", config=f"{small}providers: {{mine: {provider}}}\n")
    async with house.served():
        runtime = await house.runtime()
        session, thread, viewer = await new_session(runtime)
        await say(thread, "Please tidy the shed", "one")
        await viewer.until("execution.finished", outcome="completed")
        assert await title(runtime, session) == "Please tidy the shed"
    assert server.asked == []


async def test_an_open_session_knows_its_title_at_once(runtime: ProfileRuntime, server: ChatServer) -> None:
    server.answers = [titled]
    session, thread, viewer = await new_session(runtime)
    await say(thread, "Please tidy the shed", "one")
    await viewer.until("session.info", revision=1)
    await eventually(lambda: session.record.title == "Order in the shed")
    assert session.record.revision == 1
