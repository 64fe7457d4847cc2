"""A model that hangs, floods, lies, or breaks off in the middle of a character; seen from the conversation."""

from __future__ import annotations

import trio

from tests.agent.chat_server import ChatServer, Wire
from tests.session.house import House, Viewer, new_session, say


def config(model: ChatServer, **more: float) -> str:
    lines = "".join(f"  {name}: {value}\n" for name, value in more.items())
    return (
        "model:\n  provider: mine\n  name: m\n"
        + lines
        + "agent: {titles: words}\n"
        + f"providers:\n  mine:\n    kind: openai\n    base_url: {model.base_url}\n    api_key: ${{KEY}}\n"
    )


ENV = "KEY=sk-1234567890abcdef\n"


async def finished(viewer: Viewer) -> dict[str, object]:
    return dict((await viewer.until("execution.finished"))["payload"])


async def test_one_that_breaks_off_within_a_character_leaves_whole_characters(house: House, model: ChatServer) -> None:
    """Case FRAME-01, FRAME-02: what was said is kept as far as it is text; the next turn goes on from it."""

    async def broken(wire: Wire) -> None:
        await wire.begin()
        await wire.delta(content="grüße ")
        await wire.raw('data: {"choices":[{"index":0,"delta":{"content":"ü'.encode()[:-1])
        await wire.cut()

    async def fine(wire: Wire) -> None:
        await wire.begin()
        await wire.delta(content="again")
        await wire.delta("stop")
        await wire.end()

    model.answers = [broken, broken, broken, broken, fine]
    house.home("default", config=config(model), env=ENV)
    async with house.served():
        _, thread, viewer = await new_session(await house.runtime())
        await say(thread, "hello", "one")
        first = await finished(viewer)
        assert first["outcome"] in ("failed", "completed")
        model.answers = [fine]
        await say(thread, "go on", "two")
        assert (await finished(viewer))["outcome"] == "completed"
        texts = [event["payload"]["text"] for event in viewer.events if event["type"] == "message.complete"]
        assert all("\ufffd" not in text and "\ud800" not in text for text in texts)
        assert texts[-1] == "again"


async def test_a_lone_surrogate_is_replaced_once_and_for_all(house: House, model: ChatServer) -> None:
    """Case FRAME-01, FRAME-09: neither the socket nor the next turn meets it again."""

    async def poison(wire: Wire) -> None:
        await wire.begin()
        await wire.raw(
            b'data: {"choices":[{"index":0,"delta":{"content":"bad \\ud83d text"},"finish_reason":null}]}\n\n'
        )
        await wire.delta("stop")
        await wire.end()

    async def fine(wire: Wire) -> None:
        await wire.begin()
        await wire.delta(content="fine")
        await wire.delta("stop")
        await wire.end()

    model.answers = [poison, fine]
    house.home("default", config=config(model), env=ENV)
    async with house.served():
        _, thread, viewer = await new_session(await house.runtime())
        await say(thread, "an input", "one")
        assert (await finished(viewer))["outcome"] == "completed"
        await say(thread, "next", "two")
        assert (await finished(viewer))["outcome"] == "completed"
        texts = [event["payload"]["text"] for event in viewer.events if event["type"] == "message.complete"]
        assert texts == ["an input", "bad \ufffd text", "next", "fine"]
        snapshot, _, _ = await thread.subscription_start(None, messages=True)
        assert snapshot.messages is not None
        assert [message.text for message in snapshot.messages] == texts


async def test_one_that_hangs_is_given_up_and_the_thread_goes_on(house: House, model: ChatServer) -> None:
    """Case FLOW-08."""

    async def hang(wire: Wire) -> None:
        await wire.gone()

    model.answers = [hang] * 8
    house.home("default", config=config(model, first_piece_s=0.3, idle_s=0.3), env=ENV)
    async with house.served():
        _, thread, viewer = await new_session(await house.runtime())
        await say(thread, "hello", "one")
        assert (await finished(viewer))["outcome"] == "failed"
        await trio.lowlevel.checkpoint()
        assert thread.active is None


async def test_one_that_hangs_ends_at_an_interrupt(house: House, model: ChatServer) -> None:
    """Case FLOW-02."""

    async def begin_and_hang(wire: Wire) -> None:
        await wire.begin()
        await wire.delta(content="so far")
        await wire.gone()

    model.answers = [begin_and_hang]
    house.home("default", config=config(model), env=ENV)
    async with house.served():
        _, thread, viewer = await new_session(await house.runtime())
        await say(thread, "hello", "one")
        await viewer.until("message.delta")
        assert thread.interrupt(1).outcome == "accepted"
        complete = await viewer.until("message.complete", role="assistant")
        assert (complete["payload"]["text"], complete["payload"]["partial"]) == ("so far", True)
        assert (await finished(viewer))["outcome"] == "interrupted"
        with trio.fail_after(20):
            await model.idle.wait()


async def test_one_that_floods_is_stopped_by_an_interrupt_and_bounded(house: House, model: ChatServer) -> None:
    """Case FLOW-02, FRAME-06: the loop stays responsive, and what is kept fits into a frame."""

    async def flood(wire: Wire) -> None:
        await wire.begin()
        while True:
            await wire.delta(content="flood " * 500)

    model.answers = [flood] * 4
    house.home("default", config=config(model), env=ENV)
    async with house.served():
        _, thread, viewer = await new_session(await house.runtime())
        await say(thread, "hello", "one")
        await viewer.until("message.delta")
        thread.interrupt(1)
        done = await finished(viewer)
        assert done["outcome"] in ("interrupted", "failed")
        (complete,) = [
            event
            for event in viewer.events
            if event["type"] == "message.complete" and event["payload"]["role"] == "assistant"
        ][:1]
        assert len(complete["payload"]["text"]) < 1024 * 1024
