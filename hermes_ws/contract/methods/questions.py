"""Answering what the server asks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from hermes_ws.contract.errors import InvalidParams, NotFound, StaleGeneration
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method


class AnswerParams(Params):
    """An answer names its question. With `execution_generation` it counts only for the execution that was seen."""

    id: Identifier
    result: dict[str, JsonValue]
    execution_generation: int | None = Field(default=None, ge=0)
    profile: Identifier | None = None

    def located_by(self) -> str:
        return self.id


class Answered(Result):
    """Whether this answer settled the question; if not, what had, with the result that counts."""

    outcome: Literal["settled", "already_settled", "expired", "withdrawn", "abandoned"]
    result: dict[str, JsonValue] | None = None


QUESTION_ANSWER = method(
    "question.answer",
    AnswerParams,
    Answered,
    scope=Scope.PROFILE,
    right=Right.ANSWER,
    order=Order.NOW,
    errors=(NotFound, StaleGeneration, InvalidParams),
    doc="Answer a question from any connection that may; the first valid answer settles it, once.",
)
