"""One connection to a server: typed calls, subscriptions, and answers to its questions.

Two tasks serve it, owned by `connect`: the reader takes every frame at once and never waits for anybody; the writer
alone sends, and what it has begun it ends, whatever is cancelled around it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, final

import anyio
from anyio.abc import TaskGroup
from pydantic import JsonValue, ValidationError

from hermes_ws.client.failures import (
    ClientError,
    ConnectionLost,
    EventUnreadable,
    NotSent,
    OutcomeUnknown,
    ReplyRefused,
    TooLarge,
)
from hermes_ws.client.incoming import Asked, Reply, Unreadable, read
from hermes_ws.client.questions import Handlers
from hermes_ws.client.replies import read_result
from hermes_ws.client.sockets import CLOSE_SECONDS, Socket
from hermes_ws.client.subscription import Subscription
from hermes_ws.contract.events import DrainingNotice, Envelope, Ready
from hermes_ws.contract.methods.sessions import SESSION_CREATE, SESSION_RESUME, Created, CreateParams, ResumeParams
from hermes_ws.contract.methods.threads import THREAD_SUBSCRIBE, Snapshot, SubscribeParams
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.registry import Method
from hermes_ws.wire.frames import encode

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=Result)

CALL_SECONDS = 30.0
"""How long a reply is waited for. A reply tells that work was accepted, not that it is done, so it comes soon."""

METHOD_UNKNOWN = -32601

MAIN_THREAD = "main"

_log = logging.getLogger("hermes_ws.client")


@final
@dataclass(slots=True)
class _Call:
    """A request under way. `done` is set once `failure` is final or `accept` has taken the result."""

    method: str
    accept: Callable[[JsonValue], None]
    done: anyio.Event = field(default_factory=anyio.Event)
    failure: ClientError | None = None
    sent: bool = False
    withdrawn: bool = False


@final
@dataclass(frozen=True, slots=True)
class _Outgoing:
    frame: bytes
    call: _Call | None = None


@final
class Gateway:
    """An open, negotiated connection. `connect` makes it, and ends it with its block."""

    def __init__(self, socket: Socket, ready: Ready, handlers: Handlers, tasks: TaskGroup) -> None:
        self.ready = ready
        self.draining: DrainingNotice | None = None
        self._handlers = handlers
        self._tasks = tasks
        self._socket = socket
        self._calls: dict[int, _Call] = {}
        self._subscriptions: dict[tuple[str, str], Subscription] = {}
        self._asked: dict[str, anyio.CancelScope] = {}
        self._outgoing: deque[_Outgoing] = deque()
        self._to_send = anyio.Event()
        self._sending: anyio.CancelScope | None = None
        self._closing = False
        self._lost: ClientError | None = None
        self._ended = anyio.Event()
        self._next = 1

    # --- for programs ----------------------------------------------------------------------------------------------

    async def call(self, method: Method[P, R], params: P, *, deadline_s: float = CALL_SECONDS) -> R:
        """Ask, and wait for the answer.

        Raises RemoteError (the server refused), OutcomeUnknown (the request left, no reply came), NotSent, TooLarge
        and ReplyRefused. Never sends anything twice. Cancelling it takes nothing back that the server has accepted.
        """
        return await self._request(method, params, None, deadline_s)

    async def subscribe(self, params: SubscribeParams) -> tuple[Snapshot, Subscription]:
        """Listen to a thread: its state at one moment, and the events after it. Again: the former subscription ends."""
        snapshot = await self._request(THREAD_SUBSCRIBE, params, self._listen_to, CALL_SECONDS)
        return snapshot, self._listening(snapshot)

    async def resume(self, params: ResumeParams) -> tuple[Snapshot, Subscription]:
        """Find a session by id, by title or as the latest, and listen to its main thread."""
        snapshot = await self._request(SESSION_RESUME, params, self._listen_to, CALL_SECONDS)
        return snapshot, self._listening(snapshot)

    async def create(self, params: CreateParams) -> tuple[Created, Subscription]:
        """Make a session and listen to it. `params.subscribe` must be left as it is."""
        if not params.subscribe:
            raise ValueError("create() listens to the session; to make one without listening, use call(SESSION_CREATE)")
        created = await self._request(SESSION_CREATE, params, self._listen_to, CALL_SECONDS)
        return created, self._listening(created)

    @property
    def lost(self) -> ClientError | None:
        """Why the connection ended; None while it is open."""
        return self._lost

    async def wait_lost(self) -> ClientError:
        """Wait for the end of the connection, and tell the reason."""
        await self._ended.wait()
        return self._lost or ConnectionLost(None, "")

    # --- for connect -----------------------------------------------------------------------------------------------

    async def read(self) -> None:
        """The reader: runs until the connection ends."""
        try:
            while True:
                self._take(await self._socket.receive())
        except (ConnectionLost, ReplyRefused) as error:
            self._end(error)

    async def write(self) -> None:
        """The writer: runs until the connection ends. What is being sent when it is cancelled is sent to its end."""
        while True:
            while self._outgoing and not self._closing:
                outgoing = self._outgoing.popleft()
                if outgoing.call is not None:
                    if outgoing.call.withdrawn:
                        continue
                    outgoing.call.sent = True
                with anyio.CancelScope(shield=True) as self._sending:
                    try:
                        await self._socket.send(outgoing.frame)
                    except ConnectionLost as error:
                        self._end(error)
                        return
                self._sending = None
            self._to_send = anyio.Event()
            await self._to_send.wait()

    async def close(self) -> None:
        """Say goodbye. A send that the other side does not take is given up after CLOSE_SECONDS."""
        self._closing = True
        if self._sending is not None:
            self._sending.deadline = anyio.current_time() + CLOSE_SECONDS
        await self._socket.close()
        self._end(ConnectionLost(1000, "closed by this client"))

    # --- within ----------------------------------------------------------------------------------------------------

    async def _request(
        self, method: Method[P, R], params: P, register: Callable[[R], None] | None, deadline_s: float
    ) -> R:
        if self._lost is not None or self._closing:
            raise NotSent(method.name, "the connection has ended")
        number, self._next = self._next, self._next + 1
        given = params.model_dump(mode="json", exclude_none=True, exclude_unset=True)
        frame = encode({"jsonrpc": "2.0", "id": number, "method": method.name, "params": given})
        if len(frame) > self.ready.limits.frame_bytes:
            raise TooLarge(method.name, len(frame), self.ready.limits.frame_bytes)
        results: list[R] = []

        def accept(result: JsonValue) -> None:
            value = read_result(method.result, result, f"answer to {method.name}")
            if register is not None:
                register(value)
            results.append(value)

        call = self._calls[number] = _Call(method.name, accept)
        self._send(frame, call)
        try:
            with anyio.move_on_after(deadline_s):
                await call.done.wait()
        finally:
            self._calls.pop(number, None)
            call.withdrawn = True
        if call.failure is not None:
            raise call.failure
        if not results:
            because = f"no reply came within {deadline_s:g} s"
            raise OutcomeUnknown(method.name, because) if call.sent else NotSent(method.name, because)
        return results[0]

    def _send(self, frame: bytes, call: _Call | None = None) -> None:
        self._outgoing.append(_Outgoing(frame, call))
        self._to_send.set()

    def _listen_to(self, boundary: Snapshot | Created) -> None:
        # Runs in the reader, before the next frame is read: the reply comes before the first event, and so does this.
        key = (boundary.session_id, boundary.thread_id)
        former = self._subscriptions.get(key)
        self._subscriptions[key] = Subscription(*key)
        if former is not None:
            former.end(None)

    def _listening(self, boundary: Snapshot | Created) -> Subscription:
        return self._subscriptions[boundary.session_id, boundary.thread_id]

    def _take(self, frame: bytes) -> None:
        incoming = read(frame)
        if isinstance(incoming, Reply):
            self._take_reply(incoming)
        elif isinstance(incoming, Envelope):
            self._take_event(incoming)
        elif isinstance(incoming, Asked):
            self._take_question(incoming)
        elif isinstance(incoming, Unreadable):
            subscription = self._subscriptions.get((incoming.session_id, incoming.thread_id))
            if subscription is not None:
                subscription.end(EventUnreadable(None, incoming.type, incoming.because))

    def _take_reply(self, reply: Reply) -> None:
        call = self._calls.pop(reply.id, None)
        if call is None:
            return  # nobody waits any more: it was cancelled, or its deadline passed
        call.failure = reply.error
        if reply.error is None:
            try:
                call.accept(reply.result)
            except ReplyRefused as error:
                call.failure = error
        call.done.set()

    def _take_event(self, event: Envelope) -> None:
        if event.type == "request.cancel":
            scope = self._asked.get(str(event.payload.get("id")))
            if scope is not None:
                scope.cancel()
        elif event.type == "gateway.draining":
            try:
                self.draining = DrainingNotice.model_validate(event.payload)
            except ValidationError:
                _log.warning("the server announced its end in a way that this client cannot read")
        elif event.session_id is not None and event.thread_id is not None:
            subscription = self._subscriptions.get((event.session_id, event.thread_id))
            if subscription is not None:
                subscription.push(event)

    def _take_question(self, asked: Asked) -> None:
        if not self._handlers.knows(asked):
            error = {"code": METHOD_UNKNOWN, "message": f"This client does not know questions of kind {asked.kind}."}
            self._send(encode({"jsonrpc": "2.0", "id": asked.id, "error": {**error, "data": {"type": "no_answerer"}}}))
        elif asked.kind in self._handlers.kinds:
            self._tasks.start_soon(self._answer, asked, name=f"answer {asked.id}")

    async def _answer(self, asked: Asked) -> None:
        with anyio.CancelScope() as scope:
            self._asked[asked.id] = scope
            try:
                result = await self._handlers.answer(asked)
            except Exception:
                _log.exception("the handler of %s questions failed; %s stays open", asked.kind, asked.id)
                return
            finally:
                self._asked.pop(asked.id, None)
            if result is not None:
                self._send(encode({"jsonrpc": "2.0", "id": asked.id, "result": result}))

    def _end(self, reason: ClientError) -> None:
        if self._lost is not None:
            return
        self._lost = reason
        for call in self._calls.values():
            because = "the connection ended before the reply came" if call.sent else "the connection ended"
            call.failure = (OutcomeUnknown if call.sent else NotSent)(call.method, because)
            call.done.set()
        self._calls.clear()
        for subscription in self._subscriptions.values():
            subscription.end(reason)
        for scope in self._asked.values():
            scope.cancel()
        self._ended.set()
