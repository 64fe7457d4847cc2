"""What a client is given when it comes, and that what follows joins on without gap or repetition."""

from __future__ import annotations

import pytest

from hermes_ws.contract.errors import ThreadUnknown
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.wire.cursor import Cursor
from tests.session.house import Viewer, new_session, say


async def test_a_client_that_comes_in_the_middle_of_a_message_gets_the_rest(runtime: ProfileRuntime) -> None:
    _, thread, first = await new_session(runtime)
    await say(thread, "/do stream 3 0 4\n/do wait 1000\n", "one")
    await first.until("message.delta")
    while len(first.live_text(message_of(first))) < 12:
        await first.until("message.delta")
    snapshot, start, marks = await thread.subscription_start(None, None)
    assert snapshot.position == "fresh"
    assert snapshot.execution is not None
    assert snapshot.execution.state == "running"
    assert snapshot.in_progress is not None
    assert snapshot.in_progress.text == first.live_text(message_of(first))
    assert snapshot.messages is not None
    assert [message.role for message in snapshot.messages] == ["user"]
    late = Viewer(thread, start, marks)
    thread.interrupt(1)
    whole = await late.until("message.complete")
    assert "message.delta" not in late.types()
    assert whole["payload"]["text"] == snapshot.in_progress.text
    assert str(start) == snapshot.cursor


async def test_a_client_that_stands_before_the_message_gets_its_text_after_its_beginning(
    runtime: ProfileRuntime,
) -> None:
    _, thread, first = await new_session(runtime)
    await say(thread, "/do say hello\n/do wait 1000", "one")
    await first.until("message.delta")
    snapshot, start, marks = await thread.subscription_start(Cursor(1, 0), None)
    assert (snapshot.position, start) == ("ok", Cursor(1, 0))
    assert snapshot.in_progress is None
    assert snapshot.messages is None
    late = Viewer(thread, start, marks)
    await late.pull()
    await first.pull()
    types = late.types()
    assert types[0] == "execution.queued"
    assert types.index("message.start") < types.index("message.delta")
    assert late.live_text(message_of(late)) == first.live_text(message_of(first))
    thread.interrupt(1)
    await late.until("execution.finished")


async def test_a_cursor_that_never_was_is_said_to_be_ahead(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime)
    await say(thread, "/do say hello", "one")
    await viewer.until("execution.finished")
    snapshot, start, _ = await thread.subscription_start(Cursor(1, 999), None)
    assert (snapshot.position, start) == ("ahead", Cursor(1, 0))
    page = await thread.events(Cursor(7, 1), 100)
    assert page.position == "ahead"
    assert page.events[0].seq == 1


async def test_events_come_in_pages_that_join(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime)
    await say(thread, "/do say hello", "one")
    await viewer.until("execution.finished")
    after, seqs, more = Cursor(1, 0), list[int | None](), True
    while more:
        page = await thread.events(after, 2)
        assert len(page.events) <= 2
        seqs += [event.seq for event in page.events]
        after, more = Cursor.parse(page.cursor), page.more
    assert seqs == list(range(1, len(seqs) + 1))
    assert str(after) == (await thread.snapshot(None, messages=False)).cursor


async def test_a_thread_that_is_not_there_is_unknown(runtime: ProfileRuntime) -> None:
    session, thread, _ = await new_session(runtime)
    assert await session.thread("main") is thread
    with pytest.raises(ThreadUnknown):
        await session.thread("side")


def message_of(viewer: Viewer) -> str:
    started = next(event for event in viewer.events if event["type"] == "message.start")
    return str(started["payload"]["message_id"])
