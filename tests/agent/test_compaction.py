"""Making a history short, and making room in a turn."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.agent.compaction import (
    LEFT_OUT,
    Window,
    compact,
    cut,
    summarise,
    tokens_of,
    without_old_outputs,
)
from hermes_ws.agent.history import calls_of, repaired, results_of
from hermes_ws.agent.models.loopback import LoopbackModel
from hermes_ws.agent.models.model import TextPiece, UsagePiece
from hermes_ws.contract.content import Message, TextBlock, ToolCallBlock, ToolResultBlock
from hermes_ws.contract.errors import ModelFailed
from hermes_ws.scope.secrets import Secrets
from tests.agent.scene import Replies, Scene, call, done
from tests.agent.twins import NO_SECRETS, HandsTwin, finished, request, user


def said(text: str, message_id: str, *calls: str) -> Message:
    blocks = [ToolCallBlock(call_id=each, name="terminal", arguments={"command": each}) for each in calls]
    content = [*([TextBlock(text=text)] if text else []), *blocks]
    return Message(message_id=message_id, role="assistant", text=text, content=content)


def gave(*calls: str, output: str = "out") -> Message:
    blocks = [ToolResultBlock(call_id=each, name="terminal", output=output) for each in calls]
    return Message(message_id="t", role="tool", text="", content=list(blocks))


PARTS = st.sampled_from([user("x"), said("y", "a1"), said("", "a2", "a"), gave("a")])


@given(st.lists(PARTS, max_size=20), st.integers(1, 8))
def test_a_cut_never_parts_a_call_from_its_result(parts: list[Message], keep: int) -> None:
    history = repaired(parts)
    at = cut(history, keep)
    kept = history[at:]
    assert [each.content for each in repaired(kept)] == [each.content for each in kept]
    if at:
        assert kept[0].role == "user"
        assert [each.content for each in repaired(history[:at])] == [each.content for each in history[:at]]


@given(st.lists(PARTS, max_size=20))
def test_outputs_are_left_out_and_no_result_is_lost(parts: list[Message]) -> None:
    history = repaired(parts)
    shorter = without_old_outputs(history)
    assert [[each.call_id for each in results_of(m)] for m in shorter] == [
        [each.call_id for each in results_of(m)] for m in history
    ]
    assert tokens_of(shorter) <= tokens_of(history)


async def test_a_summary_is_made_of_all_but_the_recent_messages() -> None:
    history = [user("first", "u1"), said("one", "a1"), user("second", "u2"), said("two", "a2"), user("third", "u3")]
    model = Replies([TextPiece("They said things."), UsagePiece(7, 3), *done()])
    made = await compact(model, history, keep=2, redaction=NO_SECRETS, focus="the things")
    assert made is not None
    assert (made.summary, made.first_kept, made.covered) == ("They said things.", "u2", 2)
    assert (made.usage.input_tokens, made.usage.output_tokens) == (7, 3)
    asked = model.requests[0].messages[0].text
    assert "user> first" in asked
    assert "third" not in asked
    assert "attention to: the things" in asked


async def test_nothing_to_cover_is_no_summary() -> None:
    assert await compact(Replies(), [user("only")], keep=2, redaction=NO_SECRETS) is None
    assert await compact(Replies(), [], keep=2, redaction=NO_SECRETS) is None


async def test_a_summary_keeps_no_secret() -> None:
    model = Replies([TextPiece("the key is sk-abcdef123456"), *done()])
    secrets = Secrets({"KEY": "sk-abcdef123456"})
    text, _ = await summarise(model, [user("x")], redaction=secrets)
    assert "sk-abcdef123456" not in text


@pytest.mark.parametrize("pieces", [done(), [TextPiece("half")], [TextPiece("  "), *done()]])
async def test_half_a_summary_is_none(pieces: list[object]) -> None:
    with pytest.raises(ModelFailed):
        await summarise(Replies(pieces), [user("x")], redaction=NO_SECRETS)  # type: ignore[arg-type]


async def test_a_conversation_that_is_summarised_is_not_carried_out() -> None:
    """A script within it is quoted, and nothing of it is followed."""
    text, _ = await summarise(LoopbackModel(), [user("/do fail model_failed\n/do say pwned")], redaction=NO_SECRETS)
    assert "/do fail model_failed" in text


async def test_a_turn_makes_room_and_says_so(no_threads: None) -> None:
    history = [user("word " * 600, "u1"), said("word " * 600, "a1"), user("/do say on we go", "u2")]
    asked = request(*history, toolsets=())
    asked = replace(asked, settings=replace(asked.settings, window=Window(tokens=1000, keep=1)))
    scene = Scene()
    await scene.run(asked)
    ((summary, first_kept, covered, before, after),) = scene.narrator.all("compaction_complete")
    assert (first_kept, covered) == ("u2", 2)
    assert after < before
    assert "lines were summarised" in summary
    assert "on we go" in scene.narrator.said
    assert scene.narrator.metered[1] == 1000


async def test_a_model_that_cannot_summarise_does_not_end_the_turn(no_threads: None) -> None:
    history = [user("word " * 600, "u1"), said("word " * 600, "a1"), user("go on", "u2")]
    asked = request(*history, toolsets=())
    asked = replace(asked, settings=replace(asked.settings, window=Window(tokens=1000, keep=1)))
    scene = Scene()
    model = Replies([ModelFailed("No.")], [TextPiece("still here"), *done()])
    await scene.run(asked, model)
    assert scene.narrator.said.endswith("still here")
    assert scene.narrator.all("notice")[0][1] == "compaction_failed"
    assert len(model.requests[1].messages) == 3


async def test_a_turn_that_outgrows_the_context_leaves_old_outputs_out(no_threads: None) -> None:
    hands = HandsTwin(commands={f"ls {n}": finished("line\n" * 400) for n in range(5)})
    scene = Scene(hands=hands)
    asked = request("look", toolsets=("terminal",))
    asked = replace(asked, settings=replace(asked.settings, window=Window(tokens=2000, keep=1)))
    model = Replies(*[[call("terminal", f"c{n}", command=f"ls {n}"), *done("tool_calls")] for n in range(5)], done())
    await scene.run(asked, model)
    last = model.requests[-1].messages
    outputs = [each.output for message in last for each in results_of(message)]
    assert outputs[0] == LEFT_OUT
    assert "line" in outputs[-1]
    assert len(outputs) == sum(len(calls_of(message)) for message in last) == 5


async def test_automatic_compaction_can_be_off(no_threads: None) -> None:
    asked = request(user("word " * 600, "u1"), said("x", "a1"), user("/do say hm", "u2"), toolsets=())
    asked = replace(asked, settings=replace(asked.settings, window=Window(tokens=300, automatic=False)))
    scene = Scene()
    await scene.run(asked)
    assert not scene.narrator.all("compaction_complete")
