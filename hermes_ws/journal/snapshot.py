"""One coherent boundary of a thread: all of a snapshot that is on disk, read in one transaction.

What lives in memory alone, the text of the message in progress, is added by the session: `ThreadTail.in_progress(at)`
with the cursor of this snapshot.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from pydantic import JsonValue

from hermes_ws.contract.content import Message
from hermes_ws.contract.errors import SessionUnknown, ThreadUnknown
from hermes_ws.contract.methods.threads import PENDING_TEXT, ActiveExecution, InProgress, PendingRow, Snapshot
from hermes_ws.contract.questions import OpenQuestion
from hermes_ws.journal import admissions, events, messages, questions, sessions, threads
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.sessions import SessionRecord
from hermes_ws.journal.threads import ThreadRecord
from hermes_ws.wire.cursor import Cursor


@final
@dataclass(frozen=True, slots=True)
class DiskSnapshot:
    """A thread at one moment. `start` is the cursor from which its client gets events, by its position."""

    session: SessionRecord
    thread: ThreadRecord
    start: events.Start
    execution: ActiveExecution | None
    questions: list[OpenQuestion]
    pending: list[PendingRow]
    messages: list[Message] | None
    more_messages: bool

    @property
    def cursor(self) -> Cursor:
        """The boundary: everything up to here is in it."""
        return self.thread.cursor

    def to_snapshot(
        self,
        profile: str,
        info: Mapping[str, JsonValue],
        in_progress: tuple[str, str] | None = None,
        *,
        finishing: bool = False,
    ) -> Snapshot:
        """The contract's shape, with what only the session knows."""
        execution = self.execution
        if execution is not None and finishing:
            execution = execution.model_copy(update={"state": "finishing"})
        key = self.thread.key
        return Snapshot(
            session_id=key.session_id,
            thread_id=key.thread_id,
            profile=profile,
            position=self.start.position,
            generation=self.thread.generation,
            cursor=str(self.cursor),
            execution=execution,
            questions=self.questions,
            pending=self.pending,
            in_progress=InProgress(message_id=in_progress[0], text=in_progress[1]) if in_progress is not None else None,
            messages=self.messages,
            more_messages=self.more_messages,
            revision=self.session.revision,
            info=dict(info),
        )


def take(
    connection: sqlite3.Connection, key: ThreadKey, after: Cursor | None = None, messages_too: bool | None = None
) -> DiskSnapshot:
    """The thread as it is now, for a client that stands at `after`. To be run by `Database.read`.

    The questions are those of all threads of the session: a person is asked by whichever of them (case ASK-14). The
    recent messages are in it if asked for, or if nothing is said and the client is a fresh one. Raises
    `SessionUnknown` and `ThreadUnknown`.
    """
    session = sessions.get(connection, key.session_id)
    if session is None:
        raise SessionUnknown(f"There is no session {key.session_id}.")
    thread = threads.get(connection, key)
    if thread is None:
        raise ThreadUnknown(f"There is no thread {key.thread_id} in this session.")
    start = events.position(after, thread.generation, thread.head)
    asked = questions.open_questions(connection, session_id=key.session_id)
    found: list[Message] | None = None
    more = False
    if messages_too or (messages_too is None and after is None):
        found, more = messages.recent(connection, key)
    return DiskSnapshot(
        session=session,
        thread=thread,
        start=start,
        execution=_active(connection, thread, asked),
        questions=asked,
        pending=[
            PendingRow(
                admission_id=each.admission_id,
                input_id=each.input_id,
                status=each.status,
                execution_generation=each.execution_generation,
                text=each.text[:PENDING_TEXT],
            )
            for each in admissions.pending(connection, key)
        ],
        messages=found,
        more_messages=more,
    )


def _active(connection: sqlite3.Connection, thread: ThreadRecord, asked: list[OpenQuestion]) -> ActiveExecution | None:
    row = connection.execute(
        "SELECT e.execution_generation, e.admission_id, e.started_at FROM execution e JOIN admission a"
        " USING (admission_id) WHERE e.thread = ? AND e.execution_generation = ? AND a.status = 'started'",
        (thread.id, thread.execution_generation),
    ).fetchone()
    if row is None:
        return None
    generation, admission_id, started_at = row
    waits = any(each.thread_id == thread.key.thread_id and each.execution_generation == generation for each in asked)
    return ActiveExecution(
        execution_generation=generation,
        admission_id=admission_id,
        started_at=started_at,
        state="waiting" if waits else "running",
    )
