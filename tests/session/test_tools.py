"""The tools of a turn on a real machine: files changed, lists and searches, background processes, skills, blobs."""

from __future__ import annotations

import json
from typing import Any

from hermes_ws.contract.methods.questions import AnswerParams
from hermes_ws.hosting.runtime import ProfileRuntime
from tests.session.house import OWNER, House, People, Viewer, eventually, new_session, say


def do(tool: str, **arguments: Any) -> str:
    return f"/do tool {tool} {json.dumps(arguments)}"


async def outputs(viewer: Viewer, count: int) -> list[str]:
    told = [await viewer.until("tool.complete") for _ in range(count)]
    return [each["payload"]["output"] for each in told]


async def test_a_patch_sees_a_file_as_it_is_although_the_model_does_not(house: House) -> None:
    house.home("default", env="MY_KEY=abcdef1234567890\n")
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        path = runtime.scope.home.user / "settings.ini"
        path.write_bytes(b"key = abcdef1234567890\r\ncolour = red\r\n")
        edit = [{"old": "colour = red", "new": "colour = blue"}]
        await say(thread, do("patch", path="settings.ini", edits=edit), "one")
        assert "edit 1: line 2" in (await outputs(viewer, 1))[0]
        assert path.read_bytes() == b"key = abcdef1234567890\r\ncolour = blue\r\n"
        wrong = [{"old": "key = «secret:MY_KEY»", "new": "key = x"}]
        await say(thread, do("patch", path="settings.ini", edits=wrong), "two")
        assert "stands for a secret" in (await outputs(viewer, 1))[0]
        near = [{"old": "key = abcdef", "new": "x"}, {"old": "key = abcd", "new": "x"}]
        await say(thread, do("patch", path="settings.ini", edits=near), "three")
        told = (await outputs(viewer, 1))[0]
        assert "Edit 2 of 2 was not made" in told
        assert "abcdef1234567890" not in json.dumps(viewer.events)


async def test_files_are_listed_and_searched(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime)
    (runtime.scope.home.user / "src").mkdir()
    (runtime.scope.home.user / "src" / "a.py").write_text("import os\nneedle = 1\n")
    text = f"{do('list_files', depth=2)}\n\n{do('search_files', expression='need.e')}"
    await say(thread, text, "one")
    listed, found = await outputs(viewer, 2)
    assert "src/a.py  21" in listed
    assert found == "src/a.py:2: needle = 1"


async def test_a_background_process_outlives_its_turn_and_is_ended(runtime: ProfileRuntime, people: People) -> None:
    _, thread, viewer = await new_session(runtime, yolo=True)
    await say(thread, do("terminal", command="echo up; exec cat", background=True), "one")
    [started] = await outputs(viewer, 1)
    process_id = started.split(" as ")[1].split(";")[0]
    await viewer.until("execution.finished", outcome="completed")
    await say(thread, do("process", action="write", process_id=process_id, text="hello\n"), "two")
    await viewer.until("execution.finished", outcome="completed")
    processes = runtime.ongoing.processes
    await eventually(lambda: "hello" in processes.output(None, process_id).text)
    looked, ended = (do("process", action=action, process_id=process_id) for action in ("tail", "kill"))
    await viewer.pull()
    await say(thread, f"{looked}\n\n{ended}", "three")
    tail, killed = await outputs(viewer, 2)
    assert tail == "up\nhello\n[running]"
    assert "ended" in killed
    assert not people.asked


async def test_what_is_cut_of_an_output_is_kept_as_a_blob(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime, yolo=True)
    await say(thread, "/do run seq 1 20000", "one")
    told = await viewer.until("tool.complete")
    assert told["payload"]["truncated"]
    whole = await runtime.journal.blobs.read(told["payload"]["blob"])
    assert whole.decode().split() == [str(number) for number in range(1, 20001)]


async def test_colours_are_kept_for_people_and_not_for_the_model(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime, yolo=True)
    await say(thread, r"/do run printf '\033[31mred\033[0m\n'", "one")
    told = await viewer.until("tool.complete")
    assert told["payload"]["output"] == "red"
    assert await runtime.journal.blobs.read(told["payload"]["blob"]) == b"\x1b[31mred\x1b[0m\n"


async def test_skills_and_earlier_sessions_are_of_the_profile(house: House) -> None:
    for name in ("default", "other"):
        skill = house.home(name) / "skills" / f"brew-{name}"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(f"---\ndescription: Tea of {name}.\n---\nBoil water for {name}.\n")
    async with house.served():
        for name in ("default", "other"):
            runtime = await house.runtime(name)
            _, thread, viewer = await new_session(runtime)
            await say(thread, f"/do say the teapot of {name}", "one")
            await viewer.until("execution.finished", outcome="completed")
        _, thread, viewer = await new_session(runtime)
        text = f"{do('skills_list')}\n{do('skill_view', name='brew-other')}\n{do('skill_view', name='brew-default')}\n"
        await say(thread, text + do("session_search", query="teapot"), "one")
        told = {}
        for _ in range(4):
            payload = (await viewer.until("tool.complete"))["payload"]
            told[payload["call_id"]] = payload["output"]
        listed, viewed, missing, found = (told[key] for key in sorted(told))
        assert listed == "brew-other: Tea of other."
        assert "Boil water for other." in viewed
        assert "has no skill 'brew-default'" in missing
        assert "teapot of other" in found
        assert "default" not in found
        assert len(found.splitlines()) == 2


async def test_an_answer_of_always_counts_for_the_next_turn(house: House, people: People) -> None:
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do run touch a", "one")
        question = await people.question()
        params = AnswerParams.model_validate({"id": question.id, "result": {"choice": "always"}})
        await runtime.sessions.answer(params, OWNER)
        await viewer.until("execution.finished", outcome="completed")
        _, second, watching = await new_session(runtime)
        await say(second, "/do run touch a", "two")
        await watching.until("execution.finished", outcome="completed")
        assert len(people.asked) == 1
