"""How a connection stands that the agent asked for: read from its question, whose id is that of the operation.

Nothing waits for it. It is asked with a deadline, and decided, once, as any other question is; what a target needs goes
into the profile's `.env`, and of the answer only the decisions are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, cast

from hermes_ws.contract.errors import NotFound
from hermes_ws.contract.events import ConnectionRequest, ConnectionUpdate
from hermes_ws.contract.methods.questions import Operation
from hermes_ws.contract.questions import CONNECTION, ConnectionParams, OperationTarget, QuestionState
from hermes_ws.journal.questions import QuestionRecord

TargetState = Literal["pending", "connected", "skipped", "expired", "not_connected"]

_STATES: Mapping[QuestionState, TargetState] = MappingProxyType(
    {
        "open": "pending",
        "settled": "skipped",
        "expired": "expired",
        "withdrawn": "not_connected",
        "abandoned": "not_connected",
    }
)
"""Of a target about which the answer says nothing."""


def asked(record: QuestionRecord) -> ConnectionRequest:
    """What is told when it is asked for."""
    deadline = record.deadline or record.asked_at
    return ConnectionRequest(
        op_id=record.question_id,
        seq=1,
        deadline_at=deadline,
        timeout_seconds=deadline - record.asked_at,
        targets=_targets(record),
    )


def changed(record: QuestionRecord) -> ConnectionUpdate:
    """What is told when it is decided, or cannot be any more."""
    stands = operation(record.question_id, record)
    by = None if record.state == "open" else record.state
    return ConnectionUpdate.model_validate({**stands.model_dump(), "settled_by": by})


def operation(op_id: str, record: QuestionRecord | None) -> Operation:
    """How it stands. Raises `NotFound` when there is none, also for a question of another kind."""
    if record is None or record.kind != CONNECTION.kind:
        raise NotFound(f"There is no question {op_id}.")
    settled = record.state != "open"
    return Operation(
        op_id=op_id,
        seq=1 + settled,
        settled=settled,
        state=record.state,
        targets=_targets(record),
        deadline_at=record.deadline,
        settled_at=record.settled_at,
    )


def _targets(record: QuestionRecord) -> list[OperationTarget]:
    decided = cast("Mapping[str, TargetState]", (record.result or {}).get("targets", {}))
    otherwise = _STATES[record.state]
    return [
        OperationTarget(**each.model_dump(), state=decided.get(each.name, otherwise))
        for each in ConnectionParams.model_validate(record.params).targets
    ]
