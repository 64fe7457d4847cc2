"""What is sent to a model over the messages protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes_ws.agent.models.anthropic_format import MAX_TOKENS, THINKING, body
from hermes_ws.agent.models.model import (
    Attached,
    ModelRequest,
    ToolSpec,
)
from hermes_ws.contract.content import (
    FileBlock,
    ImageBlock,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from tests.agent.twins import user


def sent(request: ModelRequest, **settings: Any) -> Any:
    values: dict[str, Any] = {"reasoning": None, "temperature": None, "max_tokens": None, **settings}
    return json.loads(body("claude-1", request, **values))


MARK = {"type": "ephemeral"}


# --- what is sent --------------------------------------------------------------------------------------------------


def test_the_ends_of_tools_system_and_the_last_two_turns_are_marked_for_the_cache() -> None:
    history = [user("one", "u1"), said("ok"), user("two", "u2"), said("yes"), user("three", "u3")]
    tools = [ToolSpec(name, "Does it.", {"type": "object"}) for name in ("a", "b")]
    content = sent(ModelRequest("Be brief.", history, tools))
    assert content["system"] == [{"type": "text", "text": "Be brief.", "cache_control": MARK}]
    assert [tool.get("cache_control") for tool in content["tools"]] == [None, MARK]
    assert content["tools"][0]["input_schema"] == {"type": "object"}
    marked = [message["content"][-1].get("cache_control") for message in content["messages"]]
    assert marked == [None, None, MARK, None, MARK]
    assert (content["model"], content["stream"], content["max_tokens"]) == ("claude-1", True, MAX_TOKENS)


def said(words: str, *blocks: Any) -> Message:
    return Message(message_id="a", role="assistant", text=words, content=[*blocks, TextBlock(text=words)])


def calling(*calls: str, thought: ReasoningBlock | None = None) -> list[Message]:
    blocks = [ToolCallBlock(call_id=each, name="look", arguments={"at": each}) for each in calls]
    results = [
        ToolResultBlock(call_id=each, name="look", output=f"saw {each}", is_error=each == "c2") for each in calls
    ]
    return [
        Message(message_id="a", role="assistant", text="", content=[*([thought] if thought else []), *blocks]),
        Message(message_id="t", role="tool", text="", content=list(results)),
    ]


def test_calls_and_results_stand_in_one_message_each_and_steering_joins_the_results() -> None:
    history = [user("look"), *calling("c1", "c2", "call:3"), user("and hurry", "u2")]
    assistant, results = sent(ModelRequest("", history))["messages"][1:]
    assert [each["id"] for each in assistant["content"]] == ["c1", "c2", "call_3"]
    assert assistant["content"][0] == {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "c1"}}
    kinds = [(each["type"], each.get("tool_use_id"), each.get("is_error")) for each in results["content"]]
    assert kinds == [
        ("tool_result", "c1", None),
        ("tool_result", "c2", True),
        ("tool_result", "call_3", None),
        ("text", None, None),
    ]


def test_a_message_without_words_is_left_out() -> None:
    messages = sent(ModelRequest("", [user("a"), said(" \n"), user("b", "u2")]))["messages"]
    assert [(each["role"], len(each["content"])) for each in messages] == [("user", 2)]


@pytest.mark.parametrize("level", ["low", "medium", "high"])
def test_thinking_has_a_budget_and_room_besides_and_no_temperature(level: str) -> None:
    content = sent(ModelRequest("", [user("hi")]), reasoning=level, max_tokens=1000, temperature=0.5)
    assert content["thinking"] == {"type": "enabled", "budget_tokens": THINKING[level]}
    assert content["max_tokens"] == 1000 + THINKING[level]
    assert "temperature" not in content


def test_a_temperature_is_within_what_the_protocol_takes() -> None:
    assert sent(ModelRequest("", [user("hi")]), temperature=1.7)["temperature"] == 1.0
    assert "thinking" not in sent(ModelRequest("", [user("hi")]), reasoning="none")


def test_a_signed_thought_goes_back_with_the_calls_that_it_led_to() -> None:
    thought = ReasoningBlock(text="I look.", signature="sig")
    content = sent(ModelRequest("", [user("look"), *calling("c1", thought=thought)]), reasoning="low")
    first = content["messages"][1]["content"][0]
    assert first == {"type": "thinking", "thinking": "I look.", "signature": "sig"}
    assert "thinking" in content


def test_calls_without_a_signed_thought_are_gone_on_with_without_thinking() -> None:
    """After a change of the model, or a secret in the words: the provider would refuse the request for ever."""
    unsigned = ReasoningBlock(text="I look.")
    content = sent(ModelRequest("", [user("look"), *calling("c1", thought=unsigned)]), reasoning="high")
    assert "thinking" not in content
    assert [each["type"] for each in content["messages"][1]["content"]] == ["tool_use"]
    later = [user("look"), *calling("c1", thought=unsigned), said("done"), user("again", "u2")]
    assert "thinking" in sent(ModelRequest("", later), reasoning="high")


def test_pictures_and_files_are_sent_as_what_they_are() -> None:
    image, gone = ImageBlock(blob="b1", media_type="image/png"), ImageBlock(blob="b9", media_type="image/png", name="x")
    notes = FileBlock(blob="b2", media_type="text/plain", name="notes.txt", size=5)
    data = FileBlock(blob="b3", media_type="application/zip", name="a.zip", size=9)
    asked = Message(message_id="u", role="user", text="see", content=[TextBlock(text="see"), image, gone, notes, data])
    attached = {"b1": Attached(b"\x89PNG"), "b2": Attached(b"hello", "hello"), "b3": Attached(b"PK\x03")}
    picture, words = sent(ModelRequest("", [asked], attached=attached))["messages"][0]["content"]
    assert picture["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
    assert words["text"] == (
        "see\n\n[The user attached a picture, x, which is no longer there.]\n\n"
        "[The user attached notes.txt: text/plain, 5 bytes:]\nhello\n\n"
        "[The user attached a.zip: application/zip, 9 bytes. It is no text, so its content is not shown.]"
    )
