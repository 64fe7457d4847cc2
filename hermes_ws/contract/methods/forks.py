"""Another thread with the same beginning."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hermes_ws.contract.errors import (
    AdmissionConflict,
    ModelFailed,
    NotFound,
    SessionUnknown,
    StorageUnavailable,
    ThreadUnknown,
)
from hermes_ws.contract.methods.threads import ThreadParams
from hermes_ws.contract.model import Identifier, Params, Result, Title
from hermes_ws.contract.registry import Order, Right, Scope, method


class ForkCompaction(Params):
    """How the history that is taken over is made shorter: `soft` keeps it and shows the model a summary, `hard` keeps
    the summary and the last messages alone."""

    mode: Literal["soft", "hard"] = "soft"
    keep: int = Field(default=6, ge=1, le=1000)
    focus: str | None = Field(default=None, min_length=1, max_length=2000)


class ForkParams(ThreadParams):
    """Up to and with a message, or all of it. `compaction` is `inherit` (the profile's setting), `disabled` (never for
    this fork), or explicit. The same `request_id` makes one fork."""

    from_message_id: Identifier | None = None
    compaction: Literal["inherit", "disabled"] | ForkCompaction = "inherit"
    title: Title | None = None
    request_id: Identifier | None = None


class Forked(Result):
    """The new thread and the cursor to listen from; `cursor` of the source is where it was taken."""

    session_id: str
    thread_id: str
    cursor: str
    source_thread_id: str
    source_cursor: str
    messages: int
    compaction: Literal["disabled", "none", "soft", "hard"]


THREAD_FORK = method(
    "thread.fork",
    ForkParams,
    Forked,
    scope=Scope.THREAD,
    right=Right.SUBMIT,
    order=Order.THREAD,
    errors=(SessionUnknown, ThreadUnknown, NotFound, AdmissionConflict, ModelFailed, StorageUnavailable),
    doc="Make a thread that begins with this one's history. The source never changes.",
)
