"""Opening profiles on demand, each for itself, and finding the one that an id belongs to."""

from __future__ import annotations

import shutil

import pytest
import trio

from hermes_ws.contract.errors import (
    Draining,
    LimitReached,
    ProfileUnknown,
    ProfileUnusable,
    SessionUnknown,
)
from hermes_ws.contract.methods.sessions import CreateParams
from hermes_ws.hosting.host import Host
from hermes_ws.hosting.runtime import ProfileRuntime, State
from hermes_ws.scope.identity import ProfileName
from tests.session.house import OWNER, PATIENCE_S, House, new_session, say

DEFAULT, WORK = ProfileName("default"), ProfileName("work")


def state_of(host: Host, name: ProfileName) -> str:
    return next(row.state for row in host.listing() if row.name == name.text)


async def test_profiles_open_at_first_use_and_no_other_is_touched(house: House) -> None:
    async with house.served() as host:
        assert [(row.name, row.state) for row in host.listing()] == [("default", "closed"), ("work", "closed")]
        runtime = await host.open(WORK)
        assert await host.open(WORK) is runtime
        row = next(row for row in host.listing() if row.name == "work")
        assert (row.id, row.state, row.sessions) == (runtime.scope.identity.id, "open", 0)
        assert row.confinement in ("kernel", "process")
        assert state_of(host, DEFAULT) == "closed"
        assert not (house.root / "default" / "state" / "sessions.db").exists()
        assert (house.root / "work" / "state" / "sessions.db").exists()


async def test_those_who_ask_at_the_same_time_share_one_opening(house: House) -> None:
    async with house.served() as host:
        found: list[ProfileRuntime] = []

        async def ask() -> None:
            found.append(await host.open(WORK))

        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(ask)
        assert len(set(map(id, found))) == 1
        assert found[0].scope.loaded == 1


async def test_a_profile_that_cannot_be_opened_harms_no_other(house: House) -> None:
    house.home("broken", config="model:\n  nammme: x\n")
    async with house.served() as host:
        other = await host.open(WORK)
        for _ in range(2):
            with pytest.raises(ProfileUnusable):
                await host.open(ProfileName("broken"))
        assert state_of(host, ProfileName("broken")) == "failed"
        assert await host.open(WORK) is other
        assert other.state is State.OPEN
        house.home("broken", config="model:\n  name: x\n")
        assert (await host.open(ProfileName("broken"))).scope.config.model.name == "x"


async def test_a_profile_that_is_not_there_is_unknown_and_nothing_is_made(house: House) -> None:
    # IDENT-05
    shutil.rmtree(house.root / "work")
    async with house.served() as host:
        for _ in range(2):
            with pytest.raises(ProfileUnknown):
                await host.open(WORK)
        assert not (house.root / "work").exists()
        with pytest.raises(ProfileUnknown):
            await host.named("nobody")
        assert host.own_name("work") is None


async def test_default_means_the_launch_profile_which_is_bound_like_any_other(house: House) -> None:
    # IDENT-12
    for name in ("default", "work"):
        house.home(name, config="approvals:\n  mode: auto\n")
    async with house.served() as host:
        for name in ("default", "work"):
            runtime = await host.open(await host.named(name))
            _, thread, viewer = await new_session(runtime)
            await say(thread, "/do run true", "one")
            await viewer.until("tool.complete", is_error=False)
            await viewer.until("execution.finished", outcome="completed")


async def test_a_profile_is_found_by_its_id(house: House) -> None:
    async with house.served() as host:
        identity = (await host.open(WORK)).scope.identity
    async with house.served() as host:
        assert await host.named(identity.id) == WORK
        assert host.own_name("work") == "work"
        assert state_of(host, DEFAULT) == "closed"


async def test_a_session_id_tells_its_home_and_no_other_is_opened(house: House) -> None:
    async with house.served() as host:
        session, _ = await (await host.open(WORK)).sessions.create(CreateParams(), OWNER)
    async with house.served() as host:
        assert await host.owner_of(session.session_id) == WORK
        origin = session.session_id.split("-")[0]
        assert await host.owner_of(f"srq-{origin}-1") == WORK
        for unknown in ("zzzzzzzz-1", "", "nonsense", "srq-zzzzzzzz-1", "srq"):
            assert await host.owner_of(unknown) is None
        assert {row.state for row in host.listing()} == {"closed"}


async def test_a_home_that_got_its_identity_while_served_is_found_when_it_is_closed_again(house: House) -> None:
    house.home("default", config="profiles:\n  max_open: 1\n")
    async with house.served() as host:
        assert await host.owner_of("zzzzzzzz-1") is None
        session, _ = await (await host.open(WORK)).sessions.create(CreateParams(), OWNER)
        with trio.fail_after(PATIENCE_S):
            await host.open(DEFAULT)
        assert state_of(host, WORK) == "closed"
        assert await host.owner_of(session.session_id) == WORK


async def test_a_renamed_home_is_found_by_its_old_sessions(house: House) -> None:
    async with house.served() as host:
        session, _ = await (await host.open(WORK)).sessions.create(CreateParams(), OWNER)
    (house.root / "work").rename(house.root / "office")
    async with house.served() as host:
        assert await host.owner_of(session.session_id) == ProfileName("office")
        runtime = await host.open(ProfileName("office"))
        assert await runtime.sessions.get(session.session_id)


async def test_a_copied_home_is_refused_until_it_has_an_identity_of_its_own(house: House) -> None:
    async with house.served() as host:
        await host.open(WORK)
    shutil.copytree(house.root / "work", house.root / "copy")
    async with house.served() as host:
        with pytest.raises(ProfileUnusable, match="copy of"):
            await host.open(ProfileName("copy"))
        assert (await host.open(WORK)).state is State.OPEN
    (house.root / "copy" / "profile.json").unlink()
    async with house.served() as host:
        assert (await host.open(ProfileName("copy"))).state is State.OPEN


async def test_a_second_server_on_the_same_home_is_refused(house: House) -> None:
    # STORE-06
    async with house.served() as first:
        await first.open(WORK)
        async with trio.open_nursery() as nursery:
            second = house.make_host()
            await nursery.start(second.run)
            with pytest.raises(ProfileUnusable, match="owned"):
                await second.open(WORK)
            assert (await second.open(DEFAULT)).state is State.OPEN
            await second.drain(0)
            nursery.cancel_scope.cancel()
        assert (await first.open(WORK)).state is State.OPEN


async def test_a_row_goes_into_the_database_of_the_profile_that_was_asked(house: House) -> None:
    # GLOBAL-09, SCOPE-08, SCOPE-10: A, B, A and interleaved
    async with house.served() as host:
        made: dict[str, list[str]] = {"default": [], "work": []}

        async def make(name: str) -> None:
            runtime = await host.open(ProfileName(name))
            _, created = await runtime.sessions.create(CreateParams(), OWNER)
            assert created.profile == name
            made[name].append(created.session_id)

        for name in ("default", "work", "default"):
            await make(name)
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(make, ("default", "work")[number % 2])
        for name, ids in made.items():
            runtime = await host.open(ProfileName(name))
            assert runtime.sessions.stored == len(ids)
            for session_id in ids:
                assert (await runtime.sessions.get(session_id)).session_id == session_id
            other = await host.open(ProfileName({"default": "work", "work": "default"}[name]))
            with pytest.raises(SessionUnknown):
                await other.sessions.get(ids[0])


async def test_the_one_that_was_used_longest_ago_makes_room(house: House) -> None:
    house.home("default", config="profiles:\n  max_open: 2\n")
    house.home("third")
    async with house.served() as host:
        oldest = await host.open(WORK)
        await host.open(DEFAULT)
        with trio.fail_after(PATIENCE_S):
            await host.open(ProfileName("third"))
        assert oldest.state is State.CLOSED
        assert state_of(host, DEFAULT) == "open"


async def test_profiles_in_use_make_no_room(house: House) -> None:
    house.home("default", config="profiles:\n  max_open: 1\n")
    async with house.served() as host:
        runtime = await host.open(WORK)
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do wait 1000", "one")
        await viewer.until("execution.started")
        with pytest.raises(LimitReached):
            await host.open(DEFAULT)
        thread.interrupt(1)
        await runtime.sessions.wait_until_idle()
        viewer.leave()
        with trio.fail_after(PATIENCE_S):
            await host.open(DEFAULT)
        assert runtime.state is State.CLOSED


async def test_a_profile_without_use_closes_and_opens_again(house: House) -> None:
    house.home("default", config="profiles:\n  idle_s: 0.2\n")
    async with house.served() as host:
        runtime = await host.open(WORK)
        with trio.fail_after(PATIENCE_S):
            await runtime.ended.wait()
        assert state_of(host, WORK) == "closed"
        assert runtime.failure is None
        again = await host.open(WORK)
        assert again is not runtime
        assert again.journal.epoch == 2


async def test_a_profile_that_somebody_watches_or_that_works_does_not_close(house: House) -> None:
    house.home("default", config="profiles:\n  idle_s: 0.4\n")
    async with house.served() as host:
        runtime = await host.open(WORK)
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do wait 1.5", "one")
        viewer.leave()
        await runtime.sessions.wait_until_idle()
        assert runtime.state is State.OPEN


async def test_a_drain_lets_what_runs_finish_and_begins_nothing(house: House) -> None:
    async with house.served() as host:
        runtime = await host.open(WORK)
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do wait 0.2\n/do say done", "one")
        await viewer.until("execution.started")
        await say(thread, "/do say later", "two")
        with trio.fail_after(PATIENCE_S):
            await host.drain(PATIENCE_S)
        await viewer.pull()
        assert [event["payload"]["outcome"] for event in viewer.events if event["type"] == "execution.finished"] == [
            "completed"
        ]
        assert runtime.state is State.CLOSED
        with pytest.raises(Draining):
            await host.open(DEFAULT)


async def test_a_drain_interrupts_what_does_not_finish_in_time(house: House) -> None:
    async with house.served() as host:
        runtime = await host.open(WORK)
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do say begun\n/do wait 1000", "one")
        await viewer.until("message.delta")
        with trio.fail_after(PATIENCE_S):
            await host.drain(0.05)
        await viewer.pull()
        finished = [event["payload"] for event in viewer.events if event["type"] == "execution.finished"]
        assert [each["outcome"] for each in finished] == ["interrupted"]
        whole = [event["payload"] for event in viewer.events if event["type"] == "message.complete"]
        assert whole[-1]["partial"]


async def test_cancelling_the_host_commits_what_was_under_way(house: House) -> None:
    house.home("work", config="approvals:\n  mode: auto\n")
    async with trio.open_nursery() as nursery:
        host = house.host = house.make_host()
        await nursery.start(host.run)
        runtime = await host.open(WORK)
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do run sleep 1000", "one")
        await viewer.until("tool.start")
        nursery.cancel_scope.cancel()
    await viewer.pull()
    assert [event["payload"]["outcome"] for event in viewer.events if event["type"] == "execution.finished"] == [
        "interrupted"
    ]
    assert runtime.ended.is_set()
    async with house.served() as host:
        runtime = await host.open(WORK)
        assert not runtime.journal.recovered
        assert (await runtime.sessions.find(latest=True)).session_id == thread.key.session_id


async def test_settings_of_the_launch_home_are_read_at_start(house: House) -> None:
    house.home("default", config="profiles:\n  max_open: 7\n")
    async with house.served() as host:
        assert host.launch_config.profiles.max_open == 7
    house.home("default", config="profiles: [\n")
    host = house.make_host()
    with pytest.raises(RuntimeError, match="does not run"):
        _ = host.launch_config
    with pytest.raises(ProfileUnusable):
        await host.run()
