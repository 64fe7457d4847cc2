"""Threads of a session beside `main`: made, named and removed by a person."""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import Final

from hermes_ws.contract.errors import InvalidParams, SessionBusy, UnknownExecution
from hermes_ws.contract.events import SessionClosed
from hermes_ws.contract.methods.thread_life import CreateThreadParams
from hermes_ws.journal import admissions, thread_list
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.threads import ThreadRecord
from hermes_ws.journal.transaction import Transaction
from hermes_ws.session.identifiers import MAIN_THREAD
from hermes_ws.session.ports import Runtime
from hermes_ws.session.session import Session
from hermes_ws.wire.frames import event_frame

ID_BYTES: Final = 8
"""Random bytes of a thread's id; it is unique within its session only."""


async def create(runtime: Runtime, session: Session, params: CreateThreadParams, principal: str) -> ThreadRecord:
    """Make a thread with an empty history, once per (principal, `request_id`); durable when this returns."""
    asked = params.request_id
    drawn = secrets.token_hex(ID_BYTES)
    if asked is not None:
        drawn = hashlib.sha256(f"{principal}\0{asked}".encode()).hexdigest()[: 2 * ID_BYTES]
    key = ThreadKey(session.session_id, f"thr-{drawn}")
    return await runtime.journal.transact(lambda tx: thread_list.create(tx, key, params.title))


async def delete(runtime: Runtime, session: Session, thread_id: str) -> None:
    """Remove a thread; whoever listens is told `session.closed`, and is let go. Raises `InvalidParams` for `main`,
    `SessionBusy` and `UnknownExecution` for one with something to do.
    """
    if thread_id == MAIN_THREAD:
        raise InvalidParams(
            "main belongs to its session.", hint="Reset it, or delete the session: session.mutate.", path="thread_id"
        )
    key = ThreadKey(session.session_id, thread_id)
    payload = SessionClosed(reason="deleted").model_dump(mode="json")
    named = {"profile": runtime.scope.profile.text, "session_id": key.session_id, "thread_id": thread_id}
    farewell = event_frame({"type": "session.closed", **named, "ts": time.time(), "payload": payload})

    def gone() -> None:
        session.forget(thread_id)
        runtime.journal.end_tail(key, farewell)

    def work(tx: Transaction) -> None:
        for each in admissions.pending(tx.connection, key):
            if each.status == "unknown":
                raise UnknownExecution(
                    "An execution was lost, and nobody has said what became of it.", admission_id=each.admission_id
                )
            raise SessionBusy("An execution of this thread is active or queued.", admission_id=each.admission_id)
        thread_list.delete(tx, key)
        tx.after_commit(gone)

    await runtime.journal.transact(work)
