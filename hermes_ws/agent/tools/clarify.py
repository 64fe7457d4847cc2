"""The tool that asks the person."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.ports import NoAnswerer, QuestionExpired
from hermes_ws.agent.tools.output import fit
from hermes_ws.agent.tools.tool import Need, Subject, ToolContext, tool
from hermes_ws.contract.model import Params
from hermes_ws.contract.questions import CLARIFY, ClarifyItem, ClarifyParams, ClarifyResult

QUESTIONS: Final = 5
"""Most questions asked together: what fits on a screen and in a person's patience."""

_NEEDS: Final[frozenset[Need]] = frozenset({"asks"})


class Asked(Params):
    """One question."""

    question: str = Field(min_length=1, max_length=2000)
    choices: list[str] | None = Field(
        default=None, min_length=1, max_length=20, description="Answers to choose from; free text when left out."
    )
    multi_select: bool = Field(default=False, description="Whether several choices may be taken.")


class AskParams(Params):
    """One to five questions."""

    questions: list[Asked] = Field(min_length=1, max_length=QUESTIONS)


def _subject(params: AskParams) -> Subject:
    return Subject("clarify", f"Ask: {params.questions[0].question}", _NEEDS)


async def _run(params: AskParams, context: ToolContext) -> ToolOutcome:
    items = [
        ClarifyItem(
            qid=f"q{number}",
            question=context.redact(each.question),
            choices=None if each.choices is None else [context.redact(choice) for choice in each.choices],
            multi_select=each.multi_select,
        )
        for number, each in enumerate(params.questions, 1)
    ]
    asked = ClarifyParams(session_id=context.session_id, thread_id=context.thread_id, questions=items)
    try:
        result = await context.asker.ask(CLARIFY, asked)
    except NoAnswerer:
        return ToolOutcome(
            "Nobody who could answer is connected. This is no refusal: go on with what you know, or say what is open.",
            is_error=True,
        )
    except QuestionExpired:
        return ToolOutcome("The question was not answered in time. This is not a refusal.", is_error=True)
    if not isinstance(result, ClarifyResult):
        raise TypeError(f"an answer to clarify is a ClarifyResult, not {type(result).__name__}")
    fitted = fit("\n".join(_line(item, result) for item in items), context.redact)
    return ToolOutcome(fitted.text, truncated=fitted.cut)


def _line(item: ClarifyItem, result: ClarifyResult) -> str:
    answer = result.answers.get(item.qid)
    said = "(skipped)" if answer is None else answer if isinstance(answer, str) else ", ".join(answer) or "(none)"
    return f"{item.question} → {said}"


CLARIFY_TOOL: Final = tool(
    "clarify",
    AskParams,
    toolset="ask",
    needs=_NEEDS,
    doc="Ask the person one to five questions that only they can answer, and wait for the answers.",
    subject=_subject,
    run=_run,
)
