"""Hints that the list of sessions looks different: the first at once, and what follows in moments together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
import trio.testing

from hermes_ws.contract.errors import Draining
from hermes_ws.contract.methods.mutations import MutateParams
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.session.announcing import QUIET_S, Announcer
from tests.session.house import OWNER, People, eventually, new_session, say


class Profile:
    """As much of an open profile as hints need."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.audience = People()
        self.scope: Any = type("Scope", (), {"profile": type("Name", (), {"text": "work"})})
        self.closing = False
        self._nursery = nursery

    def start_soon(self, fn: Any, *args: Any, name: str) -> None:
        if self.closing:
            raise Draining("closing")
        self._nursery.start_soon(fn, *args, name=name)


@pytest.fixture
async def profile(autojump_clock: trio.testing.MockClock) -> AsyncIterator[Profile]:
    async with trio.open_nursery() as nursery:
        yield Profile(nursery)
        nursery.cancel_scope.cancel()


def announcer(profile: Profile) -> Announcer:
    runtime: Any = profile
    return Announcer(runtime)


async def test_the_first_change_is_told_at_once_and_names_its_session(profile: Profile) -> None:
    announcer(profile).changed("s-1")
    assert profile.audience.changed == [("work", "s-1")]


async def test_changes_that_follow_within_moments_are_told_together(profile: Profile) -> None:
    hints = announcer(profile)
    for session_id in ("s-1", "s-2", "s-3"):
        hints.changed(session_id)
    assert profile.audience.changed == [("work", "s-1")]
    await trio.sleep(1.5 * QUIET_S)
    assert profile.audience.changed == [("work", "s-1"), ("work", None)]
    hints.changed("s-4")
    hints.changed("s-4")
    await trio.sleep(2 * QUIET_S)
    assert profile.audience.changed[2:] == [("work", "s-4")]


async def test_after_a_while_without_changes_the_next_one_is_told_at_once_again(profile: Profile) -> None:
    hints = announcer(profile)
    hints.changed("s-1")
    await trio.sleep(3 * QUIET_S)
    hints.changed("s-2")
    assert profile.audience.changed == [("work", "s-1"), ("work", "s-2")]


async def test_a_profile_that_closes_hints_at_nothing(profile: Profile) -> None:
    profile.closing = True
    announcer(profile).changed("s-1")
    assert profile.audience.changed == []


async def test_whatever_changes_a_row_of_the_list_is_hinted_at(runtime: ProfileRuntime, people: People) -> None:
    async def hinted(what: str) -> None:
        await eventually(lambda: bool(people.changed))
        assert {profile for profile, _ in people.changed} == {"default"}, what
        await trio.sleep(1.2 * QUIET_S)  # until nothing is held back any more
        people.changed.clear()

    session, thread, viewer = await new_session(runtime)
    assert people.changed == [("default", session.session_id)]
    await hinted("made")
    await say(thread, "/do ask Which colour?", "one")
    question = await people.question()
    await hinted("begun, and asking")
    thread.interrupt(1)
    await viewer.until("execution.finished")
    await hinted("settled, and at rest")
    revision = session.record.revision
    for number, operation in enumerate(("rename", "delete")):
        payload = {"title": "Another"} if operation == "rename" else {}
        params = MutateParams(
            session_id=question.session_id,
            request_id=f"r-{number}",
            expected_revision=revision + number,
            operation=operation,
            payload=payload,
        )
        await runtime.sessions.mutate(params, OWNER)
        await hinted(operation)


async def test_another_skin_is_told_when_it_holds(runtime: ProfileRuntime, people: People) -> None:
    config = runtime.home.config
    config.write_text("display: {skin: midnight}\n")
    await runtime.fresh_scope()
    config.write_text("display: {skin: midnight}\nagent: {max_turns: 3}\n")
    await runtime.fresh_scope()
    assert people.skins == [("default", "midnight")]
