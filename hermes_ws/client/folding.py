"""The state of a thread, carried on: a snapshot and the events after it, folded into the snapshot of a later moment.

The fold is a function of its two values. Whoever folds every event in order arrives at what the server would answer to
a fresh read at the same cursor; what only the server knows at that moment is left out (whether an execution is
`finishing`, and questions that other threads of the session asked since the snapshot). Live text is folded as it comes
and is right again, whatever was missed of it, with the committed message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, TypeVar

from pydantic import ValidationError

from hermes_ws.client.failures import EventUnreadable
from hermes_ws.client.follow import Item, Resumed
from hermes_ws.client.incoming import first_problem
from hermes_ws.contract.content import Message
from hermes_ws.contract.events import (
    Envelope,
    ExecutionFinished,
    ExecutionLost,
    ExecutionQueued,
    ExecutionStarted,
    MessageComplete,
    MessageStart,
    Rebased,
    RequestOpened,
    RequestSettled,
    SessionInfo,
    TextDelta,
)
from hermes_ws.contract.methods.threads import PENDING_TEXT, ActiveExecution, InProgress, PendingRow, Snapshot
from hermes_ws.contract.model import Result
from hermes_ws.contract.questions import OpenQuestion
from hermes_ws.wire.cursor import Cursor

S = TypeVar("S", bound=Result)


def advance(state: Snapshot | None, item: Item) -> Snapshot | None:
    """The state after one more thing that a `Following` gave. None before its first snapshot."""
    if isinstance(item, Resumed):
        return _resumed(state, item.snapshot)
    if isinstance(item, Envelope) and state is not None:
        return fold(state, item)
    return state


def fold(state: Snapshot, event: Envelope) -> Snapshot:
    """The state after this event. One that the state has already is passed over, one of an unknown type only moves the
    cursor.

    Raises `EventUnreadable` for a known type that cannot be read, and for an event that does not follow on the state.
    """
    at = Cursor.parse(state.cursor)
    if event.cursor is not None:
        following = Cursor.parse(event.cursor)
        if following <= at:
            return state
        if following not in (Cursor(at.generation, at.seq + 1), Cursor(following.generation, 1)):
            raise EventUnreadable(state.cursor, event.type, f"it is number {event.cursor}, and others are missing")
        state = state.model_copy(update={"cursor": event.cursor, "generation": following.generation})
    change = _CHANGES.get(event.type)
    return state if change is None else _with_waiting(change(state, event))


def _resumed(state: Snapshot | None, snapshot: Snapshot) -> Snapshot:
    """What holds when a subscription stands (again): events follow from where this client was, not from the snapshot's
    boundary, so that what it has stays, but for what only a snapshot tells.
    """
    if snapshot.position == "fresh" or (snapshot.position == "ok" and state is None):
        return snapshot
    if snapshot.position == "ok" and state is not None:
        others = [each for each in snapshot.questions if each.thread_id != snapshot.thread_id]
        own = [each for each in state.questions if each.thread_id == snapshot.thread_id]
        text = snapshot.in_progress if snapshot.in_progress is not None else state.in_progress
        return state.model_copy(update={"questions": [*own, *others], "in_progress": text})
    emptied = _emptied(snapshot, snapshot.generation)
    return emptied.model_copy(update={"cursor": str(Cursor(snapshot.generation, 0))})


def _emptied(state: Snapshot, generation: int) -> Snapshot:
    nothing: dict[str, object] = {"execution": None, "questions": [], "pending": [], "in_progress": None}
    return state.model_copy(update={**nothing, "messages": [], "more_messages": False, "generation": generation})


def _rebased(state: Snapshot, event: Envelope) -> Snapshot:
    return _emptied(state, _read(Rebased, event, state).generation)


def _queued(state: Snapshot, event: Envelope) -> Snapshot:
    queued = _read(ExecutionQueued, event, state)
    row = PendingRow(
        admission_id=queued.admission_id, input_id=queued.input_id, status="queued", text=queued.text[:PENDING_TEXT]
    )
    return state.model_copy(update={"pending": [*state.pending, row]})


def _started(state: Snapshot, event: Envelope) -> Snapshot:
    started = _read(ExecutionStarted, event, state)
    execution = ActiveExecution(
        execution_generation=started.execution_generation,
        admission_id=started.admission_id,
        started_at=event.ts,
        state="running",
    )
    state = _with_status(state, started.admission_id, "started", started.execution_generation)
    return state.model_copy(update={"execution": execution, "in_progress": None})


def _finished(state: Snapshot, event: Envelope) -> Snapshot:
    _read(ExecutionFinished, event, state)
    pending = [row for row in state.pending if row.admission_id != event.admission_id]
    return _ended(state.model_copy(update={"pending": pending}), event.admission_id)


def _lost(state: Snapshot, event: Envelope) -> Snapshot:
    lost = _read(ExecutionLost, event, state)
    status: Literal["queued", "unknown"] = "queued" if lost.resumes else "unknown"
    return _ended(_with_status(state, lost.admission_id, status, lost.execution_generation), lost.admission_id)


def _ended(state: Snapshot, admission_id: str | None) -> Snapshot:
    if state.execution is None or state.execution.admission_id != admission_id:
        return state  # an input ended that had no execution of its own
    return state.model_copy(update={"execution": None, "in_progress": None})


def _message_start(state: Snapshot, event: Envelope) -> Snapshot:
    started = _read(MessageStart, event, state)
    return state.model_copy(update={"in_progress": InProgress(message_id=started.message_id, text="")})


def _grown(state: Snapshot, event: Envelope) -> Snapshot:
    delta = _read(TextDelta, event, state)
    had = state.in_progress
    if had is None or had.message_id != delta.message_id or delta.offset > len(had.text):
        return state
    text = had.text + delta.text[len(had.text) - delta.offset :]
    return state.model_copy(update={"in_progress": InProgress(message_id=delta.message_id, text=text)})


def _message(state: Snapshot, event: Envelope) -> Snapshot:
    said = _read(MessageComplete, event, state)
    message = Message(message_id=said.message_id, role=said.role, text=said.text, content=said.content)
    messages = None if state.messages is None else [*state.messages, message]
    growing = state.in_progress
    if growing is not None and growing.message_id == said.message_id:
        growing = None
    return state.model_copy(update={"messages": messages, "in_progress": growing})


def _opened(state: Snapshot, event: Envelope) -> Snapshot:
    opened = _read(RequestOpened, event, state)
    question = OpenQuestion(
        id=opened.id,
        kind=opened.kind,
        session_id=state.session_id,
        thread_id=state.thread_id,
        execution_generation=opened.execution_generation,
        params=opened.params,
        asked_at=opened.asked_at,
        deadline=opened.deadline,
    )
    others = [each for each in state.questions if each.id != opened.id]
    return state.model_copy(update={"questions": [*others, question]})


def _settled(state: Snapshot, event: Envelope) -> Snapshot:
    settled = _read(RequestSettled, event, state)
    return state.model_copy(update={"questions": [each for each in state.questions if each.id != settled.id]})


def _info(state: Snapshot, event: Envelope) -> Snapshot:
    told = _read(SessionInfo, event, state)
    return state.model_copy(update={"revision": told.revision, "info": told.info})


_CHANGES: Mapping[str, Callable[[Snapshot, Envelope], Snapshot]] = MappingProxyType(
    {
        "thread.rebased": _rebased,
        "execution.queued": _queued,
        "execution.started": _started,
        "execution.finished": _finished,
        "execution.lost": _lost,
        "message.start": _message_start,
        "message.delta": _grown,
        "message.complete": _message,
        "request.opened": _opened,
        "request.settled": _settled,
        "session.info": _info,
    }
)
"""What each event does to a state. All others tell of things that a snapshot does not hold."""


def _with_status(
    state: Snapshot, admission_id: str, status: Literal["queued", "started", "unknown"], execution_generation: int
) -> Snapshot:
    changed = {"status": status, "execution_generation": execution_generation}
    pending = [row.model_copy(update=changed) if row.admission_id == admission_id else row for row in state.pending]
    return state.model_copy(update={"pending": pending})


def _with_waiting(state: Snapshot) -> Snapshot:
    """An execution waits as long as one of its own questions is open."""
    execution = state.execution
    if execution is None:
        return state
    waits = any(
        each.thread_id == state.thread_id and each.execution_generation == execution.execution_generation
        for each in state.questions
    )
    told = "waiting" if waits else "running"
    if execution.state in ("finishing", told):
        return state
    return state.model_copy(update={"execution": execution.model_copy(update={"state": told})})


def _read(shape: type[S], event: Envelope, state: Snapshot) -> S:
    try:
        return shape.model_validate(event.payload)
    except ValidationError as error:
        raise EventUnreadable(state.cursor, event.type, first_problem(error)) from None
