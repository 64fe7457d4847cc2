"""The threads of a session: making, naming and removing them, and reading back what was said in them."""

from __future__ import annotations

from pydantic import Field

from hermes_ws.contract.content import Message
from hermes_ws.contract.errors import (
    InvalidParams,
    NotFound,
    SessionBusy,
    SessionUnknown,
    StorageUnavailable,
    ThreadUnknown,
    UnknownExecution,
)
from hermes_ws.contract.methods.session_views import OfSession, ThreadNode
from hermes_ws.contract.methods.threads import ThreadParams
from hermes_ws.contract.model import Identifier, Result, Title
from hermes_ws.contract.registry import Order, Right, Scope, method

PAGE_MESSAGES = 200
"""Messages in one answer: what a person scrolls through at once; fewer when they are long."""


class ThreadList(Result):
    """All threads of the session, the oldest first."""

    session_id: str
    threads: list[ThreadNode]


class CreateThreadParams(OfSession):
    """A thread beside the others, with an empty history; made once for one `request_id`, however often it is sent."""

    title: Title | None = None
    request_id: Identifier | None = None


class ThreadCreated(Result):
    """The thread, and the cursor to listen from."""

    session_id: str
    thread_id: str
    cursor: str


class RenameThreadParams(ThreadParams):
    """The new title; null takes it away."""

    title: Title | None


class ThreadRenamed(Result):
    """Done."""

    thread_id: str
    title: str | None


class ThreadDeleted(Result):
    """Done; all that was said in it is gone."""

    thread_id: str
    deleted: bool


class MessagesParams(ThreadParams):
    """The messages before one, or the last ones."""

    before: Identifier | None = None
    limit: int = Field(default=50, ge=1, le=PAGE_MESSAGES)


class MessagePage(Result):
    """Oldest first. With `more` there are older ones: ask for those before the first of these."""

    thread_id: str
    messages: list[Message]
    more: bool


THREAD_LIST = method(
    "thread.list",
    OfSession,
    ThreadList,
    scope=Scope.SESSION,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(SessionUnknown,),
    doc="The threads of a session.",
)

THREAD_CREATE = method(
    "thread.create",
    CreateThreadParams,
    ThreadCreated,
    scope=Scope.SESSION,
    right=Right.SUBMIT,
    order=Order.SESSION,
    errors=(SessionUnknown, StorageUnavailable),
    doc="Begin another line of conversation in a session; it runs beside the others.",
)

THREAD_RENAME = method(
    "thread.rename",
    RenameThreadParams,
    ThreadRenamed,
    scope=Scope.THREAD,
    right=Right.CONTROL,
    order=Order.THREAD,
    errors=(SessionUnknown, ThreadUnknown, StorageUnavailable),
    doc="Give a thread a title.",
)

THREAD_DELETE = method(
    "thread.delete",
    ThreadParams,
    ThreadDeleted,
    scope=Scope.THREAD,
    right=Right.CONTROL,
    order=Order.THREAD,
    errors=(InvalidParams, SessionUnknown, ThreadUnknown, SessionBusy, UnknownExecution, StorageUnavailable),
    doc="Remove a thread for good; `main` stays as long as its session.",
)

THREAD_MESSAGES = method(
    "thread.messages",
    MessagesParams,
    MessagePage,
    scope=Scope.THREAD,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(SessionUnknown, ThreadUnknown, NotFound),
    doc="What was said in a thread, a page at a time, backwards.",
)
