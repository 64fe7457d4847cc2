"""Files as they were before an agent's tools wrote them, in sessions that were made with `checkpoints`."""

from __future__ import annotations

from pydantic import Field

from hermes_ws.contract.errors import NotFound, SessionUnknown, ThreadUnknown, WardenFailed
from hermes_ws.contract.methods.threads import ThreadParams
from hermes_ws.contract.model import Identifier, Result
from hermes_ws.contract.registry import Order, Right, Scope, method


class CheckpointRow(Result):
    """What one execution wrote. `made_at` is in seconds since 1970."""

    hash: str
    execution_generation: int
    made_at: float
    files: list[str]


class CheckpointList(Result):
    """The checkpoints of the thread, the newest first; `enabled` tells whether more are made."""

    enabled: bool
    checkpoints: list[CheckpointRow]


class CheckpointParams(ThreadParams):
    """A checkpoint of the thread, by the name that the list gives it."""

    hash: Identifier


class Difference(Result):
    """What has changed since before that execution: a line for each file, and a unified diff."""

    stat: str
    diff: str


class RestoreParams(CheckpointParams):
    """Put back all files that were written from that execution on, or one of them."""

    file_path: str | None = Field(default=None, min_length=1, max_length=4096)


class RestoreResult(Result):
    """What was put back, and what was left alone because somebody has changed it since or it was too large to keep."""

    success: bool
    restored_files: list[str]
    skipped_user_edits: list[str]
    skipped_oversize: list[str]
    failed: dict[str, str]


_ERRORS = (SessionUnknown, ThreadUnknown, NotFound, WardenFailed)

ROLLBACK_LIST = method(
    "rollback.list",
    ThreadParams,
    CheckpointList,
    scope=Scope.THREAD,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(SessionUnknown, ThreadUnknown),
    doc="What the executions of a thread have written.",
)

ROLLBACK_DIFF = method(
    "rollback.diff",
    CheckpointParams,
    Difference,
    scope=Scope.THREAD,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=_ERRORS,
    doc="What has changed since before an execution.",
)

ROLLBACK_RESTORE = method(
    "rollback.restore",
    RestoreParams,
    RestoreResult,
    scope=Scope.THREAD,
    right=Right.CONTROL,
    order=Order.THREAD,
    errors=_ERRORS,
    doc="Put files back as they were before an execution. Files that somebody changed since are left alone.",
)
