"""The questions that the server asks, each with what it tells and what it takes.

A question is a row in the journal, not a waiting socket; see `session/questions.py` for its life.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.registry import Question, question

Choice = Literal["once", "session", "always", "deny"]


class ApprovalParams(Result):
    """What is about to be done, and which rule wants a person to look at it."""

    session_id: str
    thread_id: str
    tool: str
    command: str | None = None
    path: str | None = None
    description: str
    rule: str
    choices: list[Choice]


class ApprovalResult(Params):
    """The decision. `reason` is read by the model when it is a refusal."""

    choice: Choice
    reason: str | None = Field(default=None, max_length=2000)


class ClarifyItem(Result):
    """One question for the user. Without `choices` the answer is free text."""

    qid: str
    question: str
    choices: list[str] | None = None
    multi_select: bool = False


class ClarifyParams(Result):
    """One to five questions, asked together."""

    session_id: str
    thread_id: str
    questions: list[ClarifyItem]


class ClarifyResult(Params):
    """The answers by `qid`; null is "skipped"."""

    answers: dict[str, Annotated[str, Field(max_length=16384)] | list[str] | None]


APPROVAL = question("approval", ApprovalParams, ApprovalResult, doc="May the agent do this?")
CLARIFY = question(
    "clarify",
    ClarifyParams,
    ClarifyResult,
    doc="The agent needs to know something that only a person can tell.",
)

QUESTIONS: Mapping[str, Question] = MappingProxyType({each.kind: each for each in (APPROVAL, CLARIFY)})

QuestionState = Literal["open", "settled", "expired", "withdrawn", "abandoned"]


class OpenQuestion(Result):
    """A question as a resuming client gets it: all that it needs to show it and to answer it."""

    id: str
    kind: str
    session_id: str
    thread_id: str
    execution_generation: int
    params: dict[str, JsonValue]
    asked_at: float
    deadline: float | None = None
