"""The tools by themselves: what they tell the model, within which bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.agent.deeds import Ran, ToolOutcome
from hermes_ws.agent.ports import NoAnswerer, QuestionExpired
from hermes_ws.agent.tools import files
from hermes_ws.agent.tools.output import BUDGET, fit, plain
from hermes_ws.agent.tools.registry import TOOLS, TOOLSETS, enabled
from hermes_ws.agent.tools.tool import ToolContext
from hermes_ws.contract.errors import InvalidParams
from tests.agent.twins import DIRECTORY, AskerTwin, HandsTwin, answers, finished


async def run(
    name: str, hands: HandsTwin | None = None, asker: AskerTwin | None = None, **arguments: Any
) -> ToolOutcome:
    context = ToolContext(
        hands=hands or HandsTwin(),
        asker=asker or AskerTwin(),
        session_id="s1",
        thread_id="main",
        deadline_s=120.0,
        progress=lambda piece: None,
        redact=lambda text: text.replace("hunter2hunter2", "«secret:PW»"),
    )
    return await TOOLS[name].prepare(arguments).run(context)


# --- declarations --------------------------------------------------------------------------------------------------


def test_each_tool_is_declared_for_models_without_noise() -> None:
    for tool in TOOLS.values():
        schema = json.dumps(tool.parameters)
        assert '"title"' not in schema
        assert tool.parameters["additionalProperties"] is False
        assert tool.doc.endswith(".")


def test_toolsets_choose_tools() -> None:
    assert {"terminal", "files", "ask", "delegate", "memory"} <= TOOLSETS
    assert list(enabled(None)) == list(TOOLS)
    files = ["read_file", "write_file", "patch", "list_files", "search_files"]
    assert list(enabled(("files", "unheard-of"))) == files
    assert list(enabled(())) == []


# --- output --------------------------------------------------------------------------------------------------------


def test_escape_sequences_and_control_characters_are_no_words() -> None:
    coloured = "\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x07 \x1b(B\x1b[?25l\x07bell\x9b \x1b"
    assert plain(coloured) == "red link bell "


def test_of_an_overwritten_line_the_last_writing_stands() -> None:
    assert plain("10%\r50%\r100%\ndone\r\nend\r") == "100%\ndone\nend"


def test_a_secret_that_escapes_split_is_found() -> None:
    fitted = fit("hunter2\x1b[0mhunter2", lambda text: text.replace("hunter2hunter2", "***"))
    assert fitted.text == "***"


def test_head_and_tail_are_kept_and_what_was_cut_is_said() -> None:
    fitted = fit("a" * BUDGET + "b" * BUDGET, lambda text: text)
    assert fitted.cut
    assert fitted.text.startswith("a" * 1000)
    assert fitted.text.endswith("b" * 1000)
    assert f"[… {BUDGET:,} characters left out here …]" in fitted.text
    assert len(fitted.text) < BUDGET + 100


@given(st.text())
def test_any_output_can_be_made_plain_and_stays_so(text: str) -> None:
    once = plain(text)
    assert plain(once) == once
    assert "\x1b" not in once


# --- terminal ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ran", "output", "is_error"),
    [
        (finished("hi\n"), "hi", False),
        (finished(""), "(no output)", False),
        (finished("bad\n", exit_code=2), "bad\n[exit code 2]", True),
        (finished("", exit_code=None, signal=9), "(no output)\n[ended by signal 9]", True),
        (
            finished("x", exit_code=0, truncated=True),
            "x\n[there was more output than is kept; its middle is missing]",
            False,
        ),
        (finished("x", exit_code=1, explanation="Grant more."), "x\n[exit code 1]\n[Grant more.]", True),
    ],
)
async def test_how_a_command_ended_is_told(ran: Ran, output: str, is_error: bool) -> None:
    outcome = await run("terminal", HandsTwin(commands={"go": ran}), command="go")
    assert (outcome.output, outcome.is_error) == (output, is_error)


async def test_a_deadline_is_told_as_one() -> None:
    ran = finished("x", exit_code=None, signal=15, timed_out=True)
    outcome = await run("terminal", HandsTwin(commands={"go": ran}), command="go", deadline_s=2.5)
    assert outcome.output == "x\n[ended after its deadline of 2.5 s; what it had started was ended with it]"
    assert outcome.is_error


async def test_a_command_gets_its_directory_and_deadline() -> None:
    hands = HandsTwin()
    await run("terminal", hands, command="a")
    await run("terminal", hands, command="b", cwd="sub", deadline_s=3)
    assert hands.ran == [("a", None, 120.0), ("b", DIRECTORY / "sub", 3.0)]


@pytest.mark.parametrize(
    "arguments", [{"command": ""}, {"command": "a", "deadline_s": 0}, {"command": "a", "deadline_s": 1e9}]
)
def test_arguments_of_a_command_are_bounded(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        TOOLS["terminal"].prepare(arguments)


# --- files ---------------------------------------------------------------------------------------------------------


def with_file(content: str | bytes) -> HandsTwin:
    return HandsTwin(files={str(DIRECTORY / "f"): content})


async def test_a_file_is_read_whole_or_by_lines() -> None:
    hands = with_file("one\ntwo\nthree\n")
    assert (await run("read_file", hands, path="f")).output == "one\ntwo\nthree\n"
    part = (await run("read_file", hands, path="f", offset=2, limit=1)).output
    assert part == "two\n\n[lines 2-2 of 3]".replace("-", "–")
    assert "has 3 lines." in (await run("read_file", hands, path="f", offset=9)).output


async def test_binary_and_empty_files_are_described() -> None:
    assert (
        await run("read_file", with_file(b"\x00" * 2048), path="f")
    ).output == "f is not text: 2,048 bytes of binary data."
    assert (await run("read_file", with_file(""), path="f")).output == "[the file is empty]"


async def test_of_a_large_file_the_beginning_is_looked_at_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "READ_BYTES", 8)
    outcome = await run("read_file", with_file("one\ntwo\nthree\n"), path="f")
    assert outcome.output == "one\ntwo\n\n[the file has 14 bytes; only its first 8 were looked at]"
    beyond = await run("read_file", with_file("one\ntwo\nthree\n"), path="f", offset=5)
    assert "within its first 8 bytes" in beyond.output


async def test_a_file_is_written_whole() -> None:
    hands = HandsTwin()
    assert (await run("write_file", hands, path="a/b", content="é\n")).output == "Made a/b: 3 bytes."
    assert (await run("write_file", hands, path="/x", content="")).output == "Made /x: 0 bytes."
    assert (await run("write_file", hands, path="a/b", content="z")).output == "Replaced a/b: 1 bytes."
    assert hands.files == {str(DIRECTORY / "a/b"): "z", "/x": ""}


async def test_what_changes_in_a_file_that_is_replaced_is_told_without_secrets_and_within_bounds() -> None:
    hands = HandsTwin()
    assert (await run("write_file", hands, path="a", content="one\nhunter2hunter2\nend")).diff is None
    diff = (await run("write_file", hands, path="a", content="one\ntwo\nend")).diff
    assert diff is not None
    assert "\n-«secret:PW»\n+two\n end\n" in diff
    assert "hunter2" not in diff
    added = (await run("write_file", hands, path="a", content="one\ntwo\nend\n")).diff
    assert added is not None
    assert added.endswith("-end\n\\ No newline at end of file\n+end\n")
    long = "".join(f"line {number}\n" for number in range(3000))
    cut = (await run("write_file", hands, path="a", content=long)).diff
    assert cut is not None
    assert 10_000 < len(cut) < 17_000
    assert cut.endswith("\n")
    hands.files[str(DIRECTORY / "b")] = b"\x00"
    assert (await run("write_file", hands, path="b", content="text")).diff == ""
    assert (await run("write_file", hands, path="a", content="x\n" * 5000)).diff == ""


@pytest.mark.parametrize("path", ["~/x", "~root", "a\0b"])
async def test_paths_are_taken_as_they_are_or_not_at_all(path: str) -> None:
    for name, more in (("read_file", {}), ("write_file", {"content": "x"})):
        with pytest.raises(InvalidParams):
            await run(name, path=path, **more)


# --- clarify -------------------------------------------------------------------------------------------------------


async def test_answers_come_back_by_question() -> None:
    asker = AskerTwin(answers(q1="blue", q2=["a", "b"], q3=None))
    asked = [{"question": "Colour?", "choices": ["red", "blue"]}, {"question": "Which?", "multi_select": True}]
    outcome = await run(
        "clarify", asker=asker, questions=[*asked, {"question": "hunter2hunter2?"}, {"question": "More?"}]
    )
    assert outcome.output.splitlines() == [
        "Colour? → blue",
        "Which? → a, b",
        "«secret:PW»? → (skipped)",
        "More? → (skipped)",
    ]
    assert [each.qid for each in asker.clarifications[0].questions] == ["q1", "q2", "q3", "q4"]
    assert asker.clarifications[0].questions[0].choices == ["red", "blue"]


@pytest.mark.parametrize("failure", [NoAnswerer("clarify"), QuestionExpired("clarify")])
async def test_no_answer_is_no_refusal(failure: Exception) -> None:
    outcome = await run("clarify", asker=AskerTwin(failure), questions=[{"question": "?"}])
    assert outcome.is_error
    assert "refusal" in outcome.output
