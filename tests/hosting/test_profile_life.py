"""Profiles come, change and go while others are served; nothing of one that is gone comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from hermes_ws.contract.errors import (
    AlreadyExists,
    HermesError,
    InvalidParams,
    PermissionDenied,
    ProfileUnknown,
    ProfileUnusable,
)
from hermes_ws.hosting import profile_copy, profile_life
from hermes_ws.hosting.new_home import STAGING, Seed
from hermes_ws.hosting.runtime_life import State
from hermes_ws.scope.identity import ProfileName
from tests.session.house import House, Viewer, eventually, new_session, say

WORK, OTHER, NEW = ProfileName("work"), ProfileName("other"), ProfileName("new")
AUTO = "approvals:\n  mode: auto\n"


async def test_a_created_profile_is_served_at_once(house: House) -> None:
    told: list[tuple[str, bool]] = []
    async with house.served() as host:
        host.follow(lambda name, gone: told.append((name, gone)))
        made = await host.life.create(NEW, Seed(config="model:\n  name: mine\n", soul="You are new."))
        runtime = await host.open(NEW)
        assert runtime.scope.identity == made.identity
        assert runtime.scope.config.model.name == "mine"
        assert [row.name for row in host.listing()] == ["default", "new", "work"]
        assert (await host.owner_of(f"{made.identity.origin}-x")) == NEW
    assert told == [("new", False)]
    assert (house.root / "new" / "SOUL.md").read_text() == "You are new."
    assert (house.root / "new").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["work", "default"])
async def test_a_name_that_is_taken_is_refused_and_nothing_is_left(house: House, name: str) -> None:
    async with house.served() as host:
        before = house.names()
        with pytest.raises(HermesError) as caught:
            await host.life.create(ProfileName(name), Seed())
        assert isinstance(caught.value, AlreadyExists | InvalidParams)
        assert house.names() == before


async def test_settings_that_cannot_be_read_make_no_profile(house: House) -> None:
    async with house.served() as host:
        before = house.names()
        with pytest.raises(ProfileUnusable):
            await host.life.create(NEW, Seed(config="model:\n  colour: red\n"))
        assert house.names() == before


async def test_a_new_home_commits_in_the_users_name(house: House, tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text(
        '[user]\n\tname = "Ada L."\n\temail = ada@example.org\n'
        '[credential]\n\thelper = store\n[user "x"]\n\tname = no\n'
    )
    async with house.served() as host:
        await host.life.create(NEW, Seed(user_home=tmp_path))
    written = (house.root / "new" / "home" / ".gitconfig").read_text()
    assert written == '[user]\n\tname = "Ada L."\n\temail = "ada@example.org"\n'


async def test_a_clone_takes_what_was_chosen_and_an_identity_of_its_own(house: House) -> None:
    """PLIFE-10: memory comes along only when it is named."""
    home = house.home("work", config="# mine\nmodel:\n  name: x\n", env="KEY=value-of-work-0001\n")
    for place in ("skills/a", "memories"):
        (home / place).mkdir(parents=True)
    (home / "skills" / "a" / "SKILL.md").write_text("skill")
    (home / "memories" / "MEMORY.md").write_text("memory")
    async with house.served() as host:
        original = await host.open(WORK)
        made = await host.life.clone(WORK, NEW, ["config", "skills"])
        assert made.identity.id != original.scope.identity.id
        assert made.identity.origin != original.scope.identity.origin
        clone = await host.open(NEW)
        assert clone.scope.config.model.name == "x"
        assert clone.scope.secrets.names() == frozenset()
    new = house.root / "new"
    assert (new / "config.yaml").read_text().startswith("# mine")
    assert (new / "skills" / "a" / "SKILL.md").read_text() == "skill"
    assert not (new / "memories").exists()
    assert not (new / ".env").exists()


async def test_settings_that_name_a_path_in_the_home_follow_it(house: House) -> None:
    home = house.home("work")
    (home / "home" / "sub").mkdir(parents=True)
    house.home("work", config=f"# of {home}/home\nterminal:\n  cwd: {home}/home/sub\n")
    async with house.served() as host:
        session, _, _ = await new_session(await host.open(WORK))
        assert session.record.cwd == str(home / "home" / "sub")
        await host.life.clone(WORK, OTHER, ["config", "files"])
        assert (await host.open(OTHER)).scope.terminal.cwd == house.root / "other" / "home" / "sub"
        await host.life.rename(WORK, NEW, 0)
        renamed = await host.open(NEW)
        assert renamed.scope.terminal.cwd == house.root / "new" / "home" / "sub"
        moved = await renamed.sessions.get(session.session_id)
        assert moved.record.cwd == str(house.root / "new" / "home" / "sub")


async def test_sessions_are_cloned_from_a_busy_profile_and_run_nothing_there(house: House) -> None:
    house.home("work", config=AUTO)
    async with house.served() as host:
        runtime = await host.open(WORK)
        session, thread, viewer = await new_session(runtime, title="told")
        await say(thread, "/do say remember the blue door", "one")
        await viewer.until("execution.finished")
        await say(thread, "/do stream 1000 20", "two")
        await viewer.until("execution.started")
        await say(thread, "/do say later", "three")
        made = await host.life.clone(WORK, NEW, ["config", "sessions"])
        clone = await host.open(NEW)
        copy = await clone.sessions.find(title="told")
        assert copy.session_id.startswith(f"{made.identity.origin}-")
        assert copy.session_id != session.session_id
        assert await host.owner_of(copy.session_id) == NEW
        assert await host.owner_of(session.session_id) == WORK
        taken = await (await copy.thread("main")).snapshot(None, messages=True)
        assert "remember the blue door" in str(taken.messages)
        assert taken.pending == []
        assert taken.execution is None
        assert copy.record.cwd == str(house.root / "new" / "home")
        assert session.busy
        assert thread.active is not None
        thread.active.interrupt()
        await viewer.until("execution.finished", outcome="interrupted")


async def test_a_rename_keeps_identity_and_sessions_and_leaves_no_ghost(house: House) -> None:
    """PLIFE-01, PLIFE-02, PLIFE-05: with a subscriber, an open session and a tool that runs."""
    house.home("work", config=AUTO)
    async with house.served() as host:
        other = await host.open(ProfileName("default"))
        _, busy, watching = await new_session(other)
        await say(busy, "/do stream 200 10", "other")
        runtime = await host.open(WORK)
        identity = runtime.scope.identity
        session, thread, viewer = await new_session(runtime)
        await say(thread, "/do run sleep 600", "one")
        await viewer.until("tool.start")
        asked = trio.Event()

        async def poll() -> None:
            while not asked.is_set():
                assert len([row for row in host.listing() if row.name in ("work", "new")]) == 1
                await trio.sleep(0.005)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            await host.life.rename(WORK, NEW, 0)
            asked.set()
        assert runtime.state is State.CLOSED
        renamed = await host.open(NEW)
        assert (renamed.scope.identity.id, renamed.scope.identity.origin) == (identity.id, identity.origin)
        assert await host.owner_of(session.session_id) == NEW
        again = await (await renamed.sessions.get(session.session_id)).thread("main")
        after = await Viewer.of(again)
        await say(again, "/do say still here", "two")
        await after.until("execution.finished", outcome="completed")
        with pytest.raises(ProfileUnknown):
            await host.open(WORK)
        runtime.log.write("info", "a straggler")
        await runtime.log.flush()
        await watching.until("execution.finished", outcome="completed")
    assert house.names() == ["default", "new"]


async def test_a_subscriber_of_a_renamed_profile_is_told_after_what_was_committed(house: House) -> None:
    house.home("work", config=AUTO)
    async with house.served() as host:
        runtime = await host.open(WORK)
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do run sleep 600", "one")
        await viewer.until("tool.start")
        await host.life.rename(WORK, NEW, 0)
        await viewer.until("execution.finished", outcome="interrupted")
        assert thread.tail.farewell is not None


async def test_who_asks_for_a_profile_while_it_is_renamed_waits_and_is_told(house: House) -> None:
    async with house.served() as host:
        await host.open(WORK)
        outcome: list[str] = []

        async def ask() -> None:
            try:
                await host.open(WORK)
                outcome.append("opened")
            except ProfileUnknown:
                outcome.append("unknown")

        async with host.closed(WORK, 0), trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            assert outcome == []
            (house.root / "work").rename(house.root / "new")
            nursery.cancel_scope.deadline = trio.current_time() + 0.01
        assert outcome == []
        await ask()
        assert outcome == ["unknown"]


async def test_what_runs_gets_its_time_before_a_profile_is_closed(house: House) -> None:
    async with house.served() as host:
        runtime = await host.open(WORK)
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do stream 20 10", "one")
        await viewer.until("execution.started")
        await host.life.rename(WORK, NEW, 30)
        finished = await viewer.until("execution.finished")
        assert finished["payload"]["outcome"] == "completed"


async def test_the_launch_profile_stays_as_it_is(house: House) -> None:
    async with house.served() as host:
        for attempt in (host.life.delete(host.launch, 0), host.life.rename(host.launch, NEW, 0)):
            with pytest.raises(PermissionDenied):
                await attempt


async def test_a_deleted_profile_is_gone_with_all_it_ran_and_stays_away(house: House) -> None:
    """PLIFE-04, PLIFE-06, IDENT-05."""
    house.home("work", config=AUTO)
    async with house.served() as host:
        runtime = await host.open(WORK)
        identity = runtime.scope.identity
        session, thread, viewer = await new_session(runtime)
        await say(thread, "/do run sleep 600", "one")
        await viewer.until("tool.start")
        await host.life.delete(WORK, 0)
        assert house.names() == ["default"]
        assert runtime.statistics().wardens == 0
        runtime.log.write("info", "a straggler")
        await runtime.log.flush()
        for _ in range(2):
            with pytest.raises(ProfileUnknown):
                await host.open(WORK)
        assert await host.owner_of(session.session_id) is None
        assert house.names() == ["default"]
        made = await host.life.create(WORK, Seed())
        assert made.identity.origin != identity.origin
        assert (await host.open(WORK)).sessions.stored == 0


async def test_a_home_that_is_removed_under_a_running_session_is_not_made_again(house: House) -> None:
    house.home("work", config=AUTO)
    async with house.served() as host:
        runtime = await host.open(WORK)
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do stream 2000 20", "one")
        await viewer.until("message.delta")
        (house.root / "work").rename(house.root.parent / "elsewhere")
        with pytest.raises(ProfileUnusable):
            await runtime.fresh_scope()
        runtime.log.write("info", "a straggler")
        await runtime.reaper.look()
        await runtime.ended.wait()
        assert house.names() == ["default"]
        with pytest.raises(ProfileUnknown):
            await host.open(WORK)
    assert house.names() == ["default"]


async def test_what_a_crash_left_half_made_is_invisible_and_cleared(house: House) -> None:
    """PLIFE-07."""
    for leftover in (".staging-0123456789ab", ".deleted-work-0123456789ab"):
        (house.root / leftover / "state").mkdir(parents=True)
    async with house.served() as host:
        assert [row.name for row in host.listing()] == ["default", "work"]
        await eventually(lambda: house.names() == ["default", "work"])
        await host.life.create(NEW, Seed())


async def test_a_copied_home_is_refused_until_it_is_adopted(house: House) -> None:
    async with house.served() as host:
        runtime = await host.open(WORK)
        session, thread, viewer = await new_session(runtime, title="shared past")
        await say(thread, "/do say remember", "one")
        await viewer.until("execution.finished")
        async with host.closed(WORK, 0):
            profile_copy.copy_tree(house.root / "work", house.root / "other", profile_copy.Copied())
        await host.open(WORK)
        with pytest.raises(ProfileUnusable, match="is a copy of"):
            await host.open(OTHER)
        made = await host.life.adopt(OTHER)
        adopted = await host.open(OTHER)
        found = await adopted.sessions.find(title="shared past")
        assert found.session_id == session.session_id.replace(runtime.scope.identity.origin, made.identity.origin)
        assert (await host.open(WORK)).scope.identity.id == runtime.scope.identity.id


async def test_a_thousand_homes_on_disk_are_served_a_few_at_a_time(house: House) -> None:
    house.home("default", config="profiles:\n  max_open: 20\n")
    for number in range(1000):
        house.home(f"p{number:04}")
    async with house.served() as host:
        assert len(host.listing()) == 1002
        for number in range(40):
            await host.open(ProfileName(f"p{number * 25:04}"))
            assert len(host.open_runtimes()) <= 20
            for runtime in host.open_runtimes():
                runtime.asked -= 10
        await host.life.create(NEW, Seed())
        assert len(host.listing()) == 1003
    prepared = [path for path in house.root.iterdir() if (path / "state").exists()]
    assert len(prepared) <= 43


def test_leftovers_have_names_that_no_profile_can_have() -> None:
    for prefix in (STAGING, profile_life.DELETED):
        with pytest.raises(ProfileUnknown):
            ProfileName(f"{prefix}x")
