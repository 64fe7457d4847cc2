"""Cases about profiles side by side that no other test proves: environments, scopes, hops, caches, names, schedules.

They are in one file because they share one shape: two homes that define the same things differently, asked in turn.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
import trio.lowlevel

from hermes_ws.agent import definition
from hermes_ws.contract.errors import HermesError, ProfileUnknown, SessionUnknown
from hermes_ws.contract.methods.sessions import ListParams
from hermes_ws.scope import dotenv
from hermes_ws.scope.config import load_config
from hermes_ws.scope.current import Bound, NothingBound, bind, bound, in_thread
from hermes_ws.scope.environment import child_environment, split
from hermes_ws.scope.home import HomesRoot
from hermes_ws.scope.identity import ProfileName
from hermes_ws.scope.profile_scope import load_scope
from hermes_ws.scope.secrets import Secrets
from hermes_ws.session.ports import Counted
from tests.session.house import House, eventually, new_session, say

A, B = ProfileName("default"), ProfileName("work")
AUTO = "approvals:\n  mode: auto\n"


@pytest.fixture
def house(house: House) -> House:
    house.home("work")
    return house


async def output_of(house: House, name: ProfileName, command: str) -> str:
    assert house.host is not None
    runtime = await house.host.open(name)
    _, thread, viewer = await new_session(runtime)
    await say(thread, f"/do run {command}", "one")
    ended = await viewer.until("tool.complete")
    await viewer.until("execution.finished")
    viewer.leave()
    return str(ended["payload"]["output"])


# --- ENV -------------------------------------------------------------------------------------------------------------


async def test_env_02_what_only_the_launch_profile_sets_is_missing_elsewhere(house: House) -> None:
    """A setting or key of A is, in B, B's default or a clear absence; never A's value."""
    house.launch_secrets = {"AUX_KEY": "aux-of-launch-0001"}
    house.home("default", config=f"{AUTO}terminal:\n  deadline_s: 7\n  env: [AUX_KEY]\n")
    house.home("work", config=f"{AUTO}terminal:\n  env: [AUX_KEY]\n")
    async with house.served() as host:
        launch, work = (await host.open(A)).scope, (await host.open(B)).scope
        assert launch.secrets.get("AUX_KEY") == "aux-of-launch-0001"
        assert (work.terminal.deadline_s, launch.terminal.deadline_s) == (120, 7)
        with pytest.raises(HermesError, match="no secret AUX_KEY"):
            work.secrets.reveal("AUX_KEY")
        assert "[]" in await output_of(house, B, 'echo "[$AUX_KEY]"')


async def test_env_03_an_undeclared_name_of_one_is_in_no_command_of_another(house: House) -> None:
    """In the foreground, in the background of the shell, and under a terminal of its own."""
    house.home("default", config=f"{AUTO}terminal:\n  env: [ONLY_A]\n", env="ONLY_A=only-in-a-0001\n")
    house.home("work", config=AUTO, env="ONLY_B=only-in-b-0002\n")
    async with house.served() as host:
        await host.open(A)
        for command in ("env", "(env) & wait", "setsid -w env", "script -qc env /dev/null || env"):
            shown = await output_of(house, B, command)
            assert "ONLY_A" not in shown
            assert "ONLY_B" not in shown, "a name that terminal.env does not list"
            assert "HERMES_HOME=" in shown


async def test_env_14_no_variable_of_the_process_changes_how_a_profile_behaves(house: House) -> None:
    """Behaviour is the profile's: whatever else is in the environment is a secret of the launch profile, or nothing."""
    started = split({"PATH": "/bin", "MODE": "m1", "HERMES_MAX_TURNS": "3", "HTTPS_PROXY": "http://evil:1"})
    assert set(started.base) == {"PATH"}
    assert set(started.launch_secrets) == {"MODE", "HTTPS_PROXY"}
    house.launch_secrets = started.launch_secrets
    house.home("work", config="agent:\n  max_turns: 9\n")
    async with house.served() as host:
        launch, work = (await host.open(A)).scope, (await host.open(B)).scope
        assert (launch.config.agent.max_turns, work.config.agent.max_turns) == (40, 9)
        assert "HTTPS_PROXY" not in child_environment(started.base, scope=launch)


def test_env_15_the_file_of_the_root_is_no_part_of_a_named_profile(tmp_path: Path) -> None:
    """In the classic layout the root is a home as well: its login stays in it."""
    home = tmp_path / "profiles" / "named"
    home.mkdir(parents=True)
    (tmp_path / ".env").touch(mode=0o600)
    (tmp_path / ".env").write_text("SERVER_LOGIN=login-of-the-root\nSHARED_URL=http://a\n")
    root = HomesRoot.classic(tmp_path, None)
    name = ProfileName("named")
    scope = load_scope(name, root.find(name), launch_secrets=None, loaded=1, homes=root.homes_paths())
    assert scope.secrets.names() == frozenset()


# --- SCOPE -----------------------------------------------------------------------------------------------------------


async def test_scope_01_each_session_method_works_on_the_home_that_was_named(house: House) -> None:
    async with house.served() as host:
        for name in (A, B):
            await new_session(await host.open(name), title=f"of {name}")
        for name, other in ((A, B), (B, A), (A, B)):
            runtime = await host.open(name)
            listed = (await runtime.sessions.list(ListParams())).sessions
            assert [row.title for row in listed] == [f"of {name}"]
            foreign = (await (await host.open(other)).sessions.find(latest=True)).session_id
            with pytest.raises(SessionUnknown):
                await runtime.sessions.get(foreign)


async def test_scope_02_a_reference_is_resolved_from_the_own_home_or_refused(house: House) -> None:
    """A name that only A defines is an error in B that says where to put it, and works in A, the launch profile."""
    house.home("default", env="K=key-of-a-0001\n")
    async with house.served() as host:
        assert (await host.open(A)).scope.secrets.expand("${K}", where="x") == "key-of-a-0001"
        with pytest.raises(HermesError, match="does not define K"):
            (await host.open(B)).scope.secrets.expand("${K}", where="x")


async def test_scope_05_same_named_definitions_show_their_own_text(house: House) -> None:
    for name in ("default", "work"):
        agents = house.home(name) / "agents"
        agents.mkdir()
        (agents / "same.md").write_text(f"---\nname: same\ndescription: of {name}\n---\nBody of {name}.\n")
    async with house.served() as host:
        for name, other in ((A, B), (B, A), (A, B)):
            runtime = await host.open(name)
            with bind(Bound(runtime.scope)):
                shown = str(definition.load(runtime.scope.home, "same"))
            assert f"Body of {name}." in shown
            assert f"of {other}" not in shown


async def test_scope_08_a_fresh_profile_makes_its_own_database(house: House) -> None:
    async with house.served() as host:
        launch = await host.open(A)
        before = launch.sessions.stored
        _, thread, viewer = await new_session(await host.open(B))
        await say(thread, "/do say hello", "one")
        await viewer.until("execution.finished")
        assert (house.root / "work" / "state" / "sessions.db").exists()
        assert (await launch.sessions.list(ListParams())).sessions == []
        assert launch.sessions.stored == before


async def test_scope_10_what_is_made_while_profiles_change_places_is_its_own(house: House) -> None:
    async with house.served() as host:

        async def make(name: ProfileName) -> None:
            for _ in range(25):
                runtime = await host.open(name)
                with bind(Bound(runtime.scope)):
                    session, _, viewer = await new_session(runtime)
                    viewer.leave()
                assert session.session_id.startswith(runtime.scope.identity.origin)
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            for name in (A, B, A, B):
                nursery.start_soon(make, name)
        assert [(await host.open(name)).sessions.stored for name in (A, B)] == [50, 50]


# --- CTX -------------------------------------------------------------------------------------------------------------


async def test_ctx_04_overlapping_work_reads_its_own_settings_twice_alike(house: House) -> None:
    for name in ("default", "work"):
        house.home(name, config=f"model:\n  name: model-of-{name}\n")
    async with house.served() as host:
        seen: list[tuple[str, str]] = []

        async def job() -> None:
            for _ in range(2):
                seen.append((bound().scope.profile.text, bound().scope.config.model.name))
                await trio.sleep(0.005)

        for _ in range(10):
            for name in (A, B):
                (await host.open(name)).start_soon(job, name="job")
        await eventually(lambda: len(seen) == 40)
        assert set(seen) == {("default", "model-of-default"), ("work", "model-of-work")}


async def test_ctx_05_work_on_a_plain_pool_is_bound_to_nobody(house: House) -> None:
    async with house.served() as host:
        runtime = await host.open(B)
        with bind(Bound(runtime.scope)):
            assert await in_thread(runtime.limiter, lambda: bound().scope.profile) == B
            loop = trio.lowlevel.current_trio_token()
            assert loop is not None

            def plain() -> str:
                import concurrent.futures

                with concurrent.futures.ThreadPoolExecutor(1) as pool:
                    return str(type(pool.submit(_raised).result()))

            assert "NothingBound" in await in_thread(runtime.limiter, plain)


def _raised() -> Exception:
    try:
        bound()
    except NothingBound as nothing:
        return nothing
    raise AssertionError("something was bound")


async def test_ctx_10_ending_one_task_of_a_profile_leaves_its_others(house: House) -> None:
    async with house.served() as host:
        runtime = await host.open(B)
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do stream 50 5", "one")
        await viewer.until("execution.started")
        background = runtime.after(60, trio.sleep_forever, name="a review")
        background.cancel()
        finished = await viewer.until("execution.finished")
        assert finished["payload"]["outcome"] == "completed"


# --- GLOBAL ----------------------------------------------------------------------------------------------------------


async def test_global_06_limits_and_hooks_are_read_per_profile_and_not_at_import(house: House) -> None:
    house.home("default", config="agent:\n  max_turns: 5\n")
    house.home("work", config="agent:\n  max_turns: 9\n")
    async with house.served() as host:
        for name, turns in ((A, 5), (B, 9), (A, 5)):
            assert (await host.open(name)).scope.config.agent.max_turns == turns


async def test_global_13_what_one_overrides_is_not_the_others(house: House) -> None:
    """A change in A's file is A's, and B's next read is of B's file."""
    async with house.served() as host:
        first, second = await host.open(A), await host.open(B)
        house.home("default", config="display:\n  skin: loud\n")
        assert (await first.fresh_scope()).config.display.skin == "loud"
        assert (await second.fresh_scope()).config.display.skin == "default"
        house.home("work", config="display:\n  skin: quiet\n")
        assert (await second.fresh_scope()).config.display.skin == "quiet"
        assert (await first.fresh_scope()).config.display.skin == "loud"


async def test_global_14_a_line_of_one_is_in_no_other_log(house: House) -> None:
    async with house.served() as host:
        for name in (A, B):
            (await host.open(name)).log.write("info", f"line-of-{name}")
    logs = {name: (house.root / name / "logs" / "profile.log").read_text() for name in ("default", "work")}
    assert "line-of-default" in logs["default"]
    assert "line-of-work" not in logs["default"]
    assert "line-of-work" in logs["work"]
    assert "line-of-default" not in logs["work"]


# --- IDENT -----------------------------------------------------------------------------------------------------------


async def test_ident_04_a_child_of_a_profile_is_told_its_home(house: House) -> None:
    """Both home variables are the profile's own; there is nothing to fall back to."""
    house.home("work", config=AUTO)
    async with house.served():
        shown = await output_of(house, B, 'echo "$HERMES_HOME|$HOME"')
        assert shown.strip() == f"{house.root}/work|{house.root}/work/home"


async def test_ident_12_the_launch_profile_is_bound_like_any_other(house: House) -> None:
    for name in ("default", "work"):
        house.home(name, config=AUTO)
    async with house.served():
        for name in (A, B):
            assert "fine" in await output_of(house, name, "echo fine")


# --- PARSE -----------------------------------------------------------------------------------------------------------


def test_parse_05_a_reference_in_a_file_of_secrets_is_literal_everywhere() -> None:
    values = dotenv.parse("K=abc\nL=${K}\n").values
    assert values["L"] == "${K}"
    assert Secrets(values).reveal("L") == "${K}"
    assert Secrets(values).expand("${L}", where="x") == "${K}", "what was expanded is not expanded again"


async def test_parse_07_the_file_that_is_shown_is_the_one_that_is_read(house: House) -> None:
    async with house.served() as host:
        scope = (await host.open(B)).scope
        assert scope.home.config == house.root / "work" / "config.yaml"
        house.home("work", config="display:\n  skin: x\n")
        assert load_config(scope.home.config).display.skin == "x"


async def test_parse_10_after_an_error_nothing_older_comes_back(house: House) -> None:
    house.home("work", config="display:\n  skin: one\n")
    async with house.served() as host:
        runtime = await host.open(B)
        house.home("work", config="display:\n  skin: two\n")
        assert (await runtime.fresh_scope()).config.display.skin == "two"
        house.home("work", config="display: [\n")
        for _ in range(2):
            with pytest.raises(HermesError):
                await runtime.fresh_scope()
        assert runtime.scope.config.display.skin == "two"


# --- SCHED -----------------------------------------------------------------------------------------------------------


async def test_sched_01_jobs_of_two_profiles_in_one_moment_find_their_own_files(house: House) -> None:
    """SCHED-02, SCHED-08 as well: bound before anything of the job runs, model or not."""
    for name in ("default", "work"):
        (house.home(name) / "job").write_text(name)
    async with house.served() as host:
        found: list[tuple[str, str]] = []

        async def job() -> None:
            scope = bound().scope
            text = await in_thread(bound_limiter[scope.profile.text], (scope.home.path / "job").read_text)
            found.append((scope.profile.text, text))

        runtimes = [await host.open(name) for name in (A, B)]
        bound_limiter = {runtime.name.text: runtime.limiter for runtime in runtimes}
        for _ in range(50):
            for runtime in runtimes:
                runtime.after(0.001, job, name="job")
        await eventually(lambda: len(found) == 100)
        assert set(found) == {("default", "default"), ("work", "work")}


async def test_sched_07_a_second_server_on_a_home_is_refused_and_schedules_nothing(house: House) -> None:
    async with house.served() as host:
        await host.open(B)
        other = House(house.root)
        async with trio.open_nursery() as nursery:
            second = other.make_host()
            await nursery.start(second.run)
            with pytest.raises(HermesError, match="owned by"):
                await second.open(B)
            nursery.cancel_scope.cancel()


async def test_ident_05_a_route_to_a_deleted_profile_makes_nothing(house: House) -> None:
    house.people.counted = Counted(with_right=0, capable=0)
    async with house.served() as host:
        await host.open(B)
        await host.life.delete(B, 0)
        with pytest.raises(ProfileUnknown):
            await host.open(B)
        assert sorted(os.listdir(house.root)) == ["default"]
