"""Who works for a session: its subagents as a client sees them, and having a word with one.

All of it is looked up when it is asked for: the roster in the journal, so that it is the same after a reconnect, a
restart or a compaction; what runs in the session's threads.
"""

from __future__ import annotations

import sqlite3
from typing import Final, final

from hermes_ws.contract.content import Message, ToolResultBlock
from hermes_ws.contract.errors import ThreadUnknown
from hermes_ws.contract.methods.sessions import ControlResult, SteerParams
from hermes_ws.contract.methods.subagents import TAIL_BYTES, SubagentRow, SubagentStatus
from hermes_ws.journal import lineage, messages
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.lineage import Lineage
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.launch import Launch
from hermes_ws.session.ports import Runtime
from hermes_ws.session.session import Session
from hermes_ws.session.thread import Thread

OUTPUT_SHOWN: Final = 1_000
"""Characters of a tool's output in a tail."""

_STATUS = """SELECT a.status, a.outcome FROM admission a JOIN thread t ON t.id = a.thread
    WHERE t.session_id = ? AND t.thread_id = ? AND a.steers IS NULL
    ORDER BY (a.status IN ('started', 'unknown')) DESC, (a.status = 'queued') DESC, a.id DESC LIMIT 1"""


@final
class Roster:
    """The subagents of one session, for as long as a request looks at them."""

    def __init__(self, runtime: Runtime, session: Session, scope: ProfileScope) -> None:
        self._runtime = runtime
        self._session = session
        self._scope = scope

    async def rows(self) -> list[SubagentRow]:
        """All of them, oldest first."""

        def read(connection: sqlite3.Connection) -> list[tuple[Lineage, SubagentStatus, int, str | None]]:
            found: list[tuple[Lineage, SubagentStatus, int, str | None]] = []
            for each in lineage.of_session(connection, self._session.session_id, "subagent"):
                status = _status(connection, each.key)
                tools, last = lineage.tools_used(connection, each.key)
                if each.result is not None and not tools:
                    kept, named = each.result.get("tool_count"), each.result.get("last_tool")
                    tools = kept if isinstance(kept, int) else 0
                    last = named if isinstance(named, str) else None
                found.append((each, status, tools, last))
            return found

        return [self._row(*each) for each in await self._runtime.journal.read(read)]

    async def tail(self, subagent_id: str) -> tuple[bool, str, bool]:
        """Whether it runs, the end of what it said, and whether that was cut. Nothing for any that does not run."""
        thread = await self._live(subagent_id)
        if thread is None:
            return False, "", False
        told, _ = await self._runtime.journal.read(lambda connection: messages.recent(connection, thread.key))
        parts = [_shown(message) for message in told]
        record = await thread.snapshot(None, messages=False)
        if record.in_progress is not None:
            parts.append(record.in_progress.text)
        text = "\n\n".join(part for part in parts if part)
        data = text.encode()
        if len(data) <= TAIL_BYTES:
            return True, text, False
        return True, data[-TAIL_BYTES:].decode(errors="ignore"), True

    async def steer(self, subagent_id: str, text: str, generation: int | None, principal: str) -> ControlResult:
        """Say something to what runs now, or to that execution and no other."""
        thread = await self._live(subagent_id)
        if thread is None or thread.running is None:
            return ControlResult(outcome="no_active_execution")
        params = SteerParams(
            session_id=self._session.session_id,
            thread_id=subagent_id,
            execution_generation=generation if generation is not None else thread.running,
            text=text,
        )
        return await thread.steer(params, principal)

    async def interrupt(self, subagent_id: str, generation: int | None) -> ControlResult:
        """End what runs now, or that execution and no other."""
        thread = await self._live(subagent_id)
        if thread is None or thread.running is None:
            return ControlResult(outcome="no_active_execution")
        return thread.interrupt(generation if generation is not None else thread.running)

    async def _live(self, subagent_id: str) -> Thread | None:
        """The thread of a subagent of this session that runs; None for a missing, finished or foreign one."""
        key = ThreadKey(self._session.session_id, subagent_id)
        origin = await self._runtime.journal.read(lambda connection: lineage.get(connection, key))
        if origin is None or origin.kind != "subagent":
            return None
        try:
            thread = await self._session.thread(subagent_id)
        except ThreadUnknown:
            return None
        return thread if thread.running is not None else None

    def _row(self, each: Lineage, status: SubagentStatus, tools: int, last: str | None) -> SubagentRow:
        running = next((thread for thread in self._session.threads if thread.key == each.key), None)
        launch = Launch.read(self._session.record.launch)
        agent = _text(each, "agent")
        model = launch.model if agent == self._session.record.agent else None
        return SubagentRow(
            subagent_id=each.key.thread_id,
            thread_id=each.key.thread_id,
            parent_id=each.parent,
            depth=each.depth,
            goal=_text(each, "goal"),
            agent=agent,
            delegation_id=_text(each, "call_id"),
            model=model or self._scope.config.model.name,
            started_at=each.created_at,
            status=status,
            tool_count=tools,
            last_tool=last,
            accepting_steer=running is not None and running.steerable,
            execution_generation=None if running is None else running.running,
        )


def _status(connection: sqlite3.Connection, key: ThreadKey) -> SubagentStatus:
    row = connection.execute(_STATUS, (key.session_id, key.thread_id)).fetchone()
    if row is None:
        return "completed"
    match row:
        case ("queued", _):
            return "queued"
        case ("started", _):
            return "running"
        case ("unknown", _):
            return "error"
        case (_, "completed"):
            return "completed"
        case (_, "failed" | "rejected"):
            return "failed"
        case _:
            return "interrupted"


def _shown(message: Message) -> str:
    if message.role == "tool":
        results = [block for block in message.content if isinstance(block, ToolResultBlock)]
        return "\n".join(f"[{each.name}] {each.output[:OUTPUT_SHOWN]}" for each in results)
    return message.text


def _text(each: Lineage, name: str) -> str:
    value = each.about.get(name)
    return value if isinstance(value, str) else ""
