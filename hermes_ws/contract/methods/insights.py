"""What a profile was used for, in numbers."""

from __future__ import annotations

from pydantic import Field

from hermes_ws.contract.errors import StorageUnavailable
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method


class InsightsParams(Params):
    """Of the last so many days, today included."""

    profile: Identifier | None = None
    days: int = Field(default=30, ge=1, le=3660)


class Day(Result):
    """One day in UTC, `YYYY-MM-DD`."""

    day: str
    executions: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


class Insights(Result):
    """Counts of what was begun in these days. `cost_usd` is null where no price is known."""

    profile: str
    days: int
    sessions: int
    messages: int
    executions: int
    outcomes: dict[str, int]
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float | None
    by_model: dict[str, int]
    by_day: list[Day]


INSIGHTS_GET = method(
    "insights.get",
    InsightsParams,
    Insights,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(StorageUnavailable,),
    doc="Counts of sessions, messages, executions and tokens of one profile.",
)
