"""Approvals of a served profile: what an answer writes down, what is explained, and what yolo is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from hermes_ws.contract.methods.approvals import ExplainParams
from hermes_ws.contract.methods.questions import AnswerParams
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.session.explaining import explain
from hermes_ws.session.ports import Counted
from tests.session.house import OWNER, House, People, new_session, say

CONFIG = """\
# of this profile
approvals:
  rules:
    # careful with this one
    - {tool: terminal, command: "touch *", decision: ask}
"""


async def answer(runtime: ProfileRuntime, id: str, **result: Any) -> None:
    await runtime.sessions.answer(AnswerParams.model_validate({"id": id, "result": result}), OWNER)


async def test_always_is_written_to_the_profile_that_asked_and_to_no_other(house: House, people: People) -> None:
    """SCOPE: an approval belongs to its home."""
    for name in ("default", "other"):
        house.home(name, config=CONFIG)
    async with house.served():
        other, default = await house.runtime("other"), await house.runtime()
        _, thread, viewer = await new_session(other)
        await say(thread, "/do run touch made.txt", "one")
        question = await people.question(0)
        assert question.params["choices"] == ["once", "session", "always", "deny"]
        await answer(other, question.id, choice="always")
        await viewer.until("execution.finished", outcome="completed")
        written = (house.root / "other" / "config.yaml").read_text()
        assert "# careful with this one" in written
        assert written.index("made.txt") < written.index("touch *")
        assert (house.root / "default" / "config.yaml").read_text() == CONFIG
        # Another session of the profile is not asked; one of another profile is.
        _, second, watching = await new_session(other)
        await say(second, "/do run touch made.txt", "one")
        await watching.until("execution.finished", outcome="completed")
        assert len(people.asked) == 1
        _, third, _ = await new_session(default)
        await say(third, "/do run touch made.txt", "one")
        assert (await people.question(1)).session_id == third.key.session_id


async def test_a_decision_is_explained_part_by_part(house: House) -> None:
    house.home("default", config=CONFIG, env="TOKEN_OF_MINE=abcdef1234567890\n")
    async with house.served():
        runtime = await house.runtime()
        session, _, _ = await new_session(runtime)

        async def told(**params: Any) -> dict[str, Any]:
            asked = ExplainParams(session_id=session.session_id, **params)
            return (await explain(runtime, session, asked)).model_dump(exclude_defaults=True)

        line = await told(command="ls && touch abcdef1234567890; rm -r x")
        assert (line["decision"], line["danger"]) == ("ask", "it deletes")
        assert [part["decision"] for part in line["parts"]] == ["allow", "ask", "ask"]
        assert line["parts"][1]["rule"].startswith("approvals.rules[0]")
        assert "abcdef1234567890" not in json.dumps(line["parts"])
        hidden = await told(command="echo $(touch x)")
        assert hidden["parts"][0]["problems"] == ["it holds a substitution"]
        assert (await told(tool="read_file", path="a.txt"))["decision"] == "allow"
        outside = await told(tool="write_file", path="/etc/passwd")
        assert outside["always"] == [{"tool": "write_file", "path": "/etc/passwd", "decision": "allow"}]
        assert (await told(tool="weather", path=None))["rule"] == "no rule is about this tool"


async def test_yolo_is_the_sessions_own(runtime: ProfileRuntime, people: People) -> None:
    _, free, watching = await new_session(runtime, yolo=True)
    _, careful, _ = await new_session(runtime)
    await say(free, "/do run touch free.txt", "one")
    await watching.until("execution.finished", outcome="completed")
    assert not people.asked
    await say(careful, "/do run touch careful.txt", "one")
    question = await people.question()
    assert question.session_id == careful.key.session_id


async def test_an_unattended_run_waits_for_an_approval_that_nobody_there_can_give(house: House, people: People) -> None:
    house.home("default", config="questions: {deadline_s: 1}\n")
    people.counted = Counted(with_right=1, capable=0)
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do run touch a.txt", "one", finite=True, unattended=True)
        question = await people.question()
        await trio.sleep(1.2)  # Longer than a question waits otherwise; what is proved is that nothing happens.
        assert thread.active is not None
        await answer(runtime, question.id, choice="once")
        told = await viewer.until("tool.complete")
        assert not told["payload"]["is_error"]


@pytest.mark.parametrize("choice", ["once", "deny"])
async def test_once_and_deny_leave_nothing_behind(runtime: ProfileRuntime, people: People, choice: str) -> None:
    _, thread, viewer = await new_session(runtime)
    for number in range(2):
        await say(thread, "/do run touch a.txt", f"input-{number}")
        question = await people.question(number)
        await answer(runtime, question.id, choice=choice)
        await viewer.until("execution.finished", outcome="completed")
    assert not runtime.scope.config.approvals.rules


async def test_nothing_is_allowed_by_default_on_a_machine_where_nothing_of_ours_confines(house: House) -> None:
    remote = "terminal:\n  backend: ssh\n  remote: {host: other.example, user: someone}\n"
    house.home("default", config=f"approvals: {{mode: auto}}\n{remote}")
    house.home("here", config="approvals: {mode: auto}\n")
    async with house.served():
        for profile, expected in (("default", "ask"), ("here", "allow")):
            runtime = await house.runtime(profile)
            session, _, _ = await new_session(runtime)
            for command in ("ls", "make"):
                asked = ExplainParams(session_id=session.session_id, tool="terminal", command=command)
                found = await explain(runtime, session, asked)
                assert (found.decision, found.confined) == (expected, profile == "here"), found
