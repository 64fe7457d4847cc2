"""Who did what in a profile."""

from __future__ import annotations

from pydantic import Field

from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method


class AuditParams(Params):
    """Which deeds: the latest ones, or those before the number that a page ended with."""

    profile: Identifier | None = None
    limit: int = Field(default=100, ge=1, le=1000)
    before: int | None = Field(default=None, ge=1)
    principal: str | None = Field(default=None, max_length=64)
    method_name: str | None = Field(default=None, max_length=100)


class AuditEntry(Result):
    """One request that could change something. `outcome` is `ok` or the type of its error; what it said is not kept."""

    number: int
    at: float
    principal: str
    credential: str | None
    connection: str
    method: str
    session_id: str | None
    outcome: str


class AuditPage(Result):
    """Newest first; `next` is what to pass as `before` for older ones."""

    entries: list[AuditEntry]
    next: int | None = None


RUNTIME_AUDIT = method(
    "runtime.audit",
    AuditParams,
    AuditPage,
    scope=Scope.PROFILE,
    right=Right.ADMIN,
    order=Order.FREE,
    doc="Who did what in a profile. What is about the server as a whole stands with the launch profile.",
)
