"""Approvals explained: what would be decided about a call, and by which rule."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from hermes_ws.contract.errors import DirectoryRefused, ProfileUnusable, SessionUnknown
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method

Verdict = Literal["allow", "ask", "deny"]


class ExplainParams(Params):
    """A call that is only looked at: a command line of `terminal`, or a tool and the path that it would be given."""

    session_id: Identifier
    profile: Identifier | None = None
    tool: str = Field(default="terminal", min_length=1, max_length=200)
    command: str | None = Field(default=None, min_length=1, max_length=65_536)
    path: str | None = Field(default=None, min_length=1, max_length=4096)
    cwd: str | None = Field(default=None, min_length=1, max_length=4096)

    def located_by(self) -> str:
        return self.session_id


class ExplainedPart(Result):
    """One command of a line. `problems` are the reasons why its words do not tell what it runs."""

    argv: list[str]
    decision: Verdict
    rule: str
    danger: str | None = None
    problems: list[str] = []


class Explained(Result):
    """The decision and the rule that says so. `always` is what that choice would write into `approvals.rules`."""

    decision: Verdict
    rule: str
    danger: str | None = None
    parts: list[ExplainedPart] = []
    always: list[dict[str, JsonValue]] = []
    mode: Literal["ask", "auto", "deny"]
    confined: bool
    yolo: bool


APPROVALS_EXPLAIN = method(
    "approvals.explain",
    ExplainParams,
    Explained,
    scope=Scope.SESSION,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(SessionUnknown, DirectoryRefused, ProfileUnusable),
    doc="Tell what would be decided about a call of this session, by which rule, and part by part. Nothing is run.",
)
