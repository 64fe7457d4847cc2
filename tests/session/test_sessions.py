"""Making sessions, finding them again, and what stays in memory."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from hermes_ws.contract.errors import AdmissionConflict, DirectoryRefused, Draining, NotFound, SessionUnknown
from hermes_ws.contract.methods.sessions import CreateParams, ListParams
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.wire.cursor import Cursor
from tests.session.house import OWNER, House, Viewer, new_session, say


async def test_a_session_begins_with_what_it_was_made_with(runtime: ProfileRuntime, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    session, created = await runtime.sessions.create(
        CreateParams(title="Numbers", cwd=str(project), source="cli", model="small"), OWNER
    )
    assert created.session_id.startswith(f"{runtime.scope.identity.origin}-")
    assert (created.thread_id, created.profile, created.cursor) == ("main", "default", "1:0")
    assert created.info["cwd"] == str(project)
    assert created.info["model"] == "small"
    assert created.info["agent"] == "default"
    assert (await session.thread("main")).tail.generation == 1


async def test_a_repeated_request_makes_one_session(runtime: ProfileRuntime) -> None:
    params = CreateParams(request_id="r1", title="once")
    first, _ = await runtime.sessions.create(params, OWNER)
    again, _ = await runtime.sessions.create(params, OWNER)
    assert again is first
    other, _ = await runtime.sessions.create(params, "somebody else")
    assert other.session_id != first.session_id
    with pytest.raises(AdmissionConflict):
        await runtime.sessions.create(CreateParams(request_id="r1", title="twice"), OWNER)
    assert runtime.sessions.stored == 2


async def test_the_directory_is_the_requests_then_the_profiles_then_the_homes(house: House, tmp_path: Path) -> None:
    asked, usual = tmp_path / "asked", tmp_path / "usual"
    asked.mkdir()
    usual.mkdir()
    house.home("default", config=f"terminal:\n  cwd: {usual}\n")

    async with house.served():
        runtime = await house.runtime()
        _, by_request = await runtime.sessions.create(CreateParams(cwd=str(asked)), OWNER)
        _, by_profile = await runtime.sessions.create(CreateParams(), OWNER)
        assert (by_request.info["cwd"], by_profile.info["cwd"]) == (str(asked), str(usual))


async def test_without_any_directory_it_is_the_homes_own(runtime: ProfileRuntime) -> None:
    _, created = await runtime.sessions.create(CreateParams(), OWNER)
    assert created.info["cwd"] == str(runtime.home.user)


async def test_a_missing_directory_is_an_error_and_no_fall_back(runtime: ProfileRuntime, tmp_path: Path) -> None:
    for refused in (tmp_path / "missing", runtime.home.path, runtime.home.path.parent, tmp_path):
        with pytest.raises(DirectoryRefused):
            await runtime.sessions.create(CreateParams(cwd=str(refused)), OWNER)
    assert runtime.sessions.stored == 0


async def test_the_sessions_directory_is_bound_again_at_each_turn(runtime: ProfileRuntime, tmp_path: Path) -> None:
    # SCOPE-14
    project = tmp_path / "project"
    project.mkdir()
    _, thread, viewer = await new_session(runtime, cwd=str(project))
    await say(thread, "/do run pwd", "one")
    complete = await viewer.until("tool.complete")
    assert complete["payload"]["output"].splitlines()[0] == str(project)
    await viewer.until("execution.finished")
    project.rmdir()
    await say(thread, "/do run pwd", "two")
    finished = await viewer.until("execution.finished")
    assert finished["payload"]["outcome"] == "failed"
    assert finished["payload"]["error"]["type"] == "directory_refused"


async def test_an_unknown_agent_is_refused_when_the_session_is_made(runtime: ProfileRuntime) -> None:
    with pytest.raises(NotFound, match="nobody"):
        await runtime.sessions.create(CreateParams(agent="nobody"), OWNER)


async def test_sessions_are_found_by_title_and_age(runtime: ProfileRuntime) -> None:
    with pytest.raises(SessionUnknown):
        await runtime.sessions.find(latest=True)
    first, _ = await runtime.sessions.create(CreateParams(title="first", source="cli"), OWNER)
    second, _ = await runtime.sessions.create(CreateParams(title="second"), OWNER)
    assert await runtime.sessions.find(title="first") is first
    assert await runtime.sessions.find(latest=True) is second
    assert await runtime.sessions.find(latest="cli") is first
    with pytest.raises(SessionUnknown):
        await runtime.sessions.find(title="third")
    with pytest.raises(SessionUnknown):
        await runtime.sessions.find(latest="tui")
    with pytest.raises(SessionUnknown):
        await runtime.sessions.get("nowhere-1")


async def test_the_list_shows_what_each_session_does(runtime: ProfileRuntime) -> None:
    await new_session(runtime, title="quiet")
    _, thread, viewer = await new_session(runtime, title="busy")
    await say(thread, "/do wait 1000", "one")
    await viewer.until("execution.started")
    listing = await runtime.sessions.list(ListParams())
    assert [(row.title, row.state, row.preview) for row in listing.sessions] == [
        ("busy", "running", "/do wait 1000"),
        ("quiet", "idle", ""),
    ]
    page = await runtime.sessions.list(ListParams(limit=1))
    assert page.next is not None
    rest = await runtime.sessions.list(ListParams(limit=1, before=page.next))
    assert [row.title for row in rest.sessions] == ["quiet"]
    assert {row.profile for row in listing.sessions} == {"default"}


async def test_a_draining_profile_makes_no_session(runtime: ProfileRuntime) -> None:
    runtime.draining = True
    with pytest.raises(Draining):
        await runtime.sessions.create(CreateParams(), OWNER)


async def test_idle_sessions_leave_memory_and_come_back_as_they_were(runtime: ProfileRuntime) -> None:
    # REAP-06, REAP-13: what leaves is found again under the same id; what is watched or works does not leave.
    for _ in range(20):
        session, _ = await runtime.sessions.create(CreateParams(), OWNER)
    kept_id = session.session_id
    _, watched_thread, viewer = await new_session(runtime)
    del session
    runtime.sessions.forget_idle(0)
    gc.collect()
    assert runtime.sessions.open == 1
    runtime.sessions.forget_idle(0)
    assert runtime.journal.statistics().tails == 1
    assert (await runtime.sessions.get(kept_id)).session_id == kept_id
    await say(watched_thread, "/do say hello", "one")
    await viewer.until("execution.finished")


async def test_there_is_one_object_per_session_as_long_as_anybody_holds_it(runtime: ProfileRuntime) -> None:
    # REAP-16: two objects would be two queues for one thread.
    session, thread, viewer = await new_session(runtime)
    viewer.leave()
    runtime.sessions.forget_idle(0)
    gc.collect()
    assert await runtime.sessions.get(session.session_id) is session
    runtime.sessions.forget_idle(0)
    del session
    gc.collect()
    again = await runtime.sessions.get(thread.key.session_id)
    assert await again.thread("main") is thread


async def test_who_has_seen_the_last_execution_finish_finds_the_session_idle(runtime: ProfileRuntime) -> None:
    """In the very step in which the event can be read; and not before the last of those that wait."""
    session, thread, viewer = await new_session(runtime)
    found: list[bool] = []
    place = Cursor(1, 0)

    def look() -> None:
        nonlocal place
        taken = thread.tail.take(place, None, 1 << 20)
        place = taken.cursor
        found.extend(session.busy for frame in taken.frames if b'"execution.finished"' in frame.json)

    thread.tail.attach(look)
    await say(thread, "/do wait 0.1", "one")
    await say(thread, "/do say two", "two")
    await viewer.until("execution.finished")
    await viewer.until("execution.finished")
    thread.tail.detach(look)
    assert found == [True, False]
    assert (await runtime.sessions.close(session.session_id)).closed


async def test_a_session_that_was_closed_at_once_goes_on_as_another_object(runtime: ProfileRuntime) -> None:
    """REAP-08: The queue of the closed one takes nothing of what is said to its successor."""
    session, thread, viewer = await new_session(runtime)
    for number in range(5):
        await say(thread, f"/do say {number}", f"input-{number}")
        await viewer.until("execution.finished", outcome="completed")
        assert (await runtime.sessions.close(session.session_id)).closed
        again = await runtime.sessions.get(session.session_id)
        assert again is not session
        session, thread = again, await again.thread("main")
        viewer = await Viewer.of(thread)
