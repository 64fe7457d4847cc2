"""The loop of a turn, over the loopback model and twins of everything around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from hermes_ws.agent.approvals import ApprovalPolicy
from hermes_ws.agent.definition import AgentDefinition
from hermes_ws.agent.history import results_of
from hermes_ws.agent.models.model import (
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    UsagePiece,
)
from hermes_ws.agent.ports import QuestionExpired
from hermes_ws.contract.content import ReasoningBlock, TextBlock
from hermes_ws.contract.errors import PermissionDenied
from hermes_ws.contract.questions import ApprovalResult
from hermes_ws.scope.secrets import Secrets
from hermes_ws.scope.sections import RuleConfig
from tests.agent.scene import Replies, Scene, call, done
from tests.agent.twins import (
    DIRECTORY,
    NO,
    ONCE,
    SESSION,
    AskerTwin,
    HandsTwin,
    answers,
    finished,
    request,
)

pytestmark = pytest.mark.usefixtures("no_threads")

# --- the plain path ------------------------------------------------------------------------------------------------


async def test_a_question_is_answered_and_committed_as_it_was_streamed() -> None:
    scene = Scene()
    end = await scene.run("What can you do?")
    assert scene.narrator.kinds() == ["message_start", "message_complete", "usage"]
    ((message, partial),) = scene.narrator.all("message_complete")
    assert not partial
    assert message.text == scene.narrator.live["m1"]
    assert "You asked: “What can you do?”" in message.text
    assert end.steps == 1
    assert end.usage.output_tokens > 10


async def test_tools_run_between_the_steps_and_the_model_sees_what_they_gave() -> None:
    hands = HandsTwin(commands={"ls": finished("a.txt\n")})
    scene = Scene(hands=hands)
    end = await scene.run("/do run ls\n/do say done")
    assert scene.narrator.kinds() == [
        *("message_start", "message_complete", "usage"),
        *("tool_start", "tool_complete", "tool_results"),
        *("message_start", "message_complete", "usage"),
    ]
    assert scene.hands.ran == [("ls", None, 120.0)]
    assert scene.narrator.progress == {"call-1": "a.txt\n"}
    assert "terminal → a.txt" in scene.narrator.said
    assert scene.narrator.said.endswith("done\n")
    assert end.steps == 2
    scene.assert_valid()


async def test_reasoning_is_told_apart_and_kept_with_the_message() -> None:
    scene = Scene()
    await scene.run("/do think hard\n/do say easy")
    ((message, _),) = scene.narrator.all("message_complete")
    assert message.content == [ReasoningBlock(text="hard\n"), TextBlock(text="easy\n")]
    assert scene.narrator.thought == {"m1": "hard\n"}


async def test_usage_is_told_with_each_step_and_summed_up(autojump_clock: trio.abc.Clock) -> None:
    scene = Scene()
    end = await scene.run("/do usage 100 7\n/do wait 2\n/do run ls\n\n/do usage 200 5\n/do say x")
    first, second = scene.narrator.all("usage")
    assert (first.input_tokens, first.output_tokens, first.model) == (100, 7, "loopback")
    assert first.duration_ms >= 2000
    assert (second.input_tokens, second.output_tokens) == (200, 5)
    assert second.time_to_first_token_ms is not None
    assert (end.usage.input_tokens, end.usage.output_tokens) == (300, 12)


async def test_the_pace_is_told_from_the_first_token_on(autojump_clock: trio.abc.Clock) -> None:
    scene = Scene()
    first_step = "/do wait 5\n/do usage 1 20\n/do stream 11 200\n/do run ls"
    end = await scene.run(f"{first_step}\n\n/do usage 1 30\n/do stream 10 100")
    first, second = scene.narrator.all("usage")
    assert (first.tokens_per_second, second.tokens_per_second) == (10.0, 30.0)
    assert end.usage.tokens_per_second == pytest.approx(50 / 3, abs=0.1)


async def test_what_comes_at_once_has_no_pace() -> None:
    model = Replies([TextPiece("ok"), UsagePiece(1, 500), *done()])
    assert (await Scene().run("hi", model)).usage.tokens_per_second is None


async def test_the_prompt_holds_definition_soul_profile_directory_and_rules() -> None:
    """SCOPE-12: the prompt of a turn is made of what is bound for it, each time."""
    hands = HandsTwin(files={str(DIRECTORY / "AGENTS.md"): "Use tabs."})
    scene, model = Scene(hands=hands), Replies([TextPiece("ok"), *done()])
    definition = AgentDefinition("writer", instructions="Write well.")
    await scene.run(request("hi", definition=definition, soul="Be kind."), model)
    system = model.requests[0].system
    for part in ("Write well.", "Be kind.", "“work”", str(DIRECTORY), "terminal, process, read_file", "Use tabs."):
        assert part in system


async def test_rules_that_cannot_be_read_are_said_and_the_turn_goes_on() -> None:
    class Locked(HandsTwin):
        async def read(self, *args: Any, **more: Any) -> Any:
            raise PermissionDenied("AGENTS.md is locked.")

    scene = Scene(hands=Locked(files={str(DIRECTORY / "AGENTS.md"): "x"}))
    await scene.run("hello")
    ((level, type, message, _),) = scene.narrator.all("notice")
    assert (level, type) == ("warning", "rules_unreadable")
    assert "AGENTS.md is locked." in message
    assert "You asked" in scene.narrator.said


async def test_only_the_toolsets_of_the_agent_are_offered_and_run() -> None:
    scene, model = Scene(), Replies([call("terminal", command="ls"), *done("tool_calls")], [TextPiece("ok"), *done()])
    await scene.run(request("hi", definition=AgentDefinition("reader", toolsets=("files",))), model)
    files = ["read_file", "write_file", "patch", "list_files", "search_files"]
    assert [tool.name for tool in model.requests[0].tools] == files
    assert scene.hands.ran == []
    assert scene.narrator.outcomes[0].output == f"There is no tool terminal. There are: {', '.join(files)}."


# --- tool calls ----------------------------------------------------------------------------------------------------


async def test_an_unknown_tool_gets_a_result_that_says_so() -> None:
    scene = Scene()
    await scene.run("/do delegate find it out")
    assert scene.narrator.outcomes[0].is_error
    assert scene.narrator.outcomes[0].output.startswith("There is no tool delegate_task. There are: terminal,")
    assert scene.narrator.all("tool_start") == []
    scene.assert_valid()


@pytest.mark.parametrize(
    ("piece", "said"),
    [
        (call("terminal"), "command is not valid: Field required"),
        (call("terminal", command="ls", shell="zsh"), "There is no parameter shell."),
        (call("read_file", path="a", limit=0), "limit is not valid"),
        (call("terminal", problem="its arguments are not a JSON object."), "its arguments are not a JSON object."),
        (call("clarify", questions=[]), "questions is not valid"),
        (call("clarify", questions=[{"question": "?"}] * 6), "questions is not valid"),
    ],
)
async def test_arguments_that_do_not_fit_get_a_result_that_teaches(piece: ToolCallPiece, said: str) -> None:
    scene = Scene()
    await scene.run("x", Replies([piece, *done("tool_calls")], [TextPiece("ok"), *done()]))
    (outcome,) = scene.narrator.outcomes
    assert outcome.is_error
    assert said in outcome.output
    assert scene.hands.ran == []
    scene.assert_valid()


async def test_calls_that_only_read_run_side_by_side(autojump_clock: trio.abc.Clock) -> None:
    hands = HandsTwin(files={str(DIRECTORY / name): name for name in ("a", "b", "c")}, delay_s=1)
    scene = Scene(hands=hands)
    await scene.run("/do read a\n/do read b\n/do read c")
    assert hands.most_running == 3
    assert [block.output for block in scene.narrator.all("tool_results")[0]] == ["a", "b", "c"]


async def test_calls_that_do_more_than_read_run_in_order(autojump_clock: trio.abc.Clock) -> None:
    hands = HandsTwin(delay_s=1)
    scene = Scene(hands=hands)
    await scene.run("/do run ls 1\n/do read a\n/do run ls 2")
    kinds = [
        (each.kind, getattr(each.what, "call_id", None)) for each in scene.narrator.told if "tool_start" in each.kind
    ]
    assert [call_id for _, call_id in kinds] == ["call-1", "call-2", "call-3"]
    assert hands.most_running == 1
    assert hands.ended == ["ls 1", "ls 2"]


async def test_a_failing_tool_is_a_result_and_not_the_end() -> None:
    scene = Scene()
    await scene.run("/do read nothing\n/do say on")
    assert scene.narrator.outcomes[0].is_error
    assert "There is no file" in scene.narrator.outcomes[0].output
    assert scene.narrator.said.endswith("on\n")


async def test_two_calls_of_one_id_get_a_result_each() -> None:
    hands = HandsTwin(commands={"ls 1": finished("one"), "ls 2": finished("two")})
    model = Replies(
        [call("terminal", "", command="ls 1"), call("terminal", "", command="ls 2"), *done()],
        [TextPiece("ok"), *done()],
    )
    scene = Scene(hands=hands)
    await scene.run("x", model)
    results = scene.narrator.all("tool_results")[0]
    assert [each.output for each in results] == ["one", "two"]
    assert len({each.call_id for each in results}) == 2
    assert results_of(model.requests[1].messages[-1]) == results


async def test_the_turn_stops_at_its_last_step_and_says_so() -> None:
    scene = Scene()
    end = await scene.run(request("/do run ls\n\n/do run ls\n\n/do run ls", max_turns=2))
    assert end.steps == 2
    assert [each[1] for each in scene.narrator.all("notice")] == ["max_turns"]
    scene.assert_valid()


# --- approvals -----------------------------------------------------------------------------------------------------


async def test_what_is_not_allowed_is_asked_before_it_runs() -> None:
    scene = Scene(asker=AskerTwin(ONCE))
    await scene.run("/do run make")
    (asked,) = scene.asker.approvals
    assert (asked.tool, asked.command, asked.session_id, asked.thread_id) == ("terminal", "make", "s1", "main")
    assert asked.choices == ["once", "session", "deny"]
    assert asked.rule == "no rule is about this command"
    assert "every command that begins with `make`" in asked.description
    assert [command for command, *_ in scene.hands.ran] == ["make"]


async def test_once_is_once_and_session_lasts() -> None:
    scene = Scene(asker=AskerTwin(ONCE, SESSION))
    await scene.run("/do run make\n\n/do run make\n\n/do run make -j2")
    assert len(scene.asker.approvals) == 2
    assert len(scene.hands.ran) == 3


async def test_a_refusal_is_read_by_the_model_with_its_reason() -> None:
    scene = Scene(asker=AskerTwin(NO))
    await scene.run("/do run make\n/do say understood")
    assert scene.hands.ran == []
    assert scene.narrator.outcomes[0].output == "Not run: the user refused it. The reason: not today"
    assert scene.narrator.all("tool_start") == []
    assert scene.narrator.said.endswith("understood\n")
    scene.assert_valid()


async def test_nobody_to_ask_is_told_apart_from_a_refusal() -> None:
    """ASK-05."""
    scene = Scene(asker=AskerTwin())
    await scene.run("/do run make")
    assert "nobody who is connected can give one. This is no refusal." in scene.narrator.outcomes[0].output
    assert scene.hands.ran == []


async def test_a_question_that_expired_is_told_apart_from_a_refusal() -> None:
    scene = Scene(asker=AskerTwin(QuestionExpired("approval")))
    await scene.run("/do run make")
    assert "This is no refusal" in scene.narrator.outcomes[0].output


async def test_a_rule_that_denies_asks_nobody_and_is_named() -> None:
    rules = (RuleConfig(tool="terminal", command="make", decision="deny"),)
    scene = Scene(asker=AskerTwin(ONCE))
    await scene.run(request("/do run make", policy=ApprovalPolicy("ask", rules, confined=True)))
    assert scene.asker.asked == []
    assert "Denied by approvals.rules[0] (tool: terminal, command: make" in scene.narrator.outcomes[0].output


async def test_an_agent_may_have_a_mode_of_its_own() -> None:
    scene = Scene()
    await scene.run(request("/do run make", definition=AgentDefinition("careful", approvals="deny")))
    assert "approvals.mode is deny" in scene.narrator.outcomes[0].output


async def test_every_call_of_a_batch_is_asked_before_the_next_one_runs() -> None:
    order: list[str] = []

    class Watching(AskerTwin):
        async def ask(self, *args: Any, **more: Any) -> Any:
            order.append(f"asked after {len(scene.hands.ran)}")
            return await super().ask(*args, **more)

    scene = Scene(asker=Watching(ONCE, ApprovalResult(choice="deny"), ONCE))
    await scene.run("/do run make 1\n/do run make 2\n/do run make 3")
    assert order == ["asked after 0", "asked after 1", "asked after 1"]
    assert [each.is_error for each in scene.narrator.outcomes] == [False, True, False]


async def test_a_link_out_of_the_directory_is_seen_through(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path)
    hands = HandsTwin(cwd=tmp_path / "work", here=True)
    scene = Scene(hands=hands, asker=AskerTwin(NO, NO))
    await scene.run("/do read link/secret\n/do read a/../../secret\n/do write inside x")
    assert [each.path for each in scene.asker.approvals] == ["link/secret", "a/../../secret"]
    assert hands.files == {str(tmp_path / "work" / "inside"): "x"}


async def test_questions_of_the_model_go_to_the_person() -> None:
    scene = Scene(asker=AskerTwin(answers(q1="blue")))
    await scene.run("/do ask Which colour?")
    assert scene.asker.clarifications[0].questions[0].question == "Which colour?"
    assert scene.narrator.outcomes[0].output == "Which colour? → blue"


# --- secrets -------------------------------------------------------------------------------------------------------

CANARY = "sk-7Qx9_canary_41"


async def test_secrets_are_replaced_in_text_arguments_questions_and_results() -> None:
    secrets = Secrets({"KEY": CANARY})
    half = len(CANARY) // 2
    hands = HandsTwin(commands={f"make {CANARY}": finished(f"{CANARY[:4]}\x1b[0m{CANARY[4:]}\n")})
    scene = Scene(hands=hands, asker=AskerTwin(ONCE, answers(q1=CANARY)))
    model = Replies(
        [
            ReasoningPiece(f"The key is {CANARY[:half]}"),
            ReasoningPiece(CANARY[half:]),
            TextPiece(f"Using {CANARY[:half]}"),
            TextPiece(f"{CANARY[half:]} now."),
            call("terminal", "c1", command=f"make {CANARY}"),
            call("clarify", "c2", questions=[{"question": f"Is it {CANARY}?", "choices": [CANARY]}]),
            call("terminal", "c3", nested={CANARY: [CANARY]}),
            *done("tool_calls"),
        ],
        [TextPiece(f"ends with {CANARY}"), *done()],
    )
    await scene.run(request(f"use {CANARY}", redaction=secrets, soul=CANARY), model)
    everything = repr((scene.narrator.told, scene.narrator.live, scene.narrator.thought, scene.asker.asked))
    assert CANARY not in everything
    assert CANARY[half:] not in everything
    assert "Using «secret:KEY» now." in everything
    assert scene.hands.ran[0][0] == f"make {CANARY}", "what runs is what the model asked for"
    assert CANARY not in model.requests[0].system
    scene.assert_valid()
