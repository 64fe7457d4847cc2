"""Answering what the server asks, and looking at what waits for an answer.

`question.answer` takes every kind. The methods that are named after a kind take the same answer with its fields by
name, refuse a question of another kind, and say the same.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from hermes_ws.contract.errors import HermesError, InvalidParams, NotFound, StaleGeneration
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.questions import (
    ApprovalResult,
    ClarifyResult,
    ConnectionResult,
    OpenQuestion,
    OperationTarget,
    ValueResult,
)
from hermes_ws.contract.registry import Order, Right, Scope, method


class ById(Params):
    """Something that is named by its id; a question's tells the profile it belongs to."""

    id: Identifier
    profile: Identifier | None = None

    def located_by(self) -> str:
        return self.id

    def unknown(self) -> HermesError:
        return NotFound(f"There is no question {self.id}.")


class Responding(ById):
    """An answer names its question. With `execution_generation` it counts only for the execution that was seen."""

    execution_generation: int | None = Field(default=None, ge=0)


class AnswerParams(Responding):
    """Any answer, in the shape that its kind takes."""

    result: dict[str, JsonValue] = Field(repr=False)


class ApprovalRespondParams(Responding, ApprovalResult):
    """The decision on an approval."""


class ClarifyRespondParams(Responding, ClarifyResult):
    """The answers to a clarification."""


class ValueRespondParams(Responding, ValueResult):
    """What was typed in."""


class ConnectionRespondParams(Params):
    """The decision on a connection; `op_id` is the id of its question."""

    op_id: Identifier
    result: ConnectionResult
    profile: Identifier | None = None

    def located_by(self) -> str:
        return self.op_id

    def unknown(self) -> HermesError:
        return NotFound(f"There is no question {self.op_id}.")


class OperationParams(Params):
    """Which connection."""

    op_id: Identifier
    profile: Identifier | None = None

    def located_by(self) -> str:
        return self.op_id

    def unknown(self) -> HermesError:
        return NotFound(f"There is no question {self.op_id}.")


class Answered(Result):
    """Whether this answer settled the question; if not, what had, with the result that counts."""

    outcome: Literal["settled", "already_settled", "expired", "withdrawn", "abandoned"]
    result: dict[str, JsonValue] | None = None


class ListQuestionsParams(Params):
    """Of which profile; `*` for all that the caller may see."""

    profile: str | None = Field(default=None, min_length=1, max_length=64)


class QuestionRow(OpenQuestion):
    """An open question, and whose it is."""

    profile: str


class QuestionList(Result):
    """The open questions, in the order in which they were asked."""

    questions: list[QuestionRow]


class Operation(Result):
    """How a connection stands. `seq` rises with every change of it."""

    op_id: str
    seq: int
    settled: bool
    state: Literal["open", "settled", "expired", "withdrawn", "abandoned"]
    targets: list[OperationTarget]
    deadline_at: float | None = None
    settled_at: float | None = None


_ERRORS = (NotFound, StaleGeneration, InvalidParams)

QUESTION_ANSWER = method(
    "question.answer",
    AnswerParams,
    Answered,
    scope=Scope.PROFILE,
    right=Right.ANSWER,
    order=Order.NOW,
    errors=_ERRORS,
    doc="Answer a question from any connection that may; the first valid answer settles it, once.",
)

QUESTION_LIST = method(
    "question.list",
    ListQuestionsParams,
    QuestionList,
    scope=Scope.SERVER,
    right=Right.OBSERVE,
    order=Order.FREE,
    doc="The questions that wait for an answer, of a profile or of all that the caller may see.",
)

APPROVAL_RESPOND = method(
    "approval.respond",
    ApprovalRespondParams,
    Answered,
    scope=Scope.PROFILE,
    right=Right.ANSWER,
    order=Order.NOW,
    errors=_ERRORS,
    doc="Answer an approval.",
)

CLARIFY_RESPOND = method(
    "clarify.respond",
    ClarifyRespondParams,
    Answered,
    scope=Scope.PROFILE,
    right=Right.ANSWER,
    order=Order.NOW,
    errors=_ERRORS,
    doc="Answer a clarification.",
)

SUDO_RESPOND = method(
    "sudo.respond",
    ValueRespondParams,
    Answered,
    scope=Scope.PROFILE,
    right=Right.ANSWER,
    order=Order.NOW,
    errors=_ERRORS,
    doc="Give the password that a command asks for; it is kept nowhere.",
)

SECRET_RESPOND = method(
    "secret.respond",
    ValueRespondParams,
    Answered,
    scope=Scope.PROFILE,
    right=Right.ANSWER,
    order=Order.NOW,
    errors=_ERRORS,
    doc="Give the secret that is missing.",
)

CONNECTION_RESPOND = method(
    "connection.respond",
    ConnectionRespondParams,
    Answered,
    scope=Scope.PROFILE,
    right=Right.ANSWER,
    order=Order.NOW,
    errors=_ERRORS,
    doc="Decide about what the agent would like to use, and give what that needs.",
)

CONNECTORS_OPERATION_STATUS = method(
    "connectors.operation.status",
    OperationParams,
    Operation,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(NotFound,),
    doc="How a connection stands that the agent asked for.",
)
