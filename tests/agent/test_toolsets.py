"""The tools beyond terminal and single files, each through a whole turn."""

from __future__ import annotations

import json
from typing import Any

from hermes_ws.agent.approvals import ApprovalPolicy
from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.models.model import Piece, TextPiece, ToolCallPiece
from hermes_ws.agent.ports import Said
from hermes_ws.agent.tools.plan import Plan
from hermes_ws.contract.content import Message, ToolCallBlock
from tests.agent.scene import Replies, Scene, call, done
from tests.agent.twins import DIRECTORY, ONCE, AskerTwin, HandsTwin, LibraryTwin, finished, request

EVERYTHING = ("terminal", "files", "ask", "plan", "memory", "skills")


async def use(scene: Scene, *calls: Piece, **more: Any) -> list[ToolOutcome]:
    model = Replies([*calls, *done("tool_calls")], [TextPiece("ok"), *done()])
    await scene.run(request("go", toolsets=EVERYTHING, **more), model)
    scene.assert_valid()
    told = {told.call_id: outcome for told, outcome in scene.narrator.all("tool_complete")}
    return [told[each.call_id] for each in calls if isinstance(each, ToolCallPiece)]


async def test_a_patch_changes_a_file_as_it_is_and_tells_where() -> None:
    hands = HandsTwin(files={f"{DIRECTORY}/a.py": "x = 1\ny = 2\n"})
    edits = [{"old": "x = 1", "new": "x = 3"}]
    [told] = await use(Scene(hands=hands), call("patch", path="a.py", edits=edits))
    assert hands.files[f"{DIRECTORY}/a.py"] == "x = 3\ny = 2\n"
    assert told.output == "Changed a.py: 12 bytes.\nedit 1: line 1"
    assert not told.is_error


async def test_a_patch_that_does_not_apply_says_why_and_changes_nothing() -> None:
    hands = HandsTwin(files={f"{DIRECTORY}/a.py": "x = 1\n"})
    [told] = await use(Scene(hands=hands), call("patch", path="a.py", edits=[{"old": "x  = 1", "new": "x = 3"}]))
    assert told.is_error
    assert "only in white space" in told.output
    assert hands.files[f"{DIRECTORY}/a.py"] == "x = 1\n"


async def test_a_patch_outside_of_the_directory_is_asked() -> None:
    scene = Scene(hands=HandsTwin(files={"/etc/motd": "hi"}), asker=AskerTwin())
    [told] = await use(scene, call("patch", path="/etc/motd", edits=[{"old": "hi", "new": "ho"}]))
    assert "needs an approval" in told.output
    assert scene.hands.files["/etc/motd"] == "hi"


async def test_files_are_listed_and_searched_within_a_limit() -> None:
    hands = HandsTwin(files={f"{DIRECTORY}/{name}.py": f"import {name}\n" for name in ("a", "b", "c")})
    listed, found, none = await use(
        Scene(hands=hands),
        call("list_files", "c1", limit=2),
        call("search_files", "c2", expression="import b"),
        call("search_files", "c3", expression="nothing like it", literal=True),
    )
    assert listed.output == "a.py  9\nb.py  9\n[there is more: narrow it by path, pattern or depth]"
    assert listed.truncated
    assert found.output == "b.py:1: import b"
    assert none.output == "[nothing was found]"


async def test_a_background_command_is_started_seen_fed_and_ended() -> None:
    scene = Scene(asker=AskerTwin(ONCE, ONCE))
    outcomes = await use(
        scene,
        call("terminal", "c1", command="serve --port 1", background=True),
        call("process", "c2", action="write", process_id="p1", text="hello\n"),
        call("process", "c3", action="tail", process_id="p1"),
        call("process", "c4", action="list"),
        call("process", "c5", action="kill", process_id="p1"),
        call("process", "c6", action="tail", process_id="p9"),
    )
    assert [each.output for each in outcomes] == [
        "Started in the background as p1; see it with the tool `process`.",
        "Written. Look at its output with `tail`.",
        "hello\n[running]",
        "p1: running: serve --port 1",
        "p1: ended by signal 15: serve --port 1",
        "There is no process p9.",
    ]
    # Starting and writing were asked; looking and ending were not.
    assert [each.tool for each in scene.asker.approvals] == ["terminal", "process"]


async def test_a_process_call_that_lacks_what_it_needs_is_not_made() -> None:
    outcomes = await use(
        Scene(), call("process", action="tail"), call("process", "c2", action="write", process_id="p1")
    )
    assert ["process_id" in outcomes[0].output, "text" in outcomes[1].output] == [True, True]


async def test_a_plan_is_kept_and_read_back() -> None:
    items = [{"text": "look", "status": "completed"}, {"text": "change", "status": "in_progress"}, {"text": "test"}]
    first, second = await use(Scene(), call("todo", items=items), call("todo", "c2"))
    assert first.output == second.output == "[x] look\n[>] change\n[ ] test"


def test_a_plan_is_what_the_last_call_said() -> None:
    def said(number: int, items: object) -> Message:
        block = ToolCallBlock(call_id=f"c{number}", name="todo", arguments=json.loads(json.dumps({"items": items})))
        return Message(message_id=f"m{number}", role="assistant", text="", content=[block])

    plan = Plan()
    assert plan.shown() == "(the plan is empty)"
    plan.recall([said(1, [{"text": "old"}]), said(2, [{"text": "new"}]), said(3, [{"wrong": 1}])])
    assert plan.shown() == "[ ] new"


async def test_skills_and_earlier_sessions_are_looked_up_without_asking() -> None:
    said = [Said("s9", "Tea", "user", 0.0, "how to make tea"), Said("s8", "", "assistant", 86400.0, "make it so")]
    scene = Scene(library=LibraryTwin({"brewing": "Boil water."}, said), asker=AskerTwin())
    outcomes = await use(
        scene,
        call("skills_list", "c1"),
        call("skill_view", "c2", name="brewing"),
        call("skill_view", "c3", name="baking"),
        call("session_search", "c4", query="make"),
        policy=ApprovalPolicy(confined=False),
    )
    assert [each.output for each in outcomes] == [
        "brewing: For brewing.",
        "Boil water.",
        "This profile has no skill 'baking'.",
        "1970-01-01 Tea (user): how to make tea\n1970-01-02 s8 (assistant): make it so",
    ]
    assert not scene.asker.asked


async def test_a_session_without_a_library_says_so() -> None:
    [told] = await use(Scene(), call("skills_list"))
    assert told.is_error
    assert "neither skills" in told.output


async def test_what_is_cut_and_what_is_coloured_is_kept_whole() -> None:
    long, red = "line\n" * 20_000, "\x1b[31mred\x1b[0m"
    hands = HandsTwin(commands={"ls a": finished(long), "ls b": finished(red), "ls c": finished("plain")})
    cut, coloured, plain = await use(
        Scene(hands=hands), *(call("terminal", name, command=f"ls {name}") for name in ("a", "b", "c"))
    )
    assert (cut.truncated, cut.whole) == (True, long)
    assert (coloured.output, coloured.whole) == ("red", red)
    assert plain.whole is None
