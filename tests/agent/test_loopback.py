"""The loopback model: deterministic, stateless, and able to walk every path."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.agent.models.loopback import LoopbackModel
from hermes_ws.agent.models.model import (
    EndPiece,
    ModelRequest,
    Piece,
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    UsagePiece,
)
from hermes_ws.agent.models.script import Call, Say, read
from hermes_ws.agent.tools.registry import TOOLS
from hermes_ws.contract.content import Message, TextBlock, ToolCallBlock, ToolResultBlock
from hermes_ws.contract.errors import HermesError, ModelRateLimited
from tests.agent.twins import user

SPECS = [tool.spec for tool in TOOLS.values()]


async def pieces_of(*messages: Message, tools: bool = True) -> list[Piece]:
    request = ModelRequest("", list(messages), SPECS if tools else [])
    async with LoopbackModel().stream(request) as pieces:
        return [piece async for piece in pieces]


def text(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


def calls(pieces: Sequence[Piece]) -> list[ToolCallPiece]:
    return [piece for piece in pieces if isinstance(piece, ToolCallPiece)]


def answered(pieces: Sequence[Piece], *outputs: str) -> list[Message]:
    """What a turn adds to the history for a reply and the results of its calls."""
    made = [
        ToolCallBlock(call_id=each.call_id, name=each.name, arguments=dict(each.arguments)) for each in calls(pieces)
    ]
    results = [
        ToolResultBlock(call_id=call.call_id, name=call.name, output=output)
        for call, output in zip(made, outputs, strict=True)
    ]
    said = text(pieces)
    return [
        Message(message_id="a", role="assistant", text=said, content=[TextBlock(text=said), *made]),
        Message(message_id="t", role="tool", text="", content=list(results)),
    ]


async def test_a_plain_question_is_answered_with_what_was_asked_and_the_tools() -> None:
    said = text(await pieces_of(user("What can you do?")))
    assert "You asked: “What can you do?”" in said
    for tool in TOOLS:
        assert f"- {tool}: " in said


async def test_without_tools_it_says_so() -> None:
    assert "no tools" in text(await pieces_of(user("Hello"), tools=False))


async def test_the_answer_comes_in_words_and_the_last_piece_ends_it() -> None:
    pieces = await pieces_of(user("Hello there"))
    words = [piece for piece in pieces if isinstance(piece, TextPiece)]
    assert len(words) > 20
    assert isinstance(pieces[-2], UsagePiece)
    assert pieces[-1] == EndPiece("stop")


async def test_the_same_request_gives_the_same_pieces() -> None:
    script = "Hi\n/do think a b\n/do run ls\n/do say done\n/do stream 3 0 5"
    assert await pieces_of(user(script)) == await pieces_of(user(script))


async def test_each_verb_calls_its_tool() -> None:
    pieces = await pieces_of(
        user(
            "/do run ls -l | wc\n/do write a.txt two words\n/do read a.txt\n/do ask What now?\n"
            '/do delegate find out\n/do tool other {"x": [1]}'
        )
    )
    assert [(call.name, dict(call.arguments)) for call in calls(pieces)] == [
        ("terminal", {"command": "ls -l | wc"}),
        ("write_file", {"path": "a.txt", "content": "two words"}),
        ("read_file", {"path": "a.txt"}),
        ("clarify", {"questions": [{"question": "What now?"}]}),
        ("delegate_task", {"goal": "find out"}),
        ("other", {"x": [1]}),
    ]
    assert len({call.call_id for call in calls(pieces)}) == 6
    assert pieces[-1] == EndPiece("tool_calls")


async def test_what_is_no_script_is_echoed_beside_it() -> None:
    said = text(await pieces_of(user("Please do this:\n/do say Hello.\nThank you")))
    assert said == "You asked: “Please do this:\nThank you”\n\nHello.\n"


async def test_a_script_without_words_says_only_what_it_is_told() -> None:
    assert text(await pieces_of(user("/do say Hello."))) == "Hello.\n"


async def test_consecutive_calls_are_one_batch_and_a_blank_line_parts_them() -> None:
    question = user("/do run one\n/do run two\n\n/do run three\n/do say between\n/do run four")
    first = await pieces_of(question)
    assert [call.arguments["command"] for call in calls(first)] == ["one", "two"]
    history = [question, *answered(first, "1", "2")]
    second = await pieces_of(*history)
    assert [call.arguments["command"] for call in calls(second)] == ["three"]
    history += answered(second, "3")
    third = await pieces_of(*history)
    assert text(third) == "terminal → 3\n\nbetween\n"
    assert [call.arguments["command"] for call in calls(third)] == ["four"]
    fourth = await pieces_of(*history, *answered(third, "4"))
    assert text(fourth) == "terminal → 4\n\n"
    assert fourth[-1] == EndPiece("stop")


async def test_answers_of_tools_are_quoted_by_name_with_their_first_lines() -> None:
    question = user("/do run seq 100\n/do read x")
    first = await pieces_of(question)
    long = "\n".join(str(number) for number in range(100))
    said = text(await pieces_of(question, *answered(first, long, "short")))
    assert said.startswith("terminal → 0\n1\n")
    assert "\n11\n…" in said
    assert "\n12\n" not in said
    assert "read_file → short" in said


async def test_it_finds_its_place_from_the_history_alone() -> None:
    old = user("/do run old")
    first = await pieces_of(old)
    history = [old, *answered(first, "x"), user("/do say new", "u2")]
    assert text(await pieces_of(*history)) == "new\n"


async def test_call_ids_do_not_come_again_in_a_thread() -> None:
    question = user("/do run a\n\n/do run b")
    first = await pieces_of(question)
    second = await pieces_of(question, *answered(first, "x"))
    history = [question, *answered(first, "x"), *answered(second, "y"), user("/do run c", "u2")]
    third = await pieces_of(*history)
    assert len({call.call_id for call in [*calls(first), *calls(second), *calls(third)]}) == 3


async def test_thoughts_are_reasoning() -> None:
    pieces = await pieces_of(user("/do think about it\n/do say ok"))
    assert "".join(piece.text for piece in pieces if isinstance(piece, ReasoningPiece)) == "about it\n"
    assert text(pieces) == "ok\n"


async def test_a_stream_has_the_pieces_pause_and_length_that_were_asked_for(autojump_clock: trio.abc.Clock) -> None:
    began = trio.current_time()
    pieces = [piece for piece in await pieces_of(user("/do stream 20 500 6")) if isinstance(piece, TextPiece)]
    assert len(pieces) == 20
    assert {len(piece.text) for piece in pieces} == {6}
    assert pieces[11].text == "...12 "
    assert trio.current_time() - began == pytest.approx(10)


async def test_waiting_takes_the_time_that_was_asked_for(autojump_clock: trio.abc.Clock) -> None:
    began = trio.current_time()
    await pieces_of(user("/do wait 90\n/do say now"))
    assert trio.current_time() - began == pytest.approx(90)


@pytest.mark.parametrize(
    "type", ["model_failed", "model_unauthorised", "model_rate_limited", "launch_credentials_unavailable"]
)
async def test_failing_raises_the_type_that_was_asked_for(type: str) -> None:
    with pytest.raises(HermesError) as raised:
        await pieces_of(user(f"/do say first\n/do fail {type}"))
    assert raised.value.type == type
    assert raised.value.code == 5002


async def test_an_unknown_failure_says_which_there_are() -> None:
    with pytest.raises(HermesError, match="of type nonsense") as raised:
        await pieces_of(user("/do fail nonsense"))
    assert ModelRateLimited.type in raised.value.hint


async def test_usage_reports_the_counts_that_were_asked_for() -> None:
    pieces = await pieces_of(user("/do usage 1200 34\n/do say x"))
    assert UsagePiece(1200, 34) in pieces


@pytest.mark.parametrize(
    "line",
    [
        *("/do", "/do fly", "/do run", "/do wait long", "/do wait -1", "/do wait nan", "/do usage 1"),
        *("/do stream", "/do stream 1 2 3 4", "/do stream 1e9", "/do stream 9 1e9", "/do stream 5 0 0"),
        *("/do tool x [1]", "/do tool x {"),
    ],
)
async def test_a_line_that_cannot_be_followed_is_said(line: str) -> None:
    assert "I cannot follow" in text(await pieces_of(user(line)))


def test_only_lines_that_begin_with_the_mark_are_steps() -> None:
    script = read("see /do run ls\n  /do say indented\n/done\n/do\tsay tab")
    assert script.words == "see /do run ls\n/done"
    assert script.replies == ((Say("indented"), Say("tab")),)


@given(st.lists(st.sampled_from(["/do run a", "/do say b", "", "words", "/do think c", "/do read d"]), max_size=12))
def test_a_script_is_cut_after_each_batch_and_loses_no_step(lines: list[str]) -> None:
    script = read("\n".join(lines))
    assert sum(map(len, script.replies)) == sum(line.startswith("/do") for line in lines)
    for number, reply in enumerate(script.replies):
        kinds = [isinstance(step, Call) for step in reply]
        assert kinds == sorted(kinds), "calls stand at the end"
        assert kinds[-1] or number == len(script.replies) - 1


@given(st.text(max_size=80))
def test_no_text_is_a_script_that_raises(line: str) -> None:
    read(f"/do {line}")
