"""REPLAY: a client that was away ends where one that stayed is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.failures.seated import Seated, said
from tests.model.world import World, world_in


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_in(tmp_path) as made:
        yield made


def test_replay_01_a_client_that_was_cut_off_in_a_stream_ends_with_the_same_transcript(world: World) -> None:
    """What was told while the socket was down is told after it, and nothing twice."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        uncut, cut = await server.watching(session, "uncut"), await server.watching(session, "cut")
        await server.submit(session, "/do stream 100 500")
        await server.wait(20)
        await cut.read()
        await cut.drop()
        await server.wait(20)
        await cut.follow(session, fresh=False)
        await server.wait(20)
        await uncut.read()
        await cut.read()
        assert said(cut) == said(uncut)
        assert [each.cursor for each in cut.events if each.cursor] == [e.cursor for e in uncut.events if e.cursor]

    world.do(story)


def test_replay_03_cut_just_before_the_last_event_it_learns_of_the_end(world: World) -> None:
    """The text is whole and nothing runs, as soon as it is back."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        viewer = await server.watching(session)
        await server.submit(session, "/do stream 3 500")
        await server.wait(1)
        await viewer.read()
        await viewer.drop()
        await server.wait(2)
        await viewer.follow(session, fresh=False)
        assert viewer.state is not None
        assert viewer.state.execution is None
        assert viewer.state.in_progress is None
        assert said(viewer)[-1][0] == "assistant"

    world.do(story)


def test_replay_04_a_resumed_client_hears_what_goes_on_without_saying_anything(world: World) -> None:
    """Resuming subscribes; no input is needed for it."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        viewer = await server.watching(session)
        await server.submit(session, "/do stream 20 500")
        await server.wait(3)
        await viewer.drop()
        await viewer.follow(session, fresh=False)
        before = len(viewer.events)
        await server.wait(2)
        await viewer.read()
        assert "message.delta" in [event.type for event in viewer.events[before:]]

    world.do(story)


def test_replay_06_what_is_repeated_can_be_told_by_what_every_event_carries(world: World) -> None:
    """A turn that begins with a tool, read twice: the same cursors, and the execution that each belongs to."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        admitted = await server.submit(session, "/do ask which?")
        first, second = await server.watching(session, "a"), await server.watching(session, "b")
        page = await server.get("session.events.since", session_id=session, after="1:0")
        again = await server.get("session.events.since", session_id=session, after="1:0")
        assert page["events"] == again["events"]
        assert first.state == second.state
        of_turn = [event for event in page["events"] if event["type"] not in ("execution.queued", "session.info")]
        assert {event["execution_generation"] for event in of_turn} == {1}
        assert {event["admission_id"] for event in of_turn} == {admitted["admission_id"]}

    world.do(story)


def test_replay_08_a_resume_brings_what_was_asked_for_and_no_more(world: World) -> None:
    """Ten turns with a resume before each: each event comes once, however often the client came back."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        viewer = await server.watching(session)
        for number in range(10):
            await viewer.drop()
            await viewer.follow(session, fresh=False)
            await server.submit(session, f"/do say {number}")
            await viewer.read()
        cursors = [event.cursor for event in viewer.events if event.cursor is not None]
        assert cursors == [f"1:{seq}" for seq in range(1, len(cursors) + 1)]
        assert [text for role, text in said(viewer) if role == "assistant"] == [str(number) for number in range(10)]

    world.do(story)


def test_replay_10_a_server_that_was_restarted_meanwhile_confuses_nobody(world: World) -> None:
    """Cut, killed, started again: the client goes on from its cursor."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        viewer = await server.watching(session)
        await server.submit(session, "/do say before")
        await viewer.read()
        await world.crash()
        viewer.seat = None
        await viewer.follow(session, fresh=False)
        await server.submit(session, "/do say after")
        await viewer.read()
        assert [text for role, text in said(viewer) if role == "assistant"] == ["before", "after"]

    world.do(story)


def test_replay_15_a_replaced_journal_resets_each_subscription_to_it_and_no_other(world: World) -> None:
    """Two clients at one thread, one up to date and one behind; a third at another thread."""

    async def story() -> None:
        server = Seated(world)
        session, other = await server.session(), await server.session()
        for each in (session, other):
            await server.submit(each, "/do say something")
        ready, behind = await server.watching(session, "ready"), await server.watching(session, "behind")
        elsewhere = await server.watching(other, "elsewhere")
        await server.submit(session, "/do say more")
        await ready.read()
        edit = {"request_id": "r", "expected_revision": 1, "operation": "reset"}
        await server.get("session.mutate", session_id=session, **edit)
        for viewer in (ready, behind, elsewhere):
            await viewer.read()
            assert viewer.state is not None
        assert (said(ready), said(behind)) == ([], [])
        assert ready.state is not None
        assert ready.state.generation == 2
        assert len(said(elsewhere)) == 2

    world.do(story)


def test_replay_18_after_a_crash_nothing_is_said_to_work_that_does_not(world: World) -> None:
    """Killed while the model is silent and resumed as configured: what is shown is what runs now."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        await server.submit(session, "/do wait 100", finite=True)
        assert (await server.state(session))["execution"]["execution_generation"] == 1
        await world.crash()
        state = await server.state(session)
        assert state["execution"] is None
        assert [row["status"] for row in state["pending"]] == ["unknown"]

    world.do(story)
