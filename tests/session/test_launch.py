"""What a session is made with, and what that means for its turns: options, keys, safe mode, hooks, budgets, the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_ws.agent.request import TurnRequest
from hermes_ws.agent.turn import TurnEnd
from hermes_ws.contract.errors import LaunchCredentialsUnavailable
from hermes_ws.contract.methods.mutations import MutateParams
from hermes_ws.contract.methods.questions import AnswerParams
from hermes_ws.contract.methods.sessions import CreateParams, SteerParams
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.session import briefing
from hermes_ws.session.launch import Keys, Launch
from tests.session.house import OWNER, House, People, Viewer, eventually, new_session, say


def told(viewer: Viewer, type: str) -> list[Any]:
    return [event["payload"] for event in viewer.events if event["type"] == type]


async def run(thread: Any, viewer: Viewer, text: str, input_id: str = "one") -> Any:
    await say(thread, text, input_id)
    return (await viewer.until("execution.finished"))["payload"]


def skill(home: Path, name: str, text: str) -> None:
    folder = home / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\ndescription: about {name}\n---\n{text}\n")


def test_a_launch_request_is_kept_without_its_key() -> None:
    params = CreateParams(
        provider="mine", model="m", base_url="https://models.example/v1", api_key="sk-1234567890", yolo=True
    )
    kept = Launch.of(params).overrides()
    assert "sk-1234567890" not in str(kept)
    assert Launch.read(kept).has_key
    assert Launch.read(kept).options() == {"yolo": True}
    assert "sk-1234567890" not in repr(params)


def test_a_key_that_the_server_no_longer_has_is_said_to_be_missing() -> None:
    launch = Launch(has_key=True)
    keys = Keys()
    keys.keep("s1", "sk-1")
    assert keys.of("s1", launch) == "sk-1"
    assert Keys().of("s1", Launch()) is None
    with pytest.raises(LaunchCredentialsUnavailable):
        Keys().of("s1", launch)


async def test_an_address_goes_with_a_key_of_the_same_request() -> None:
    with pytest.raises(ValueError, match="base_url needs the api_key"):
        CreateParams(base_url="https://elsewhere.example")


async def test_after_a_restart_a_session_with_a_key_of_its_own_says_so(house: House) -> None:
    async with house.served():
        runtime = await house.runtime()
        session, _ = await runtime.sessions.create(CreateParams(api_key="sk-gone-1234567"), OWNER)
    for path in house.root.rglob("*"):
        if path.is_file():
            assert b"sk-gone-1234567" not in path.read_bytes(), path
    async with house.served():
        runtime = await house.runtime()
        again = await runtime.sessions.get(session.session_id)
        thread = await again.thread("main")
        ended = await run(thread, await Viewer.of(thread), "hello")
        assert ended["error"]["type"] == "launch_credentials_unavailable"


async def test_skills_are_rendered_once_into_the_prompt(house: House) -> None:
    home = house.home("default")
    skill(home, "brew", "Use clean water.")
    async with house.served():
        runtime = await house.runtime()
        session, _ = await runtime.sessions.create(CreateParams(skills=["brew"]), OWNER)
        (home / "skills" / "brew" / "SKILL.md").write_text("Changed.")
        assert "Use clean water." in Launch.read(session.record.launch).frozen


async def test_a_title_comes_from_the_first_words_and_never_replaces_one(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await run(thread, viewer, "Please tidy the shed\n/do say done")
    info = told(viewer, "session.info")[-1]
    assert info["info"]["title"] == "Please tidy the shed"
    assert info["revision"] == session.record.revision == 1
    named, other, second = await new_session(runtime, title="Mine")
    await run(other, second, "Please tidy the shed")
    assert named.record.title == "Mine"
    assert not told(second, "session.info")


async def test_at_the_limit_the_person_is_asked_whether_to_go_on(runtime: ProfileRuntime, people: People) -> None:
    _, thread, viewer = await new_session(runtime, max_turns=1)
    await say(thread, "/do run true\n\n/do say and then", "one")
    question = await people.question(0)
    assert (question.kind, question.params["turns"]) == ("continue", 1)
    await runtime.sessions.answer(AnswerParams(id=question.id, result={"continue": True}), OWNER)
    await viewer.until("execution.finished", outcome="completed")
    assert "and then" in told(viewer, "message.complete")[-1]["text"]
    await say(thread, "/do run true\n\n/do say never", "two")
    question = await people.question(1)
    await runtime.sessions.answer(AnswerParams(id=question.id, result={"continue": False}), OWNER)
    await viewer.until("execution.finished", outcome="completed")
    assert told(viewer, "notice")[-1]["type"] == "max_turns"
    assert "never" not in told(viewer, "message.complete")[-1]["text"]


async def test_safe_mode_finds_nothing_of_the_profile(house: House) -> None:
    home = house.home("default", env="TOKEN=secret-value-123456\n", config="terminal: {env: [TOKEN]}\n")
    (home / "SOUL.md").write_text("I am the soul.")
    (home / "memories").mkdir()
    (home / "memories" / "MEMORY.md").write_text("I remember.")
    skill(home, "brew", "Use clean water.")
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime, safe_mode=True, yolo=True)
        await run(thread, viewer, f"/do run echo [$TOKEN]; ls -a; pwd; ls {home} 2>&1")
        (done,) = told(viewer, "tool.complete")
        assert "[]" in done["output"]
        assert "secret-value-123456" not in done["output"]
        assert "SOUL.md" not in done["output"]
        assert "/cache/safe/" in done["output"]


async def test_an_execution_ends_with_its_budget(house: House) -> None:
    house.home("default", config="agent: {run_budget_seconds: 0.2}\n")
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        ended = await run(thread, viewer, "/do say so far\n/do wait 3000")
        assert (ended["outcome"], ended["error"]["type"]) == ("failed", "limit_reached")


HOOKS = """
hooks:
  session_start: [{command: 'echo start >> hooks.txt'}]
  turn_end: [{command: 'echo turn >> hooks.txt'}]
  session_end: [{command: 'echo end >> hooks.txt'}]
"""


async def test_hooks_run_around_a_session_and_its_turns(house: House) -> None:
    home = house.home("default", config=HOOKS)
    async with house.served():
        runtime = await house.runtime()
        session, thread, viewer = await new_session(runtime, accept_hooks=True)
        await run(thread, viewer, "one", "one")
        await run(thread, viewer, "two", "two")
        await runtime.sessions.wait_until_idle()
        await runtime.sessions.close(session.session_id)
        assert (home / "home" / "hooks.txt").read_text().split() == ["start", "turn", "turn", "end"]


async def test_a_drain_ends_sessions_as_well(house: House) -> None:
    home = house.home("default", config=HOOKS)
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime, accept_hooks=True)
        await run(thread, viewer, "one")
    assert (home / "home" / "hooks.txt").read_text().split() == ["start", "turn", "end"]


async def test_a_hook_runs_once_somebody_has_accepted_it(house: House, people: People) -> None:
    home = house.home("default", config="hooks: {turn_end: [{command: 'echo ran >> hooks.txt'}]}\n")
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        await say(thread, "one", "one")
        question = await people.question(0)
        assert (question.params["tool"], question.params["choices"]) == ("hook", ["always", "deny"])
        await runtime.sessions.answer(AnswerParams(id=question.id, result={"choice": "deny"}), OWNER)
        await viewer.until("execution.finished")
        assert not (home / "home" / "hooks.txt").exists()
        await say(thread, "two", "two")
        question = await people.question(1)
        await runtime.sessions.answer(AnswerParams(id=question.id, result={"choice": "always"}), OWNER)
        await viewer.until("execution.finished")
        await run(thread, viewer, "three", "three")
        assert (home / "home" / "hooks.txt").read_text().split() == ["ran", "ran"]


async def test_a_hook_before_a_tool_can_refuse_the_call(house: House) -> None:
    command = "grep -q forbidden && echo not that file && exit 1 || true"
    house.home("default", config=f"hooks: {{tool_before: [{{command: '{command}'}}]}}\n")
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime, accept_hooks=True)
        await run(thread, viewer, "/do write forbidden.txt x\n/do write allowed.txt y")
        refused, done = told(viewer, "tool.complete")
        assert "not that file" in refused["output"]
        assert refused["is_error"]
        assert not done["is_error"]


async def test_a_branch_inherits_no_bypass(runtime: ProfileRuntime) -> None:
    """Yolo is a session's own: another that is made out of it asks again."""
    session, thread, viewer = await new_session(runtime, yolo=True, checkpoints=True, api_key="sk-mine-123456")
    await run(thread, viewer, "hello")
    params = MutateParams(session_id=session.session_id, request_id="b", expected_revision=1, operation="branch")
    done = await runtime.sessions.mutate(params, OWNER)
    branched = await runtime.sessions.get(str(done.result["session_id"]))
    launch = Launch.read(branched.record.launch)
    assert launch.options() == {"checkpoints": True}
    assert runtime.sessions.keys.of(branched.session_id, launch) == "sk-mine-123456"


async def test_yolo_asks_nobody_and_leaves_what_is_denied_denied(house: House, people: People) -> None:
    rules = "approvals: {rules: [{tool: terminal, command: 'touch no*', decision: deny}]}\n"
    home = house.home("default", config=rules)
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime, yolo=True)
        await run(thread, viewer, "/do run touch yes.txt\n/do run touch no.txt")
        assert (home / "home" / "yes.txt").exists()
        assert not (home / "home" / "no.txt").exists()
        assert people.asked == []


async def test_steering_that_came_too_late_is_said_to_have_been_missed(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await say(thread, "/do say here\n/do wait 3000", "one")
    await viewer.until("message.start")
    steer = SteerParams(session_id=session.session_id, execution_generation=1, text="look left")
    assert (await thread.steer(steer, OWNER)).outcome == "accepted"
    thread.interrupt(1)
    missed = await viewer.until("notice")
    assert missed["payload"]["type"] == "missed_steer"


async def test_a_session_can_leave_out_rules_memory_and_settings(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ignore_rules` leaves what people wrote for agents; `ignore_user_config` the settings, not what protects."""
    config = "agent: {titles: false, max_turns: 2}\nterminal: {env: [TOKEN]}\napprovals: {mode: deny}\n"
    home = house.home("default", config=config)
    (home / "SOUL.md").write_text("I am the soul.")
    (home / "home").mkdir()
    (home / "home" / "AGENTS.md").write_text("Use tabs.")
    asked: list[TurnRequest] = []
    real = briefing.run_turn

    async def watched(request: TurnRequest, **beside: Any) -> TurnEnd:
        asked.append(request)
        return await real(request, **beside)

    monkeypatch.setattr(briefing, "run_turn", watched)
    async with house.served():
        runtime = await house.runtime()
        for options in ({}, {"ignore_rules": True}, {"ignore_user_config": True}, {"pass_session_id": True}):
            _, thread, viewer = await new_session(runtime, **options)
            await run(thread, viewer, "hello")
    plain, no_rules, no_config, passed = asked
    assert (plain.settings.soul, plain.reads_rules, plain.max_turns) == ("I am the soul.", True, 2)
    assert (no_rules.settings.soul, no_rules.reads_rules, no_rules.max_turns) == ("", False, 2)
    assert (no_config.max_turns, no_config.policy.mode) == (40, "deny")
    assert passed.note == f"This session's id is {passed.session_id}."


async def test_what_a_model_costs_is_told_where_the_price_is_known(house: House) -> None:
    house.home("default", config="model: {price: {input: 2, output: 10}}\n")
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        ended = await run(thread, viewer, "/do usage 1000000 100000")
        assert ended["usage"]["cost_usd"] == pytest.approx(3.0)
        assert told(viewer, "usage.update")[0]["context_tokens"] == 1_100_000


async def test_a_session_that_is_put_away_for_idleness_has_its_end(house: House) -> None:
    home = house.home("default", config="hooks: {session_end: [{command: 'echo end >> hooks.txt'}]}\n")
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime, accept_hooks=True)
        await run(thread, viewer, "hello")
        viewer.leave()
        await runtime.sessions.wait_until_idle()
        runtime.sessions.forget_idle(0)
        await eventually((home / "home" / "hooks.txt").exists)
    assert (home / "home" / "hooks.txt").read_text().split() == ["end"]


async def test_an_interrupted_turn_has_its_end_and_asks_nobody(house: House, people: People) -> None:
    home = house.home("default", config="hooks: {turn_end: [{command: 'echo turn >> hooks.txt'}]}\n")
    async with house.served():
        runtime = await house.runtime()
        for accepted in (True, False):
            _, thread, viewer = await new_session(runtime, accept_hooks=accepted)
            await say(thread, "/do say here\n/do wait 3000", f"in-{accepted}")
            await viewer.until("message.start")
            thread.interrupt(1)
            await viewer.until("execution.finished", outcome="interrupted")
        assert people.asked == []
        assert (home / "home" / "hooks.txt").read_text().split() == ["turn"]
