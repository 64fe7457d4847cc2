"""Looking at a thread: its state, and its events from a cursor on."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from hermes_ws.contract.content import Message
from hermes_ws.contract.errors import SessionUnknown, ThreadUnknown
from hermes_ws.contract.events import Envelope
from hermes_ws.contract.model import CursorText, Identifier, Params, Result
from hermes_ws.contract.questions import OpenQuestion
from hermes_ws.contract.registry import Order, Right, Scope, method

ReceiptStatus = Literal["queued", "started", "finished", "cancelled", "unknown"]


Position = Literal["ok", "rebased", "ahead", "fresh"]
"""Where a client stands: `ok`; `rebased`, its generation is gone and all that came from it is to be dropped, events of
the new generation follow from its beginning; `ahead`, this journal never had that cursor, treated alike; `fresh`, it
named no cursor."""


class ActiveExecution(Result):
    """The execution that runs now."""

    execution_generation: int
    admission_id: str
    started_at: float
    state: Literal["running", "waiting", "finishing"]


PENDING_TEXT = 2000
"""Characters of a waiting input that a snapshot shows; the whole comes with its events."""


class PendingRow(Result):
    """An input that was admitted and has not ended: queued, running, or lost and waiting to be resolved."""

    admission_id: str
    input_id: str
    status: ReceiptStatus
    execution_generation: int | None = None
    text: str


class InProgress(Result):
    """The text so far of the message that is being generated."""

    message_id: str
    text: str


class Snapshot(Result):
    """One coherent boundary: `cursor` is where it was taken, and events after it are what follows."""

    session_id: str
    thread_id: str
    profile: str
    position: Position
    generation: int
    cursor: str
    execution: ActiveExecution | None
    questions: list[OpenQuestion]
    pending: list[PendingRow]
    in_progress: InProgress | None = None
    messages: list[Message] | None = None
    more_messages: bool = False
    revision: int
    info: dict[str, JsonValue]


class ThreadParams(Params):
    """A thread of a session; `main` when it is not named."""

    session_id: Identifier
    profile: Identifier | None = None
    thread_id: Identifier = "main"

    def located_by(self) -> str:
        return self.session_id


class SubscribeParams(ThreadParams):
    """Where to listen from. Without `after` events follow from now on; `messages` asks for the recent history."""

    after: CursorText | None = None
    messages: bool | None = None


class Unsubscribed(Result):
    """Whether there was a subscription to end."""

    unsubscribed: bool


class EventsParams(ThreadParams):
    """The same read for those who prefer to ask."""

    after: CursorText
    limit: int = Field(default=500, ge=1, le=2000)


class EventPage(Result):
    """Committed events after the cursor, in order, and the questions that are open now."""

    position: Position
    generation: int
    events: list[Envelope]
    cursor: str
    more: bool
    questions: list[OpenQuestion]


THREAD_STATE = method(
    "thread.state",
    ThreadParams,
    Snapshot,
    scope=Scope.THREAD,
    right=Right.OBSERVE,
    order=Order.NOW,
    errors=(SessionUnknown, ThreadUnknown),
    doc="One coherent boundary of a thread, without subscribing.",
)

THREAD_SUBSCRIBE = method(
    "thread.subscribe",
    SubscribeParams,
    Snapshot,
    scope=Scope.THREAD,
    right=Right.OBSERVE,
    order=Order.THREAD,
    errors=(SessionUnknown, ThreadUnknown),
    doc="Listen to a thread from a cursor on; the reply comes before the first event. Again: the subscription moves.",
)

THREAD_UNSUBSCRIBE = method(
    "thread.unsubscribe",
    ThreadParams,
    Unsubscribed,
    scope=Scope.THREAD,
    right=Right.OBSERVE,
    order=Order.THREAD,
    errors=(SessionUnknown, ThreadUnknown),
    doc="Stop listening to a thread.",
)

SESSION_EVENTS_SINCE = method(
    "session.events.since",
    EventsParams,
    EventPage,
    scope=Scope.THREAD,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(SessionUnknown, ThreadUnknown),
    doc="Committed events after a cursor, a page at a time.",
)
