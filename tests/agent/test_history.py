"""Histories that providers take, whatever a crash or an older version left behind."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.agent.definition import AgentDefinition
from hermes_ws.agent.history import calls_of, repaired, results_of
from hermes_ws.agent.prompt import PromptParts, system_prompt
from hermes_ws.contract.content import Message, TextBlock, ToolCallBlock, ToolResultBlock
from tests.agent.twins import DIRECTORY, user


def said(text: str = "", *calls: str) -> Message:
    blocks = [ToolCallBlock(call_id=each, name="terminal", arguments={}) for each in calls]
    return Message(
        message_id="a", role="assistant", text=text, content=[*([TextBlock(text=text)] if text else []), *blocks]
    )


def gave(*calls: str) -> Message:
    blocks = [ToolResultBlock(call_id=each, name="terminal", output=f"of {each}") for each in calls]
    return Message(message_id="t", role="tool", text="", content=list(blocks))


def test_a_valid_history_keeps_its_content() -> None:
    history = [user("go"), said("yes", "a", "b"), gave("a", "b"), said("done")]
    assert [each.content for each in repaired(history)] == [each.content for each in history]


def test_results_are_put_in_the_order_of_their_calls_and_missing_ones_are_said() -> None:
    mended = repaired([user("go"), said("", "a", "b", "c"), gave("c", "x"), gave("a"), user("on")])
    assert [each.role for each in mended] == ["user", "assistant", "tool", "user"]
    results = results_of(mended[2])
    assert [each.call_id for each in results] == ["a", "b", "c"]
    assert [each.is_error for each in results] == [False, True, False]
    assert "not known" in results[1].output


def test_results_without_a_call_and_messages_without_a_word_are_left_out() -> None:
    assert repaired([gave("a"), said(""), user("go")]) == [user("go")]


PARTS = st.sampled_from([user("x"), said("y"), said(""), said("", "a"), said("z", "b", "c"), gave("a"), gave("b", "c")])


@given(st.lists(PARTS, max_size=12))
def test_any_history_becomes_one_that_providers_take(history: list[Message]) -> None:
    mended = repaired(history)
    for at, message in enumerate(mended):
        if message.role == "tool":
            assert [each.call_id for each in results_of(message)] == [each.call_id for each in calls_of(mended[at - 1])]
        if calls_of(message):
            assert mended[at + 1].role == "tool"
    assert [each.content for each in repaired(mended)] == [each.content for each in mended]


def test_a_prompt_says_what_there_is_and_nothing_else() -> None:
    bare = system_prompt(PromptParts(AgentDefinition("a", "Do."), soul="", profile="p", cwd=DIRECTORY, tools=()))
    where = f"You work for the profile “p”. Your directory is {DIRECTORY}; relative paths start there."
    assert bare == f"Do.\n\n{where} You have no tools in this conversation."
    parts = PromptParts(AgentDefinition("a", "Do."), "", "p", DIRECTORY, ("skill_view",), skills=("- brewing: Tea.",))
    assert "- brewing: Tea." in system_prompt(parts)
    assert "brewing" not in system_prompt(replace(parts, tools=("terminal",))), "there is nothing to read them with"
