"""The threads of a session."""

from __future__ import annotations

import sqlite3

from hermes_ws.contract.content import Message
from hermes_ws.contract.errors import NotFound
from hermes_ws.contract.methods.session_views import OfSession
from hermes_ws.contract.methods.thread_life import (
    THREAD_CREATE,
    THREAD_DELETE,
    THREAD_LIST,
    THREAD_MESSAGES,
    THREAD_RENAME,
    CreateThreadParams,
    MessagePage,
    MessagesParams,
    RenameThreadParams,
    ThreadCreated,
    ThreadDeleted,
    ThreadList,
    ThreadRenamed,
)
from hermes_ws.contract.methods.threads import ThreadParams
from hermes_ws.journal import messages, thread_list
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import SessionCall, ThreadCall
from hermes_ws.methods.session_views import nodes
from hermes_ws.session import thread_life


@handles(THREAD_LIST)
async def list_threads(call: SessionCall, params: OfSession) -> ThreadList:
    """All threads, the oldest first."""
    return ThreadList(session_id=params.session_id, threads=await nodes(call))


@handles(THREAD_CREATE)
async def create(call: SessionCall, params: CreateThreadParams) -> ThreadCreated:
    """Make it; a repeated `request_id` answers with the one that it made."""
    made = await thread_life.create(call.runtime, call.session, params, call.principal.name)
    return ThreadCreated(session_id=params.session_id, thread_id=made.key.thread_id, cursor=str(made.cursor))


@handles(THREAD_RENAME)
async def rename(call: ThreadCall, params: RenameThreadParams) -> ThreadRenamed:
    """Give it a title."""
    await call.runtime.journal.transact(lambda tx: thread_list.rename(tx, call.thread.key, params.title))
    return ThreadRenamed(thread_id=params.thread_id, title=params.title)


@handles(THREAD_DELETE)
async def delete(call: ThreadCall, params: ThreadParams) -> ThreadDeleted:
    """Remove it; those who listen are told."""
    await thread_life.delete(call.runtime, call.session, params.thread_id)
    return ThreadDeleted(thread_id=params.thread_id, deleted=True)


@handles(THREAD_MESSAGES)
async def page(call: ThreadCall, params: MessagesParams) -> MessagePage:
    """A page of what was said, ending before the message that is named."""

    def read(connection: sqlite3.Connection) -> tuple[list[Message], bool]:
        if params.before is not None and not messages.exists(connection, call.thread.key, params.before):
            raise NotFound(f"There is no message {params.before} in this thread.")
        return messages.recent(connection, call.thread.key, params.limit, before=params.before)

    found, more = await call.runtime.journal.read(read)
    return MessagePage(thread_id=params.thread_id, messages=found, more=more)
