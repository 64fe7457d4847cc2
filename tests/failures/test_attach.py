"""ATTACH: a session owns what happens in it; connections come, go and share."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.failures.seated import Seated, said
from tests.model.world import World, world_in


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_in(tmp_path) as made:
        yield made


def test_attach_01_an_input_to_a_session_that_nobody_listens_to_runs(world: World) -> None:
    """After its socket broke a client submits on another one, without attaching first."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        viewer = await server.watching(session)
        await viewer.drop()
        admitted = await server.submit(session, "/do say heard")
        receipt = await server.get("prompt.receipt", session_id=session, admission_id=admitted["admission_id"])
        assert (receipt["status"], receipt["outcome"]) == ("finished", "completed")
        unknown = await server.ask("prompt.submit", session_id=f"{session}x", input_id="i", text="x")
        assert unknown["error"]["data"]["type"] == "session_unknown"

    world.do(story)


def test_attach_03_a_second_viewer_takes_nothing_from_the_first(world: World) -> None:
    """Both hear everything, and the first goes on when the second leaves in the middle."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        first, second = await server.watching(session, "first"), await server.watching(session, "second")
        await server.submit(session, "/do stream 10 500")
        await server.wait(2)
        await first.read()
        await second.read()
        assert [event.type for event in first.events] == [event.type for event in second.events]
        await second.drop()
        await server.wait(5)
        await first.read()
        assert first.events[-1].type == "execution.finished"

    world.do(story)


def test_attach_04_a_drop_in_the_middle_leaves_no_mark_on_the_session(world: World) -> None:
    """Back before the end it runs, back after the end it is done, and another input is taken."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        viewer = await server.watching(session)
        await server.submit(session, "/do stream 10 500")
        await server.wait(1)
        await viewer.drop()
        await viewer.follow(session, fresh=False)
        assert viewer.state is not None
        assert viewer.state.execution is not None
        await viewer.drop()
        await server.wait(5)
        await viewer.follow(session, fresh=False)
        assert viewer.state.execution is None
        await server.submit(session, "/do say next", mode="reject")
        await viewer.read()
        assert said(viewer)[-1] == ("assistant", "next")

    world.do(story)


def test_attach_05_what_is_typed_into_a_session_runs_in_that_session(world: World) -> None:
    """Twenty sessions and inputs in any order: each mark is in its own transcript alone."""

    async def story() -> None:
        server = Seated(world)
        sessions = [await server.session() for _ in range(20)]
        marks = [(session, f"mark-{at}-{number}-") for at, session in enumerate(sessions) for number in range(3)]
        random.Random(5).shuffle(marks)
        for session, mark in marks:
            await server.submit(session, f"/do say {mark}")
        for at, session in enumerate(sessions):
            page = await server.get("session.events.since", session_id=session, after="1:0", limit=2000)
            text = str(page["events"])
            assert [f"mark-{other}-0-" in text for other in range(20)] == [other == at for other in range(20)]

    world.do(story)


def test_attach_06_coming_back_at_once_starts_no_second_turn(world: World) -> None:
    """Dropped, back and submitting in the same moment: one turn after the other, and only what was submitted."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        viewer = await server.watching(session)
        await server.submit(session, "/do stream 6 500")
        await server.wait(1)
        await viewer.drop()
        await viewer.follow(session, fresh=False)
        await server.submit(session, "/do say second")
        await server.wait(4)
        await viewer.read()
        bounds = [event.type for event in viewer.events if event.type in ("execution.started", "execution.finished")]
        assert bounds == ["execution.started", "execution.finished"] * 2
        assert [text for role, text in said(viewer) if role == "user"] == ["/do stream 6 500", "/do say second"]

    world.do(story)


def test_attach_07_a_turn_goes_on_when_the_last_client_leaves(world: World) -> None:
    """Whoever comes back has the text so far, and what follows it."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        viewer = await server.watching(session)
        await server.submit(session, "/do stream 10 500")
        await server.wait(1)
        await viewer.drop()
        await server.wait(2)
        back = await server.watching(session, "back")
        assert back.state is not None
        assert back.state.in_progress is not None
        assert back.state.in_progress.text
        await server.wait(4)
        await back.read()
        assert said(back)[-1][1].count(" ") >= 9

    world.do(story)


def test_attach_08_clients_that_vanish_in_a_stream_harm_no_other_request(world: World) -> None:
    """A hundred of them, one after the other."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        await server.submit(session, "/do stream 400 500")
        for number in range(100):
            viewer = await server.watching(session, f"vanishing-{number}")
            await viewer.drop()
        assert world.server.seats == []
        assert (await server.state(session))["execution"] is not None
        assert (await server.get("session.list"))["sessions"][0]["session_id"] == session

    world.do(story)
