"""From a request to its reply: validate, find the profile, authorise, bind, run the handler.

This is one of the three places where a scope is bound. What a method needs bound is in its declaration; a handler is
given exactly that and finds nothing else lying about. Every request gets one reply, whatever happens in its handler: a
foreseen error as it is, anything else as an incident id whose stack is in the log.
"""

from __future__ import annotations

import secrets
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, TypeVarTuple, cast, final

import trio
from pydantic import JsonValue, ValidationError

from hermes_ws.contract.errors import (
    HermesError,
    Internal,
    InvalidRequest,
    LimitReached,
    MethodUnknown,
    PermissionDenied,
    ProtocolUnsupported,
    RequestCancelled,
)
from hermes_ws.contract.methods.questions import QUESTION_ANSWER, AnswerParams, ById
from hermes_ws.contract.model import Params
from hermes_ws.contract.registry import Order, Right, Scope
from hermes_ws.contract.validation import unfit
from hermes_ws.hosting.host import Host
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.methods.handler import Handler
from hermes_ws.methods.ports import (
    ConnectionCall,
    Present,
    ProfileCall,
    ServerCall,
    ServerFacts,
    SessionCall,
    ThreadCall,
)
from hermes_ws.scope.current import Bound, bind
from hermes_ws.server.addressing import Addressing, named
from hermes_ws.server.attachment import Attached
from hermes_ws.server.audience import Audience
from hermes_ws.server.desk import Desk, Found, Step
from hermes_ws.server.door import WITHDRAWN
from hermes_ws.server.lanes import Entry
from hermes_ws.server.ports import Caller
from hermes_ws.server.process_log import ProcessLog
from hermes_ws.server.routes import Route, Routes
from hermes_ws.server.trail import Trail
from hermes_ws.session.identifiers import MAIN_THREAD
from hermes_ws.wire.frames import Frame, RequestId, error_frame, reply_frame
from hermes_ws.wire.peer import Request, Response

PROTOCOL_CLOSE = 4526
"""Close code for a client of another major version: it need not come back as it is."""

LOOKING: Final = frozenset({Right.NONE, Right.OBSERVE})
"""Rights of methods that change nothing. Looking at a profile does not keep it open (case REAP-20)."""

End = Callable[[str, float | None], None]
"""Ends the server: who asked for it, and how many seconds what runs has; None for what the settings say."""

Ts = TypeVarTuple("Ts")


@final
class Dispatch:
    """Takes what connections read. One per server."""

    def __init__(
        self,
        host: Host,
        facts: ServerFacts,
        handlers: Mapping[str, Handler],
        audience: Audience,
        log: ProcessLog,
        *,
        width: int,
        frame_bytes: int,
        end: End,
    ) -> None:
        self._host = host
        self._profiles = Addressing(host)
        self._facts = facts
        self._handlers = handlers
        self._audience = audience
        self._log = log
        self._width = width
        self._frame_bytes = frame_bytes
        self._desks: dict[str, Desk] = {}
        self._routes: dict[frozenset[Right], Routes] = {}
        self._end = end
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Own the requests that are under way, until cancelled.

        They belong to the server and not to their connection: what has begun is finished, also when whoever asked for
        it hangs up at once. What was still waiting for its turn then has never happened.
        """
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            await trio.sleep_forever()

    # --- what the reader calls ---------------------------------------------------------------------------------------

    def accept(self, connection: Caller, request: Request, size: int) -> None:
        """Take a request of `size` bytes: it runs now, in its turn, or is refused."""
        credential = connection.principal.credential
        if credential is not None and self._host.credentials.withdrawn(credential):
            # Taken back while it was coming in; whoever was in already has been sent out.
            connection.close(WITHDRAWN, "the credential was withdrawn")
            connection.reply(error_frame(request.id, PermissionDenied("The credential was withdrawn.").to_wire()))
            return
        self._audience.heard(connection)
        desk = self._desks.get(connection.id)
        if desk is None:
            desk = self._desks[connection.id] = self._desk(connection)
        id = request.id
        try:
            route = desk.routes[request.method]
            if id in desk.under_way:
                raise InvalidRequest("A request with this id is under way on this connection.")
            if route.guarded:
                route.check(connection)
            params = route.validate(request.params)
            if route.conditional:
                route.check_parameters(connection, params)
            lane = route.lane(connection, params) if route.ordered else None
            if route.plain is not None and desk.lanes.free(lane):
                frame = self._at_once(desk, connection, route, params, id)
                if frame is not None:
                    connection.reply(frame)
                    return
            handler = route.handler
            start = partial(self._start, desk, connection, handler, params, id)
            desk.under_way[id] = trio.CancelScope()
            try:
                desk.lanes.take(Entry(lane, size, start, overtakes=handler.method.order is Order.NOW))
            except HermesError:
                del desk.under_way[id]
                raise
        except HermesError as error:
            connection.reply(error_frame(id, error.to_wire()))
        except ValidationError as error:
            connection.reply(error_frame(id, unfit(error).to_wire()))

    def rested(self, connection: Caller) -> None:
        """All that was read is taken; what was found for it alone is let go."""
        desk = self._desks.get(connection.id)
        if desk is not None:
            desk.found = None

    def _desk(self, connection: Caller) -> Desk:
        rights = connection.principal.rights
        routes = self._routes.get(rights)
        if routes is None:
            routes = self._routes[rights] = Routes(self._handlers, rights)
        attachment = Attached(connection, _nothing)
        base = (attachment, connection.principal, _nothing_after, self._host, self._facts)
        return Desk(self._width, routes, (*base, partial(self._profiles.open, connection), self))

    def answered(self, connection: Caller, response: Response) -> None:
        """An answer to a question, on the connection that was asked."""
        if self._audience.awaits(connection, response.id):
            if response.error is None:
                self._spawn(self._alone, self._answer, connection, str(response.id), response.result)
            elif _code(response.error) == MethodUnknown.code:
                self._audience.declined(connection, str(response.id))
                self._spawn(self._alone, self._reconsider, connection, str(response.id))
            # Any other error leaves the question open: this client or another may answer it later.
        elif isinstance(response.id, str) and Right.ANSWER in connection.principal.rights:
            self._spawn(self._alone, self._tell_outcome, connection, response.id)

    def cancelled(self, connection: Caller, id: RequestId) -> None:
        """End a request that is under way. What it has committed stays committed."""
        desk = self._desks.get(connection.id)
        scope = None if desk is None else desk.under_way.get(id)
        if scope is not None:
            scope.cancel()

    def gone(self, connection: Caller) -> None:
        """The connection has ended, and with it what waited for its turn."""
        desk = self._desks.pop(connection.id, None)
        if desk is not None:
            desk.closed = True
        self._audience.left(connection)

    @property
    def requests(self) -> int:
        """How many requests run, on all connections."""
        return sum(desk.lanes.running for desk in self._desks.values())

    @property
    def connections(self) -> int:
        """How many clients are there now."""
        return self._audience.size

    def present(self) -> list[Present]:
        """Who is connected now."""
        return self._audience.present()

    def drain(self, deadline_s: float | None) -> float:
        """Have the server end, as a signal would."""
        self._end("runtime.drain", deadline_s)
        return time.time() + (self._host.launch_config.server.drain_s if deadline_s is None else deadline_s)

    # --- one request -------------------------------------------------------------------------------------------------

    def _start(
        self, desk: Desk, connection: Caller, handler: Handler, params: Params, id: RequestId, entry: Entry
    ) -> None:
        if not desk.closed:
            self._spawn(self._run, desk, connection, handler, params, id, entry)

    def _spawn(self, function: Callable[[*Ts], Awaitable[None]], *args: *Ts) -> None:
        assert self._nursery is not None, "connections are accepted after the dispatch runs"
        self._nursery.start_soon(function, *args)

    async def _alone(self, function: Callable[[*Ts], Awaitable[None]], *args: *Ts) -> None:
        """Run what answers no request. What goes wrong with it is its own affair, and never the server's."""
        try:
            await function(*args)
        except HermesError as error:
            self._log.warning("left undone", type=error.type)
        except Exception as bug:
            self._log.incident(secrets.token_hex(6), bug)

    async def _run(
        self, desk: Desk, connection: Caller, handler: Handler, params: Params, id: RequestId, entry: Entry
    ) -> None:
        after: list[Step] = []
        cancel = desk.under_way[id]
        frame = error_frame(id, RequestCancelled("The request was taken back before it had happened.").to_wire())
        try:
            with cancel:
                frame = await self._reply(connection, handler, params, id, after)
            connection.reply(frame)
            for step in after:
                step()
        finally:
            del desk.under_way[id]
            desk.lanes.done(entry)

    async def _reply(
        self, connection: Caller, handler: Handler, params: Params, id: RequestId, after: list[Step]
    ) -> Frame:
        trail = Trail(connection, handler.method, params)
        try:
            result = await self._handle(connection, handler, params, after, trail)
            await self._note(trail, "ok")
            return self._framed(id, result)
        except HermesError as error:
            await self._note(trail, error.type)
            if isinstance(error, ProtocolUnsupported):
                after.append(lambda: connection.close(PROTOCOL_CLOSE, "protocol not supported"))
            return error_frame(id, error.to_wire())
        except Exception as bug:
            after.clear()
            return self._incident(connection, handler, id, bug, trail.runtime)

    def _framed(self, id: RequestId, result: object) -> Frame:
        frame = reply_frame(id, result)
        if len(frame.json) > self._frame_bytes:
            raise LimitReached("The answer is larger than a frame may be.", hint="Ask for less at once.")
        return frame

    def _incident(
        self, connection: Caller, handler: Handler, id: RequestId, bug: Exception, runtime: ProfileRuntime | None
    ) -> Frame:
        """The answer to a request that met a bug of ours. What the bug says is the profile's; its log alone has it."""
        incident = secrets.token_hex(6)
        self._log.incident(incident, bug, method=handler.method.name, connection=connection.id)
        if runtime is not None:
            stack = "".join(traceback.format_exception(bug))
            runtime.log.write("error", "internal", incident=incident, method=handler.method.name, stack=stack)
        return error_frame(id, Internal("Something went wrong in the server.", incident=incident).to_wire())

    def _at_once(self, desk: Desk, connection: Caller, route: Route, params: Params, id: RequestId) -> Frame | None:
        """The answer of a plain handler; None where the profile that it is about has to be opened first."""
        answer = route.plain
        assert answer is not None
        runtime = None
        try:
            if route.on_server:
                return self._framed(id, answer(ServerCall(*desk.standing), params))
            asked = named(params)
            found = desk.found
            if found is None or found.asked != asked or route.located:
                runtime = self._profiles.at_once(connection, params)
                if runtime is None:
                    return None
                bound = Bound(runtime.scope, connection.id)
                found = desk.found = Found(asked, ProfileCall(*desk.standing, runtime), bound)
            runtime = found.call.runtime
            with bind(found.bound):
                return self._framed(id, answer(found.call, params))
        except HermesError as error:
            return error_frame(id, error.to_wire())
        except Exception as bug:
            return self._incident(connection, route.handler, id, bug, runtime)

    async def _handle(
        self, connection: Caller, handler: Handler, params: Params, after: list[Step], trail: Trail
    ) -> object:
        scope = handler.method.scope
        attachment = Attached(connection, lambda: self._spawn(self._alone, self._show_questions, connection))
        base = (attachment, connection.principal, after.append)
        if scope is Scope.CONNECTION:
            return await handler.run(ConnectionCall(*base), params)
        server = (*base, self._host, self._facts, partial(self._profiles.open, connection), self)
        if scope is Scope.SERVER:
            trail.on_server = True
            return await handler.run(ServerCall(*server), params)
        runtime = trail.runtime = await self._profiles.of(connection, params)
        if handler.method.right not in LOOKING:
            runtime.touch()
        session_id = cast("str | None", getattr(params, "session_id", None))
        with bind(Bound(runtime.scope, connection.id, session_id, None)):
            if scope is Scope.PROFILE:
                return await handler.run(ProfileCall(*server, runtime), params)
            assert session_id is not None, "a method of scope session or thread names its session"
            session = await runtime.sessions.get(session_id)
            if scope is Scope.SESSION:
                return await handler.run(SessionCall(*server, runtime, session), params)
            thread = await session.thread(cast("str", getattr(params, "thread_id", MAIN_THREAD)))
            return await handler.run(ThreadCall(*server, runtime, session, thread), params)

    async def _show_questions(self, connection: Caller) -> None:
        """Send what waits for an answer to a connection that has just said what it can be asked."""
        for runtime in self._host.open_runtimes():
            if not connection.may_address(runtime.name.text):
                continue
            with bind(Bound(runtime.scope, connection.id, None, None)):
                for question in await runtime.sessions.open_questions():
                    self._audience.show(connection, question, runtime.name.text)

    async def _answer(self, connection: Caller, id: str, result: JsonValue) -> None:
        async def settle(params: AnswerParams) -> object:
            trail = Trail(connection, QUESTION_ANSWER, params)
            trail.runtime = runtime = await self._profiles.of(connection, params)
            with bind(Bound(runtime.scope, connection.id, None, None)):
                answered = await runtime.sessions.answer(params, connection.principal.name)
            await self._note(trail, "ok")
            return answered

        await self._audience.answered(connection, id, result, settle)

    async def _reconsider(self, connection: Caller, id: str) -> None:
        with suppress(HermesError):
            runtime = await self._profiles.of(connection, ById(id=id))
            await runtime.sessions.questions.reconsider(id)

    async def _tell_outcome(self, connection: Caller, id: str) -> None:
        """An answer that is too late is told what the outcome was, if it may be known here."""
        with suppress(HermesError):
            runtime = await self._profiles.of(connection, ById(id=id))
            told = await runtime.sessions.questions.outcome(id)
            if told is not None:
                self._audience.too_late(connection, id, told.outcome)

    async def _note(self, trail: Trail, outcome: str) -> None:
        """Write down who did what: in the profile that it was done in, or with the launch profile for the server. It is
        durable when this returns, so that nothing that was acknowledged is missing after a crash.
        """
        if not trail.method.audited:
            return
        try:
            runtime = trail.runtime
            if runtime is None and trail.on_server:
                runtime = await self._host.open(self._host.launch)
            if runtime is not None:
                await runtime.audit.keep(trail.deed(outcome))
        except (HermesError, RuntimeError):
            self._log.warning("not written down", method=trail.method.name, outcome=outcome)


def _code(error: JsonValue) -> JsonValue:
    return error.get("code") if isinstance(error, dict) else None


def _nothing() -> None:
    """What a plain handler may have done besides."""


def _nothing_after(step: Step) -> None:
    raise RuntimeError("a plain handler has nothing to do after its reply; make it a coroutine function")
