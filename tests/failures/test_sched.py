"""SCHED: jobs of a profile run in it, with what is its own, and once."""

from __future__ import annotations

from pathlib import Path

import trio

from hermes_ws.contract.methods.schedules import CreateScheduleParams
from hermes_ws.contract.methods.sessions import ListParams
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.wire.cursor import Cursor
from tests.session.house import PATIENCE_S, House, Viewer

TICKS = 5


async def outputs(runtime: ProfileRuntime, schedule_id: str) -> str:
    """What the last run's commands printed."""
    row = await runtime.schedules.run(schedule_id)
    assert row.last_session_id is not None
    session = await runtime.sessions.get(row.last_session_id)
    viewer = await Viewer.of(await session.thread("main"), Cursor(1, 0))
    with trio.fail_after(PATIENCE_S):
        await viewer.until("execution.finished")
    return "\n".join(event["payload"]["output"] for event in viewer.events if event["type"] == "tool.complete")


def two(house: House) -> tuple[Path, Path]:
    homes = house.root / "default", house.home("second")
    for home in homes:
        (home / "home").mkdir(exist_ok=True)
        (home / "home" / "script.txt").write_text(f"script of {home.name}\n")
        (home / "skills" / f"of-{home.name}").mkdir(parents=True)
        (home / "skills" / f"of-{home.name}" / "SKILL.md").write_text("---\ndescription: x\n---\n")
        (home / "memories").mkdir()
        (home / "memories" / "MEMORY.md").write_text(f"memory of {home.name}")
    return homes


async def test_sched_01_jobs_of_two_profiles_in_one_tick_find_their_own_scripts(house: House) -> None:
    """There is no home in a global that one could change under the other."""
    two(house)
    async with house.served():
        runtimes = [await house.runtime(name) for name in ("default", "second")]
        rows = [
            await each.schedules.create(CreateScheduleParams(prompt="/do run cat script.txt", every_s=60))
            for each in runtimes
        ]
        found: list[tuple[str, str]] = []

        async def job(runtime: ProfileRuntime, schedule_id: str) -> None:
            found.append((runtime.name.text, await outputs(runtime, schedule_id)))

        for _ in range(TICKS):
            async with trio.open_nursery() as nursery:
                for runtime, row in zip(runtimes, rows, strict=True):
                    nursery.start_soon(job, runtime, row.schedule_id)
        assert len(found) == 2 * TICKS
        for name, output in found:
            assert f"script of {name}" in output


async def test_sched_03_nothing_of_the_root_runs_in_another_profile(house: House) -> None:
    """A profile's schedules are rows of its own store: the other's server side has none to pick up."""
    two(house)
    async with house.served():
        root, second = await house.runtime(), await house.runtime("second")
        made = await root.schedules.create(CreateScheduleParams(prompt="/do say hello", every_s=60))
        await root.schedules.run(made.schedule_id)
        assert await second.schedules.list() == []
        assert await second.timers.all() == ()
        assert (await second.sessions.list(ListParams())).sessions == []


async def test_sched_08_a_job_has_the_identity_skills_and_memory_of_its_profile(house: House) -> None:
    """All of them from the one value that is bound: none can be of another profile."""
    two(house)
    async with house.served():
        second = await house.runtime("second")
        prompt = "/do run pwd\n/do tool skills_list {}\n/do tool memory " + '{"action": "add", "content": "noted"}'
        made = await second.schedules.create(CreateScheduleParams(prompt=prompt, every_s=60))
        printed = await outputs(second, made.schedule_id)
        assert str(house.root / "second" / "home") in printed
        assert "of-second" in printed
        assert "of-default" not in printed
        assert "memory of second" in printed
        assert (house.root / "default" / "memories" / "MEMORY.md").read_text() == "memory of default"
