"""Forks and compaction: histories that are taken over, made shorter, and taken back."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_ws.contract.errors import ConsentRequired, NotFound
from hermes_ws.contract.methods.forks import ForkCompaction, Forked, ForkParams
from hermes_ws.contract.methods.mutations import Mutated, MutateParams
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal import insights, messages, summaries
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.messages import new_id
from hermes_ws.session.forks import fork
from hermes_ws.session.session import Session
from hermes_ws.session.thread import Thread
from hermes_ws.wire.cursor import Cursor
from tests.session.house import OWNER, House, Viewer, new_session, say


async def talk(thread: Thread, viewer: Viewer, *texts: str) -> None:
    for text in texts:
        await say(thread, text, new_id())
        await viewer.until("execution.finished")


async def make_fork(runtime: ProfileRuntime, session: Session, thread: Thread, **options: Any) -> Forked:
    params = ForkParams(session_id=session.session_id, thread_id=thread.key.thread_id, **options)
    return await fork(runtime, runtime.sessions.keys, session, thread.key, params, OWNER)


async def seen(runtime: ProfileRuntime, key: ThreadKey) -> list[str]:
    """What a model is given."""
    return [each.text for each in await runtime.journal.read(lambda connection: summaries.history(connection, key))]


async def stored(runtime: ProfileRuntime, key: ThreadKey) -> list[str]:
    return [each.text for each in await runtime.journal.read(lambda connection: messages.stored(connection, key))]


async def edit(runtime: ProfileRuntime, session: Session, operation: str, **payload: Any) -> Mutated:
    """An edit, with the consent that it asks for."""
    params = MutateParams(
        session_id=session.session_id,
        request_id=f"r{session.record.revision}-{operation}",
        expected_revision=session.record.revision,
        operation=operation,
        payload=payload,
    )
    try:
        return await runtime.sessions.mutate(params, OWNER)
    except ConsentRequired as needed:
        token = needed.data["consent"]
        assert isinstance(token, str)
        return await runtime.sessions.mutate(params.model_copy(update={"consent": token}), OWNER)


async def journal_of(thread: Thread) -> list[Any]:
    return [each.model_dump() for each in (await thread.events(Cursor(1, 0), 2000)).events]


async def test_a_fork_goes_its_own_way_and_the_source_never_changes(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await talk(thread, viewer, "/do say one", "/do say two")
    before = await journal_of(thread)
    first = (await runtime.journal.read(lambda connection: messages.stored(connection, thread.key)))[1]
    made = await make_fork(runtime, session, thread, from_message_id=first.message_id)
    assert (made.messages, made.compaction) == (2, "none")
    assert await journal_of(thread) == before
    other = await session.thread(made.thread_id)
    listener = await Viewer.of(other, Cursor(1, 0))
    await talk(other, listener, "/do say three")
    assert listener.types()[0] == "thread.forked"
    assert await stored(runtime, other.key) == ["/do say one", "one\n", "/do say three", "three\n"]
    assert await journal_of(thread) == before


async def test_a_repeated_request_makes_one_fork(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await talk(thread, viewer, "/do say one")
    first = await make_fork(runtime, session, thread, request_id="r1")
    assert await make_fork(runtime, session, thread, request_id="r1") == first


async def test_a_message_that_is_not_there_cannot_be_forked_from(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await talk(thread, viewer, "/do say one")
    with pytest.raises(NotFound):
        await make_fork(runtime, session, thread, from_message_id="msg-none")


async def test_a_fork_is_made_shorter_as_it_was_asked(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await talk(thread, viewer, "/do say one", "/do say two", "/do say three")
    soft = await make_fork(runtime, session, thread, compaction=ForkCompaction(mode="soft", keep=2))
    hard = await make_fork(runtime, session, thread, compaction=ForkCompaction(mode="hard", keep=2))
    for made in (soft, hard):
        model_sees = await seen(runtime, ThreadKey(session.session_id, made.thread_id))
        assert model_sees[0].startswith("Summary of the conversation so far")
        assert model_sees[1:] == ["/do say three", "three\n"]
    assert len(await stored(runtime, ThreadKey(session.session_id, soft.thread_id))) == 6
    assert len(await stored(runtime, ThreadKey(session.session_id, hard.thread_id))) == 3
    assert (soft.compaction, hard.compaction) == ("soft", "hard")


async def test_a_fork_inherits_what_the_profile_says(house: House) -> None:
    house.home("default", config="compaction: {fork: hard, keep: 2}\n")
    async with house.served():
        runtime = await house.runtime()
        session, thread, viewer = await new_session(runtime)
        await talk(thread, viewer, "/do say one", "/do say two")
        assert (await make_fork(runtime, session, thread)).compaction == "hard"
        assert (await make_fork(runtime, session, thread, compaction="disabled")).compaction == "disabled"


async def test_soft_compaction_leaves_the_journal_as_it_is(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await talk(thread, viewer, "/do say one", "/do say two", "/do say three")
    before = await journal_of(thread)
    done = await edit(runtime, session, "compress", here=2)
    assert done.result["compressed"] is True
    assert (await journal_of(thread))[: len(before)] == before
    assert (await viewer.until("compaction.complete"))["payload"]["mode"] == "soft"
    assert (await seen(runtime, thread.key))[0].startswith("Summary of the conversation so far")
    assert len(await stored(runtime, thread.key)) == 6
    # Again, later: the summary is summarised with what came after it.
    await talk(thread, viewer, "/do say four")
    await edit(runtime, session, "compress", here=2)
    assert len(await seen(runtime, thread.key)) == 3


async def test_hard_compaction_replaces_the_journal_and_raises_its_generation(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await talk(thread, viewer, "/do say one", "/do say two", "/do say three")
    done = await edit(runtime, session, "compress", here=2, mode="hard")
    assert done.result["generation"] == 2
    snapshot = await thread.snapshot(Cursor(1, 3), messages=False)
    assert (snapshot.position, snapshot.generation) == ("rebased", 2)
    page = await thread.events(Cursor(2, 0), 100)
    assert [each.type for each in page.events][:2] == ["thread.rebased", "message.complete"]
    assert len(await stored(runtime, thread.key)) == 3
    listener = await Viewer.of(thread)
    await talk(thread, listener, "/do say four")
    assert "four" in (await stored(runtime, thread.key))[-1]


async def test_a_preview_changes_nothing(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await talk(thread, viewer, "/do say one", "/do say two")
    done = await edit(runtime, session, "compress", here=2, preview=True, focus="one")
    assert done.result["compressed"] is False
    assert done.result["summary"]
    assert len(await seen(runtime, thread.key)) == 4


async def test_undo_takes_back_the_last_words_and_gives_them_for_editing(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await talk(thread, viewer, "/do say one", "/do say two")
    done = await edit(runtime, session, "undo")
    assert (done.result["text"], done.result["removed"]) == ("/do say two", 2)
    assert await stored(runtime, thread.key) == ["/do say one", "one\n"]


async def test_retry_answers_the_last_words_anew(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await talk(thread, viewer, "/do say one", "/do fail model_failed")
    done = await edit(runtime, session, "retry")
    listener = await Viewer.of(thread, Cursor(2, 0))
    ended = await listener.until("execution.finished")
    assert ended["admission_id"] == done.result["admission_id"]
    assert await stored(runtime, thread.key) == ["/do say one", "one\n", "/do fail model_failed"]


async def test_another_model_counts_from_the_next_turn_on(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await talk(thread, viewer, "/do say one")
    await edit(runtime, session, "model", provider="loopback", model="second")
    await talk(thread, viewer, "/do say two")
    models = [event["payload"]["usage"]["model"] for event in viewer.events if event["type"] == "usage.update"]
    assert models == ["loopback", "second"]


async def test_a_full_context_is_compacted_before_the_next_request(house: House) -> None:
    house.home("default", config="model: {context_tokens: 1200}\ncompaction: {keep: 2}\n")
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime, toolsets=[])
        await talk(thread, viewer, f"/do say {'word ' * 400}", f"/do say {'more ' * 400}")
        await talk(thread, viewer, "/do say and on")
        done = [event["payload"] for event in viewer.events if event["type"] == "compaction.complete"]
        assert done
        assert done[0]["tokens_after"] < done[0]["tokens_before"]
        full = [event["payload"] for event in viewer.events if event["type"] == "usage.update"]
        assert all(each["context_limit"] == 1200 for each in full)
        assert len(await stored(runtime, thread.key)) == 6
        assert (await seen(runtime, thread.key))[0].startswith("Summary of the conversation so far")


async def test_what_a_summary_costs_is_counted_for_the_session_and_the_day(runtime: ProfileRuntime) -> None:
    """A fork's, an edit's, and that of a preview, which was made although nothing changes."""

    async def consumed() -> tuple[int, int, int]:
        total = await runtime.journal.read(lambda connection: insights.of_session(connection, session.session_id))
        report = await runtime.journal.read(lambda connection: insights.since(connection, 0.0))
        assert report.total == total
        ((_, day),) = report.days
        assert day == total
        return total.executions, total.input_tokens, total.output_tokens

    session, thread, viewer = await new_session(runtime)
    await talk(thread, viewer, "/do say one", "/do say two", "/do say three")
    before = await consumed()
    made = await make_fork(runtime, session, thread, compaction=ForkCompaction(mode="soft", keep=2))
    forked = await consumed()
    await edit(runtime, session, "compress", here=2, preview=True)
    previewed = await consumed()
    await edit(runtime, session, "compress", here=2, mode="hard")
    edited = await consumed()
    assert {each[0] for each in (before, forked, previewed, edited)} == {3}, "a summary is no execution"
    assert before[1] < forked[1] < previewed[1] < edited[1]
    assert before[2] < forked[2] < previewed[2] < edited[2]
    for told in (await session.thread(made.thread_id), thread):
        generation = told.tail.generation
        page = (await told.events(Cursor(generation, 0), 100)).events
        (complete,) = (each for each in page if each.type == "compaction.complete")
        meter = [each for each in page if each.type == "usage.update"][-1]
        assert meter.payload["context_tokens"] == complete.payload["tokens_after"]
