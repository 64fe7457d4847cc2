"""Looking at a thread."""

from __future__ import annotations

from hermes_ws.contract.methods.threads import (
    SESSION_EVENTS_SINCE,
    THREAD_STATE,
    THREAD_SUBSCRIBE,
    THREAD_UNSUBSCRIBE,
    EventPage,
    EventsParams,
    Snapshot,
    SubscribeParams,
    ThreadParams,
    Unsubscribed,
)
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ServerCall, ThreadCall
from hermes_ws.session.thread import Thread
from hermes_ws.wire.cursor import Cursor


@handles(THREAD_STATE)
async def state(call: ThreadCall, params: ThreadParams) -> Snapshot:
    """One coherent boundary, without history and without a subscription."""
    return await call.thread.snapshot(None, messages=False)


@handles(THREAD_SUBSCRIBE)
async def subscribe(call: ThreadCall, params: SubscribeParams) -> Snapshot:
    """Take the snapshot, and listen from its boundary once the reply is out."""
    return await attach(call, call.thread, params.after, params.messages)


@handles(THREAD_UNSUBSCRIBE)
async def unsubscribe(call: ThreadCall, params: ThreadParams) -> Unsubscribed:
    """Stop listening."""
    return Unsubscribed(unsubscribed=call.attachment.stop_listening(call.thread))


@handles(SESSION_EVENTS_SINCE)
async def events_since(call: ThreadCall, params: EventsParams) -> EventPage:
    """A page of committed events."""
    return await call.thread.events(Cursor.parse(params.after), params.limit)


async def attach(call: ServerCall, thread: Thread, after: str | None, messages: bool | None) -> Snapshot:
    """Snapshot a thread and subscribe the caller to what follows. The reply comes before the first event."""
    cursor = None if after is None else Cursor.parse(after)
    snapshot, start, marks = await thread.subscription_start(cursor, messages)
    call.after_reply(lambda: call.attachment.listen(thread, start, marks))
    return snapshot
