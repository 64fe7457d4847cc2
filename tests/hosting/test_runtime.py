"""An open profile: whose its tasks are, what it loads, and that it ends whole."""

from __future__ import annotations

import hashlib
import json

import pytest
import trio

from hermes_ws.contract.errors import Draining, ProfileUnusable
from hermes_ws.contract.methods.questions import AnswerParams
from hermes_ws.hosting.runtime import State
from hermes_ws.scope.current import Bound, bind, bound
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.identity import ProfileName
from tests.session.house import OWNER, PATIENCE_S, House, eventually, new_session, say

WORK = ProfileName("work")


async def test_a_task_takes_its_owners_scope_and_not_its_starters(house: House) -> None:
    # CTX-12
    async with house.served() as host:
        owner, starter = await host.open(WORK), await host.open(ProfileName("default"))
        seen: list[Bound] = []
        done = trio.Event()

        async def look() -> None:
            seen.append(bound())
            done.set()

        with bind(Bound(starter.scope, "connection", "session", 3)):
            owner.start_soon(look, name="look")
            await done.wait()
        assert seen == [Bound(owner.scope, None, None, None)]
        owner.close()
        await owner.ended.wait()
        with pytest.raises(Draining):
            owner.start_soon(look, name="look")


async def test_a_task_that_fails_ends_its_profile_and_no_other(house: House) -> None:
    async with house.served() as host:
        failing, other = await host.open(WORK), await host.open(ProfileName("default"))

        async def fail() -> None:
            raise ValueError("a bug")

        failing.start_soon(fail, name="bug")
        with trio.fail_after(PATIENCE_S):
            await failing.ended.wait()
        assert failing.state is State.FAILED
        assert isinstance(failing.failure, ProfileUnusable)
        assert "a bug" not in failing.failure.message
        assert other.state is State.OPEN
        log = (house.root / "work" / "logs" / "profile.log").read_text()
        assert "ValueError: a bug" in log
        again = await host.open(WORK)
        assert again.state is State.OPEN


async def test_launch_secrets_belong_to_the_launch_profile_alone(house: House) -> None:
    house.launch_secrets = {"LAUNCHED": "launch-value-123456"}
    async with house.served() as host:
        launch, work = await host.open(ProfileName("default")), await host.open(WORK)
        assert launch.scope.secrets.names() == {"LAUNCHED"}
        assert work.scope.secrets.names() == frozenset()


async def test_a_change_of_the_files_counts_from_the_next_execution_on(house: House) -> None:
    house.home("work", config="terminal:\n  env: [TOKEN]\n", env="TOKEN=first-value-1234\n")
    async with house.served() as host:
        runtime = await host.open(WORK)
        _, thread, viewer = await new_session(runtime)
        assert await runtime.fresh_scope() is runtime.scope
        house.home("work", env="TOKEN=second-value-5678\n")
        await say(thread, "/do say hello", "one")
        await viewer.until("execution.finished", outcome="completed")
        assert runtime.scope.loaded == 2
        assert runtime.scope.secrets.reveal("TOKEN") == "second-value-5678"
        assert (await runtime.reload()).loaded == 3


async def test_files_that_became_unusable_fail_the_execution_and_say_what_to_mend(house: House) -> None:
    async with house.served() as host:
        runtime = await host.open(WORK)
        _, thread, viewer = await new_session(runtime)
        house.home("work", config="model:\n  nammme: x\n")
        await say(thread, "/do say hello", "one")
        finished = await viewer.until("execution.finished")
        assert finished["payload"]["outcome"] == "failed"
        assert finished["payload"]["error"]["type"] == "profile_unusable"
        assert "nammme" in finished["payload"]["error"]["message"]
        house.home("work", config="model:\n  name: x\n")
        await say(thread, "/do say hello", "two")
        await viewer.until("execution.finished", outcome="completed")


async def test_an_execution_keeps_the_scope_that_it_began_with(house: House) -> None:
    house.home("work", config="terminal:\n  env: [TOKEN]\napprovals:\n  mode: auto\n", env="TOKEN=first-value-1234\n")
    async with house.served() as host:
        runtime = await host.open(WORK)
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do ask Go on?\n\n/do run printf %s $TOKEN | sha256sum", "one")
        question = await house.people.question()
        house.home("work", env="TOKEN=second-value-5678\n")
        assert (await runtime.reload()).loaded == 2
        await runtime.sessions.answer(AnswerParams(id=question.id, result={"answers": {}}), OWNER)
        complete = await viewer.until("tool.complete", name="terminal")
        assert hashlib.sha256(b"first-value-1234").hexdigest() in complete["payload"]["output"]


async def test_lines_that_do_not_parse_are_reported_without_their_values(house: House) -> None:
    house.home("work", env="GOOD=value-that-is-fine\nthis is no line\n")
    async with house.served() as host:
        runtime = await host.open(WORK)
        assert len(runtime.problems) == 1
        assert runtime.problems[0].startswith(".env, line 2: ")


async def test_sessions_in_one_directory_share_a_warden_and_others_have_their_own(house: House) -> None:
    async with house.served() as host:
        runtime = await host.open(WORK)
        project = house.root.parent / "project"
        project.mkdir()
        scope = runtime.scope
        shared = await runtime.warden_for(scope, scope.home.user)
        below = scope.home.user / "deep"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runtime.warden_for, scope, project)
            nursery.start_soon(runtime.warden_for, scope, project)
        own = await runtime.warden_for(scope, project)
        assert (await runtime.warden_for(scope, below)).warden is shared.warden
        assert own.warden is not shared.warden
        assert project not in shared.grants.write
        assert runtime.statistics().wardens == 2
        await own.warden.close()
        assert (await runtime.warden_for(scope, project)).warden.alive
    assert not shared.warden.alive


async def test_a_warden_without_work_ends_and_the_next_command_starts_one(house: House) -> None:
    house.home("work", config="warden:\n  idle_s: 0.1\napprovals:\n  mode: auto\n")
    async with house.served() as host:
        runtime = await host.open(WORK)
        _, thread, viewer = await new_session(runtime)
        for number in ("one", "two"):
            await say(thread, "/do run echo here", number)
            complete = await viewer.until("tool.complete")
            assert "here" in complete["payload"]["output"]
            await eventually(lambda: runtime.statistics().wardens == 0)


async def test_a_bug_of_ours_is_told_by_its_number_and_written_into_the_profiles_log(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.home("work", env="TOKEN=secret-value-1234\n")

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the secret-value-1234 was in it")

    monkeypatch.setattr("hermes_ws.session.briefing.choose", broken)
    async with house.served() as host:
        _, thread, viewer = await new_session(await host.open(WORK))
        await say(thread, "hello", "one")
        finished = await viewer.until("execution.finished")
        error = finished["payload"]["error"]
        assert error["type"] == "internal"
        assert "secret-value-1234" not in json.dumps(finished)
    lines = [json.loads(line) for line in (house.root / "work" / "logs" / "profile.log").read_text().splitlines()]
    found = next(line for line in lines if line["event"] == "internal")
    assert found["incident"] in error["message"]
    assert "«secret:TOKEN»" in found["stack"]
    assert "secret-value-1234" not in json.dumps(lines)


async def test_a_bug_while_a_profile_opens_is_in_the_log_of_the_process_without_its_words(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """There is no profile's log yet that could say it; and what an exception says may be what a profile keeps."""

    kept = "a value of this profile"

    def prepare(name: ProfileName, home: ProfileHome) -> None:
        raise ValueError(kept)

    async with house.served() as host:
        with monkeypatch.context() as patched:
            patched.setattr("hermes_ws.hosting.runtime.prepare", prepare)
            with pytest.raises(ProfileUnusable) as caught:
                await host.open(WORK)
        assert kept not in caught.value.message
        (told,) = [record.getMessage() for record in caplog.records if record.name.startswith("hermes_ws.")]
        assert "profile work failed: ValueError" in told
        assert "in prepare" in told
        assert kept not in told
        assert (await host.open(WORK)).state is State.OPEN
