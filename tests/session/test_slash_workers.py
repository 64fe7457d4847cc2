"""The slash worker: persistent, one for a session, replaced when it dies, and never longer than what it is for."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trio.testing

from hermes_ws.contract import errors
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.session import commands, slash_workers
from hermes_ws.session.hands import SessionHands
from tests.session.house import House, eventually, new_session
from tests.session.slashing import SIGN, below, command_line, hands_of, type_in, workers

CONFIG = """terminal:
  env: [TOKEN]
quick_commands:
  parent: {type: exec, command: 'echo $PPID'}
  say: {type: exec, command: 'echo {args}; echo $TOKEN >&2; pwd'}
  slow: {type: exec, command: 'echo begun; sleep 1000'}
  stubborn: {type: exec, command: 'trap "" TERM; echo begun; setsid sleep 1000 & sleep 1000'}
  kill: {type: exec, command: 'echo begun >>marks; kill -9 $PPID; sleep 1000'}
  group: {type: exec, command: 'trap "exit 3" TERM; kill 0; sleep 1000'}
  leaves: {type: exec, command: 'sleep 1000 & echo left'}
  flood: {type: exec, command: 'head -c 5000000 /dev/zero | tr "\\0" x; echo end'}
"""


@pytest.fixture
async def runtime(house: House) -> AsyncIterator[ProfileRuntime]:
    house.home("default", config=CONFIG, env="TOKEN=value-of-the-token\n")
    async with house.served():
        yield await house.runtime()


async def test_the_commands_of_a_session_share_one_worker_and_those_of_another_have_theirs(
    runtime: ProfileRuntime,
) -> None:
    (one, _, _), (other, _, _) = await new_session(runtime), await new_session(runtime)
    first = [await type_in(runtime, one, "/parent") for _ in range(3)]
    assert len(set(first)) == 1
    assert await type_in(runtime, other, "/parent") not in first
    assert len(await workers(runtime)) == runtime.ongoing.slash.count == 2


async def test_a_command_has_the_environment_and_the_directory_of_its_session(runtime: ProfileRuntime) -> None:
    session, _, _ = await new_session(runtime)
    assert await type_in(runtime, session, "/say it's me") == (f"it's me\n«secret:TOKEN»\n{runtime.home.user}\n")


async def test_what_is_asked_for_meanwhile_waits_its_turn(runtime: ProfileRuntime) -> None:
    session, _, _ = await new_session(runtime)
    said: list[str] = []

    async def ask(word: str) -> None:
        said.append((await type_in(runtime, session, f"/say {word}")).partition("\n")[0])

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(ask, f"word{number}")
    assert sorted(said) == [f"word{number}" for number in range(5)]
    assert runtime.ongoing.slash.count == 1


async def test_one_that_died_between_two_commands_is_replaced(runtime: ProfileRuntime) -> None:
    session, _, _ = await new_session(runtime)
    before = await type_in(runtime, session, "/parent")
    (pid,) = await workers(runtime)
    os.kill(pid, signal.SIGKILL)
    assert (await type_in(runtime, session, "/say again")).startswith("again\n")
    await type_in(runtime, session, "/parent")
    (now,) = await workers(runtime)
    assert now != pid
    assert before


async def test_one_that_dies_under_a_command_says_so_and_the_command_is_not_begun_again(
    runtime: ProfileRuntime,
) -> None:
    session, _, _ = await new_session(runtime)
    said = await type_in(runtime, session, "/kill")
    assert (runtime.home.user / "marks").read_text() == "begun\n"
    assert "ended before the command did" in said
    granted = await runtime.warden_for(runtime.scope, runtime.home.user)
    await eventually(lambda: not any(b"sleep" in command_line(each) for each in below(granted.warden.statistics().pid)))
    assert (await type_in(runtime, session, "/say on")).startswith("on\n")


async def test_the_deadline_ends_the_command_with_all_that_it_started_and_the_next_one_runs(
    runtime: ProfileRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what ignores the request and left the group."""
    session, _, _ = await new_session(runtime)
    await type_in(runtime, session, "/parent")
    monkeypatch.setattr(commands, "DEADLINE_S", 1.0)
    granted = await runtime.warden_for(runtime.scope, runtime.home.user)
    said = await type_in(runtime, session, "/stubborn")
    assert said == "begun\n\n[ended after 1 s, with all that it had started]"
    assert not any(b"sleep" in command_line(pid) for pid in below(granted.warden.statistics().pid))
    assert runtime.ongoing.slash.count == 0
    monkeypatch.undo()
    assert (await type_in(runtime, session, "/say on")).startswith("on\n")


async def test_cancelling_ends_the_command_before_it_returns(runtime: ProfileRuntime) -> None:
    session, _, _ = await new_session(runtime)
    granted = await runtime.warden_for(runtime.scope, runtime.home.user)

    def sleeps() -> bool:
        return any(b"sleep" in command_line(pid) for pid in below(granted.warden.statistics().pid))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(type_in, runtime, session, "/slow")
        await eventually(sleeps)
        nursery.cancel_scope.cancel()
    assert not sleeps()
    assert runtime.ongoing.slash.count == 0


async def test_a_command_that_signals_its_whole_group_ends_itself_and_not_the_worker(runtime: ProfileRuntime) -> None:
    session, _, _ = await new_session(runtime)
    before = await type_in(runtime, session, "/parent")
    assert await type_in(runtime, session, "/group") == "[exit code 3]"
    assert await type_in(runtime, session, "/parent") == before


async def test_what_a_command_leaves_behind_ends_with_it(runtime: ProfileRuntime) -> None:
    session, _, _ = await new_session(runtime)
    granted = await runtime.warden_for(runtime.scope, runtime.home.user)
    assert await type_in(runtime, session, "/leaves") == "left\n"
    assert not any(b"sleep" in command_line(pid) for pid in below(granted.warden.statistics().pid))
    assert await type_in(runtime, session, "/leaves") == "left\n"


async def test_a_flood_keeps_its_head_and_tail(runtime: ProfileRuntime) -> None:
    session, _, _ = await new_session(runtime)
    said = await (await hands_of(runtime, session)).slash(
        runtime.scope.config.quick_commands["flood"].command or "", deadline_s=60
    )
    assert said.truncated
    assert said.output.startswith("xxx")
    assert said.output.endswith("xend\n")
    assert "bytes left out" in said.output
    assert len(said.output) < runtime.scope.terminal.output_bytes + 100


async def test_a_directory_that_is_gone_is_an_error_and_no_worker_stays(runtime: ProfileRuntime) -> None:
    """TERM-05."""
    place = runtime.home.user / "work"
    place.mkdir()
    session, thread, _ = await new_session(runtime, cwd=str(place))
    place.rmdir()
    hands = SessionHands(runtime, runtime.scope, place, thread.key)
    with pytest.raises(errors.NotFound, match="work does not exist"):
        await hands.slash("true", deadline_s=10)
    assert runtime.ongoing.slash.count == 0
    place.mkdir()
    assert await type_in(runtime, session, "/say here") == f"here\n«secret:TOKEN»\n{place}\n"


async def test_it_ends_with_its_session_and_when_the_session_is_put_aside(runtime: ProfileRuntime) -> None:
    (one, _, viewer), (other, _, second) = await new_session(runtime), await new_session(runtime)
    for session in (one, other):
        await type_in(runtime, session, "/parent")
    await runtime.sessions.close(one.session_id)
    await eventually(lambda: runtime.ongoing.slash.count == 1)
    viewer.leave()
    second.leave()
    runtime.sessions.forget_idle(-1.0)
    await eventually(lambda: runtime.ongoing.slash.count == 0)
    assert await workers(runtime) == []


async def test_one_that_runs_something_is_put_aside_after_that(runtime: ProfileRuntime) -> None:
    session, _, viewer = await new_session(runtime)
    viewer.leave()
    said: list[str] = []
    fifo = runtime.home.user / "go"
    os.mkfifo(fifo)
    far_end = os.open(fifo, os.O_RDWR)

    async def wait_for_it() -> None:
        hands = await hands_of(runtime, session)
        said.append((await hands.slash("cat go; echo done", deadline_s=30)).output)

    granted = await runtime.warden_for(runtime.scope, runtime.home.user)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_for_it)
        await eventually(
            lambda: any(command_line(pid) == b"cat\0go\0" for pid in below(granted.warden.statistics().pid))
        )
        runtime.sessions.forget_idle(-1.0)
        await trio.testing.wait_all_tasks_blocked()
        assert runtime.ongoing.slash.count == 1
        os.write(far_end, b"went on\n")
        os.close(far_end)
    assert said == ["went on\ndone\n"]
    await eventually(lambda: runtime.ongoing.slash.count == 0)


async def test_one_that_is_not_used_ends_by_itself(house: House) -> None:
    house.home("default", config=f"{CONFIG}warden: {{idle_s: 1}}\n")
    async with house.served():
        runtime = await house.runtime()
        session, _, _ = await new_session(runtime)
        await type_in(runtime, session, "/parent")
        await eventually(lambda: runtime.ongoing.slash.count == 0)
        assert await type_in(runtime, session, "/parent")


async def test_another_policy_ends_what_it_runs_and_another_secret_what_it_had(
    runtime: ProfileRuntime, house: House
) -> None:
    session, _, _ = await new_session(runtime)
    await type_in(runtime, session, "/parent")
    house.home("default", env="TOKEN=another-value-of-it\n")
    await runtime.reload()
    await eventually(lambda: runtime.ongoing.slash.count == 0)
    assert "«secret:TOKEN»" in await type_in(runtime, session, "/say x")
    said: list[str] = []

    async def slow() -> None:
        said.append(await type_in(runtime, session, "/slow"))

    granted = await runtime.warden_for(runtime.scope, runtime.home.user)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(slow)
        await eventually(lambda: any(b"sleep" in command_line(pid) for pid in below(granted.warden.statistics().pid)))
        house.home("default", config=CONFIG.replace("terminal:", "terminal:\n  network: deny"))
        await runtime.reload()
    assert "ended by signal 15" in said[0] or "ended before the command did" in said[0]
    assert not any(b"sleep" in command_line(pid) for pid in below(granted.warden.statistics().pid))


async def test_it_does_not_outlive_its_profile(house: House) -> None:
    house.home("default", config=CONFIG)
    async with house.served():
        runtime = await house.runtime()
        session, _, _ = await new_session(runtime)
        await type_in(runtime, session, "/parent")
        pids = await workers(runtime)
        assert pids
    assert not any(SIGN in command_line(pid) for pid in pids)


@pytest.mark.parametrize("lie", ["out 999999999", "end 1 0", "begun\nbegun", "begun\nend 9000 0", "x" * 200, "out x"])
async def test_a_worker_that_lies_is_ended(runtime: ProfileRuntime, monkeypatch: pytest.MonkeyPatch, lie: str) -> None:
    session, _, _ = await new_session(runtime)
    script = f"read line; printf '%s\\n' '{lie}'; exec sleep 1000"
    monkeypatch.setattr(slash_workers, "ARGV", ("/bin/sh", "-c", script))
    with pytest.raises(errors.WardenFailed, match="nonsense"):
        await type_in(runtime, session, "/say x")
    assert runtime.ongoing.slash.count == 0
    monkeypatch.undo()
    assert (await type_in(runtime, session, "/say x")).startswith("x\n")


async def test_one_that_cannot_be_started_says_why(runtime: ProfileRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    session, _, _ = await new_session(runtime)
    monkeypatch.setattr(slash_workers, "ARGV", ("/nowhere/python",))
    with pytest.raises(errors.WardenFailed, match="No such file"):
        await type_in(runtime, session, "/say x")


async def test_a_refusal_tells_which_setting_grants_more(runtime: ProfileRuntime, tmp_path: Path) -> None:
    session, _, _ = await new_session(runtime)
    outside = tmp_path / "outside"
    outside.write_text("x")
    said = await (await hands_of(runtime, session)).slash(f"cat {outside}", deadline_s=30)
    assert said.explanation is not None
    assert "terminal.read" in said.explanation
