"""TURN: an input is taken once, runs in its turn, and a stop ends what it was meant for."""

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


def test_turn_03_after_queued_inputs_were_taken_back_and_the_turn_stopped_nothing_starts(world: World) -> None:
    """A stop is for one execution; what waits behind it is taken back by its own request, and then stays so."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        viewer = await server.watching(session)
        await server.submit(session, "/do wait 100")
        queued = await server.submit(session, "/do say never")
        told = await server.get("prompt.cancel", session_id=session, admission_id=queued["admission_id"])
        assert told == {"status": "cancelled"}
        stopped = await server.get("session.interrupt", session_id=session, execution_generation=1)
        assert stopped["outcome"] == "accepted"
        await viewer.read()
        seen = len(viewer.events)
        await server.wait(5)
        await viewer.read()
        assert viewer.events[seen:] == []
        assert [event.type for event in viewer.events].count("execution.started") == 1

    world.do(story)


def test_turn_06_a_cancelled_input_is_in_no_later_request(world: World) -> None:
    """What was taken back is neither kept nor put in front of somebody else's words."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        await server.submit(session, "/do wait 2")
        queued = await server.submit(session, "taken back")
        await server.get("prompt.cancel", session_id=session, admission_id=queued["admission_id"])
        await server.wait(3)
        await server.submit(session, "second")
        viewer = await server.watching(session)
        transcript = said(viewer)
        assert [text for role, text in transcript if role == "user"] == ["/do wait 2", "second"]
        assert transcript[-1][1].startswith("You asked: “second”")

    world.do(story)


def test_turn_07_a_client_that_lost_the_reply_learns_what_became_of_its_input(world: World) -> None:
    """Not seen, running, done; and the same id never starts a second turn."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        never = await server.ask("prompt.receipt", session_id=session, input_id="mine")
        assert never["error"]["data"]["type"] == "not_found"
        first = await server.submit(session, "/do wait 2", input_id="mine")
        receipt = await server.get("prompt.receipt", session_id=session, input_id="mine")
        assert (receipt["status"], receipt["execution_generation"]) == ("started", 1)
        again = await server.submit(session, "/do wait 2", input_id="mine")
        assert again["admission_id"] == first["admission_id"]
        await server.wait(3)
        receipt = await server.get("prompt.receipt", session_id=session, input_id="mine")
        assert (receipt["status"], receipt["outcome"]) == ("finished", "completed")
        await server.submit(session, "/do wait 2", input_id="mine")
        assert (await server.state(session))["execution"] is None

    world.do(story)


def test_turn_10_a_disconnect_and_a_stop_are_told_apart(world: World) -> None:
    """A turn whose client went away is completed; one that was stopped is interrupted."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        for stop, outcome in ((False, "completed"), (True, "interrupted")):
            viewer = await server.watching(session)
            admitted = await server.submit(session, "/do wait 2")
            await viewer.drop()
            running = (await server.state(session))["execution"]["execution_generation"]
            if stop:
                await server.get("session.interrupt", session_id=session, execution_generation=running)
            await server.wait(3)
            named = {"session_id": session, "admission_id": admitted["admission_id"]}
            assert (await server.get("prompt.receipt", **named))["outcome"] == outcome

    world.do(story)


def test_turn_11_two_inputs_at_once_are_both_handled(world: World) -> None:
    """Sent on one connection without waiting for the first answer."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        viewer = await server.watching(session)
        assert viewer.seat is not None
        for number in (1, 2):
            viewer.seat.send("prompt.submit", session_id=session, input_id=f"p{number}", text=f"/do say p{number}")
        await world.rest()
        await viewer.read()
        assert [text for role, text in said(viewer) if role == "assistant"] == ["p1", "p2"]

    world.do(story)


def test_turn_13_the_queue_is_the_servers_and_outlives_client_and_crash(world: World) -> None:
    """Whoever comes next sees what waits, in its order."""

    async def story() -> None:
        server = Seated(world)
        session = await server.session()
        await server.submit(session, "/do wait 100", finite=True)
        for number in (1, 2):
            await server.submit(session, f"/do say p{number}", input_id=f"p{number}")
        assert [row["input_id"] for row in (await server.state(session))["pending"]][1:] == ["p1", "p2"]
        await world.crash()
        state = await server.state(session)
        assert [row["status"] for row in state["pending"]] == ["unknown", "queued", "queued"]
        lost = state["pending"][0]
        named = {"admission_id": lost["admission_id"], "execution_generation": 1}
        await server.get("prompt.resolve_unknown", session_id=session, **named)
        viewer = await server.watching(session)
        assert [text for role, text in said(viewer) if role == "assistant"][-2:] == ["p1", "p2"]

    world.do(story)
