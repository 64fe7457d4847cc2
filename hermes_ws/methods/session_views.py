"""Looking at sessions."""

from __future__ import annotations

import re
import sqlite3

from hermes_ws.contract.errors import ThreadUnknown
from hermes_ws.contract.methods.session_views import (
    EXPORT_INLINE_BYTES,
    SESSION_ACTIVE_LIST,
    SESSION_EXPORT,
    SESSION_GRAPH,
    SESSION_INFO,
    SESSION_MOST_RECENT,
    SESSION_USAGE,
    ActiveList,
    ActiveListParams,
    ActiveRow,
    Exported,
    ExportParams,
    Graph,
    MostRecent,
    MostRecentParams,
    OfSession,
    SessionDescription,
    SessionUsage,
    ThreadNode,
)
from hermes_ws.journal import insights, messages, thread_list
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.thread_list import ThreadRow
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall, SessionCall
from hermes_ws.session.export import ExportedThread, as_json, as_markdown
from hermes_ws.session.info import session_info


@handles(SESSION_MOST_RECENT)
async def most_recent(call: ProfileCall, params: MostRecentParams) -> MostRecent:
    """The head of the list, archived ones left out; pinning moves nothing here."""
    found = await call.runtime.sessions.most_recent(params.source)
    return MostRecent(session=found)


@handles(SESSION_ACTIVE_LIST)
async def active_list(call: ProfileCall, params: ActiveListParams) -> ActiveList:
    """Those in memory. Nothing is read from disk for it."""
    sessions = sorted(call.runtime.sessions.held(), key=lambda each: each.record.updated_at, reverse=True)
    return ActiveList(
        profile=call.runtime.scope.profile.text,
        sessions=[
            ActiveRow(
                session_id=each.session_id,
                title=each.record.title,
                source=each.record.source,
                busy=each.busy,
                watched=each.watched,
                threads=[thread.key.thread_id for thread in each.threads],
                updated_at=each.record.updated_at,
            )
            for each in sessions
        ],
    )


@handles(SESSION_GRAPH)
async def graph(call: SessionCall, params: OfSession) -> Graph:
    """All threads, and the forks and subagents among them once more."""
    threads = await nodes(call)
    return Graph(
        session_id=params.session_id,
        threads=threads,
        forks=[each for each in threads if each.kind == "fork"],
        subagents=[each for each in threads if each.kind == "subagent"],
    )


@handles(SESSION_INFO)
async def info(call: SessionCall, params: OfSession) -> SessionDescription:
    """The stored record, and what the session answers with now."""
    record, scope = call.session.record, call.runtime.scope
    return SessionDescription(
        session_id=record.session_id,
        profile=scope.profile.text,
        title=record.title,
        agent=record.agent,
        cwd=record.cwd,
        source=record.source,
        archived=record.archived,
        pinned=record.pinned,
        revision=record.revision,
        created_at=record.created_at,
        updated_at=record.updated_at,
        launch=dict(record.launch),
        info=session_info(record, scope),
        rules=list(call.session.rules.files),
        threads=await nodes(call),
    )


@handles(SESSION_USAGE)
async def usage(call: SessionCall, params: OfSession) -> SessionUsage:
    """Sums over the executions of all its threads."""
    total = await call.runtime.journal.read(lambda connection: insights.of_session(connection, params.session_id))
    return SessionUsage(
        session_id=params.session_id,
        executions=total.executions,
        outcomes=dict(total.outcomes),
        input_tokens=total.input_tokens,
        output_tokens=total.output_tokens,
        cached_tokens=total.cached_tokens,
        total_tokens=total.input_tokens + total.output_tokens,
        cost_usd=total.cost_usd,
        duration_ms=total.duration_ms,
        by_model=dict(total.models),
    )


@handles(SESSION_EXPORT)
async def export(call: SessionCall, params: ExportParams) -> Exported:
    """A long one is put beside the session's other large contents, and fetched in pieces."""
    record = call.session.record

    def read(connection: sqlite3.Connection) -> list[ExportedThread]:
        rows = thread_list.of_session(connection, params.session_id)
        return [
            ExportedThread(
                row.thread_id,
                row.kind,
                row.title,
                messages.stored(connection, ThreadKey(params.session_id, row.thread_id)),
            )
            for row in rows
            if params.thread_id in (None, row.thread_id)
        ]

    threads = await call.runtime.journal.read(read)
    if not threads:
        raise ThreadUnknown(f"There is no thread {params.thread_id} in this session.")
    render = as_markdown if params.format == "markdown" else as_json
    content = render(call.runtime.scope.profile.text, record, threads)
    words = "-".join(re.findall(r"[A-Za-z0-9]+", record.title or ""))[:60] or record.session_id
    told = Exported(
        session_id=params.session_id,
        format=params.format,
        filename=f"{words}.{'md' if params.format == 'markdown' else 'json'}",
        size=len(content),
    )
    if len(content) <= EXPORT_INLINE_BYTES:
        return told.model_copy(update={"text": content.decode()})
    blob = await call.runtime.journal.blobs.put(content)
    return told.model_copy(update={"blob": blob.hash})


async def nodes(call: SessionCall) -> list[ThreadNode]:
    """The threads of the session."""
    session_id = call.session.session_id
    rows = await call.runtime.journal.read(lambda connection: thread_list.of_session(connection, session_id))
    return [_node(row) for row in rows]


def _node(row: ThreadRow) -> ThreadNode:
    return ThreadNode(
        thread_id=row.thread_id,
        kind=row.kind,
        title=row.title,
        parent=row.parent,
        generation=row.generation,
        execution_generation=row.execution_generation,
        created_at=row.created_at,
        state=row.state,
    )
