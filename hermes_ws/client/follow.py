"""Following a thread across connections: every committed event once, in order, whatever happens to the socket.

The cursor moves when the reader comes back for the next event, which is when it is done with the last one. A reader
that fails in the middle of an event gets that event again, never a gap (cases REPLAY-01, REPLAY-04, REPLAY-14). An
event that cannot be read ends the following where it stands: to read on past it would be a gap as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from pydantic import ValidationError

from hermes_ws.client.failures import (
    ClientError,
    ConnectionLost,
    EventUnreadable,
    Lagging,
    NotSent,
    OutcomeUnknown,
    ReplyRefused,
)
from hermes_ws.client.gateway import MAIN_THREAD
from hermes_ws.client.incoming import first_problem
from hermes_ws.client.link import Link
from hermes_ws.client.subscription import Subscription
from hermes_ws.contract.errors import InvalidParams
from hermes_ws.contract.events import EVENTS, Envelope
from hermes_ws.contract.methods.threads import Snapshot, SubscribeParams
from hermes_ws.wire.cursor import Cursor


@final
@dataclass(frozen=True, slots=True)
class Resumed:
    """The subscription stands (again). `snapshot` has what is open, pending and in progress at this moment.

    Where `dropped` is true, all that was derived from earlier events is to be thrown away: the journal was replaced,
    or the server never had the cursor; what follows comes from its beginning.
    """

    snapshot: Snapshot

    @property
    def dropped(self) -> bool:
        """Whether earlier events count no more."""
        return self.snapshot.position in ("rebased", "ahead")


@final
@dataclass(frozen=True, slots=True)
class Away:
    """The connection is gone, and is being dialled again. Nothing is lost by it."""

    reason: ClientError


Item = Resumed | Away | Envelope


@final
class Following:
    """An async iterator over what happens in a thread. `cursor` may be stored, and passed as `after` another time.

    Iterating raises RemoteError where the server refuses the subscription, and ConnectFailed or ConnectionLost where
    there is no use in coming back; EventUnreadable, again and again, at an event that breaks the contract. It stops
    after `session.closed`, and when the same thread is subscribed again on the same connection.
    """

    def __init__(self, link: Link, session_id: str, thread_id: str, after: str | None, profile: str | None) -> None:
        self._link = link
        self._session_id = session_id
        self._thread_id = thread_id
        self._profile = profile
        self._cursor = None if after is None else Cursor.parse(after)
        self._handed_out: Cursor | None = None
        self._events: Subscription | None = None
        self._stuck: EventUnreadable | None = None
        self._closed = False

    @property
    def cursor(self) -> str | None:
        """Up to where everything was handled; None before the first subscription of one that named no cursor."""
        return None if self._cursor is None else str(self._cursor)

    def __aiter__(self) -> Following:
        return self

    async def __anext__(self) -> Item:
        if self._handed_out is not None:
            self._cursor, self._handed_out = self._handed_out, None
        while True:
            if self._closed:
                raise StopAsyncIteration
            if self._stuck is not None:
                raise EventUnreadable(self.cursor, self._stuck.type, self._stuck.because)
            if self._events is None:
                return await self._subscribe()
            try:
                event = await anext(self._events)
                cursor = _position(event)
                _check(event)
            except EventUnreadable as error:
                self._stuck = error
                continue
            except Lagging:
                self._events = None
                continue
            except (ConnectionLost, ReplyRefused) as error:
                self._events = None
                return Away(error)
            if cursor is not None and self._cursor is not None and cursor <= self._cursor:
                continue
            self._handed_out = cursor
            self._closed = event.type == "session.closed"
            return event

    async def _subscribe(self) -> Item:
        gateway = await self._link.gateway()
        try:
            snapshot, self._events = await gateway.subscribe(self._params())
        except (NotSent, OutcomeUnknown) as error:
            if gateway.lost is None:
                raise
            return Away(error)
        if snapshot.position == "fresh":
            self._cursor = Cursor.parse(snapshot.cursor)
        elif snapshot.position != "ok":
            self._cursor = Cursor(snapshot.generation, 0)
        return Resumed(snapshot)

    def _params(self) -> SubscribeParams:
        params = SubscribeParams(session_id=self._session_id, thread_id=self._thread_id)
        given = {name: value for name, value in (("after", self.cursor), ("profile", self._profile)) if value}
        return params.model_copy(update=given)


def _position(event: Envelope) -> Cursor | None:
    try:
        return None if event.cursor is None else Cursor.parse(event.cursor)
    except InvalidParams:
        raise EventUnreadable(None, event.type, f"{event.cursor!r} is no cursor") from None


def _check(event: Envelope) -> None:
    """See that an event of a known type can be read; those of a later version are handed on as they are."""
    known = EVENTS.get(event.type)
    if known is None:
        return
    try:
        known.payload.model_validate(event.payload)
    except ValidationError as error:
        raise EventUnreadable(None, event.type, first_problem(error)) from None


def follow(
    link: Link,
    session_id: str,
    thread_id: str = MAIN_THREAD,
    *,
    after: str | None = None,
    profile: str | None = None,
) -> Following:
    """What happens in a thread from `after` on (or from now on), across connections."""
    return Following(link, session_id, thread_id, after, profile)
