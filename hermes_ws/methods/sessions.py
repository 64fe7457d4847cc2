"""Conversations: making, listing, resuming and interrupting them."""

from __future__ import annotations

from hermes_ws.agent.tools.registry import check_toolsets
from hermes_ws.contract.errors import HermesError, InvalidParams
from hermes_ws.contract.methods.sessions import (
    SESSION_CLOSE,
    SESSION_CREATE,
    SESSION_INTERRUPT,
    SESSION_LIST,
    SESSION_RESUME,
    SESSION_STEER,
    Closed,
    CloseParams,
    ControlResult,
    Created,
    CreateParams,
    InterruptParams,
    ListParams,
    ResumeParams,
    SessionList,
    SessionRow,
    SteerParams,
)
from hermes_ws.contract.methods.threads import Snapshot
from hermes_ws.journal.sessions import place
from hermes_ws.methods.authority import check_directory
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall, ServerCall, ThreadCall
from hermes_ws.methods.threads import attach
from hermes_ws.scope.current import Bound, bind

MAIN = "main"
"""The thread that every session has."""


@handles(SESSION_CREATE)
async def create(call: ProfileCall, params: CreateParams) -> Created:
    """Make the session; a repeated `request_id` answers with the one that it made."""
    await check_directory(call, SESSION_CREATE, params.cwd)
    check_toolsets(params.toolsets or (), call.runtime.scope.config.mcp_servers)
    session, created = await call.runtime.sessions.create(params, call.principal.name)
    if params.subscribe:
        thread = await session.thread(MAIN)
        _, start, marks = await thread.subscription_start(None, messages=False)
        call.after_reply(lambda: call.attachment.listen(thread, start, marks))
        created = created.model_copy(update={"cursor": str(start)})
    return created


@handles(SESSION_LIST)
async def list_sessions(call: ServerCall, params: ListParams) -> SessionList:
    """One profile's sessions, or those of all that the caller may see, newest first. A profile that cannot be opened
    is passed over in the list of all; named alone, it answers with what is wrong.
    """
    if params.profile != "*":
        runtime = await call.open(params.profile)
        with bind(Bound(runtime.scope, call.attachment.id, None, None)):
            return await runtime.sessions.list(params)
    rows: list[SessionRow] = []
    further = False
    for row in call.host.listing():
        if not call.may_address(row.name):
            continue
        try:
            runtime = await call.open(row.name)
            with bind(Bound(runtime.scope, call.attachment.id, None, None)):
                page = await runtime.sessions.list(params)
        except InvalidParams:
            raise
        except HermesError:
            continue
        rows += page.sessions
        further = further or page.next is not None
    # The order of each profile's own pages, so that one place in it means the same in all of them.
    rows.sort(key=lambda each: (each.pinned, each.updated_at, each.session_id), reverse=True)
    further = further or len(rows) > params.limit
    rows = rows[: params.limit]
    last = rows[-1] if further and rows else None
    following = place(last.pinned, last.updated_at, last.session_id) if last else None
    return SessionList(sessions=rows, next=following)


@handles(SESSION_RESUME)
async def resume(call: ProfileCall, params: ResumeParams) -> Snapshot:
    """Find the session by id, title or age, and listen to its main thread."""
    sessions = call.runtime.sessions
    if params.session_id is not None:
        session = await sessions.get(params.session_id)
    else:
        session = await sessions.find(title=params.title, latest=params.latest)
    thread = await session.thread(MAIN)
    return await attach(call, thread, params.after, params.messages)


@handles(SESSION_INTERRUPT)
async def interrupt(call: ThreadCall, params: InterruptParams) -> ControlResult:
    """End the execution that the caller has seen."""
    return call.thread.interrupt(params.execution_generation)


@handles(SESSION_STEER)
async def steer(call: ThreadCall, params: SteerParams) -> ControlResult:
    """Say something to the execution that the caller has seen."""
    return await call.thread.steer(params, call.principal.name)


@handles(SESSION_CLOSE)
async def close(call: ProfileCall, params: CloseParams) -> Closed:
    """Put the session away."""
    return await call.runtime.sessions.close(params.session_id)
