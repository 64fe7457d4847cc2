"""Terminals that a person opens."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hermes_ws.contract.methods.terminals import (
    TERMINAL_ATTACH,
    TERMINAL_CLOSE,
    TERMINAL_INPUT,
    TERMINAL_LIST,
    TERMINAL_OPEN,
    TERMINAL_RESIZE,
    TerminalDone,
    TerminalInputParams,
    TerminalList,
    TerminalListParams,
    TerminalOpened,
    TerminalOpenParams,
    TerminalParams,
    TerminalResizeParams,
)
from hermes_ws.journal.tail import ThreadTail
from hermes_ws.methods.authority import check_directory
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall
from hermes_ws.scope.current import in_thread
from hermes_ws.session import safe
from hermes_ws.session.backends import backend_for
from hermes_ws.session.launch import Launch
from hermes_ws.warden.grants import Size

KIND: Final[Mapping[str, str]] = MappingProxyType({"TERM": "xterm-256color", "COLORTERM": "truecolor"})
"""As what a terminal presents itself to programs: what those who show it understand. The server's own may be none."""


@handles(TERMINAL_OPEN)
async def open_terminal(call: ProfileCall, params: TerminalOpenParams) -> TerminalOpened:
    """Start the program, and show it to the caller. The directory: as asked for, or the session's, or the profile's."""
    await check_directory(call, TERMINAL_OPEN, params.cwd)
    runtime = call.runtime
    scope = await runtime.fresh_scope()
    session = None if params.session_id is None else await runtime.sessions.get(params.session_id)
    if session is not None and Launch.read(session.record.launch).safe_mode:
        scope = await in_thread(runtime.limiter, safe.emptied, scope, session.session_id)
        cwd = await runtime.sessions.directory(scope, params.cwd)
    else:
        asked = params.cwd if session is None or params.cwd is not None else session.record.cwd
        cwd = await runtime.sessions.directory(scope, asked)
    terminals = runtime.ongoing.terminals
    terminals.check_room()
    backend = backend_for(runtime, scope, cwd, params.session_id)
    command = tuple(params.command or backend.shell(""))
    size = Size(params.rows, params.columns)
    running = await backend.open(command, cwd, env=KIND, terminal=size)
    terminal = await terminals.add(scope, params.session_id, command, cwd, size, running)
    await terminal.room(call.attachment.id, size, working=True)
    _look(call, terminal.tail)
    return TerminalOpened(terminal_id=terminal.terminal_id, profile=scope.profile.text, cwd=str(cwd))


@handles(TERMINAL_ATTACH)
async def attach(call: ProfileCall, params: TerminalParams) -> TerminalDone:
    """Show it to the caller as well."""
    _look(call, call.runtime.ongoing.terminals.get(params.terminal_id).tail)
    return TerminalDone(terminal_id=params.terminal_id)


@handles(TERMINAL_INPUT)
async def type_in(call: ProfileCall, params: TerminalInputParams) -> TerminalDone:
    """Type."""
    await call.runtime.ongoing.terminals.input(params.terminal_id, params.data, viewer=call.attachment.id)
    return TerminalDone(terminal_id=params.terminal_id)


@handles(TERMINAL_RESIZE)
async def resize(call: ProfileCall, params: TerminalResizeParams) -> TerminalDone:
    """Tell how much room the caller has for it."""
    await call.runtime.ongoing.terminals.resize(
        params.terminal_id,
        Size(params.rows, params.columns),
        viewer=call.attachment.id,
        working=params.working,
    )
    return TerminalDone(terminal_id=params.terminal_id)


@handles(TERMINAL_CLOSE)
async def close(call: ProfileCall, params: TerminalParams) -> TerminalDone:
    """End it."""
    await call.runtime.ongoing.terminals.close(params.terminal_id)
    return TerminalDone(terminal_id=params.terminal_id)


@handles(TERMINAL_LIST)
async def list_terminals(call: ProfileCall, params: TerminalListParams) -> TerminalList:
    """Those that are open."""
    return TerminalList(terminals=call.runtime.ongoing.terminals.rows())


def _look(call: ProfileCall, tail: ThreadTail) -> None:
    """The reply comes before the first output."""
    call.after_reply(lambda: call.attachment.look(tail))
