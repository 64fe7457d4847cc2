"""What can be done to a session by `session.mutate`: one row per operation.

To add one: its payload into `contract/methods/mutations.py`, its function here or in a file of its own, its row below.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import MappingProxyType

from pydantic import JsonValue

from hermes_ws.contract.content import Message
from hermes_ws.contract.errors import NotFound
from hermes_ws.contract.methods.mutations import (
    PAYLOADS,
    ArchivePayload,
    BranchPayload,
    ConfigurePayload,
    DeletePayload,
    ImportPayload,
    PinPayload,
    RenamePayload,
    ResetPayload,
    RewindPayload,
)
from hermes_ws.journal import messages, replacement, sessions
from hermes_ws.journal.sessions import NewSession
from hermes_ws.session import edits, identifiers
from hermes_ws.session.info import session_info
from hermes_ws.session.launch import Launch
from hermes_ws.session.mutations import AnyOperation, Change, Operation
from hermes_ws.wire.frames import encode, scrub


def rename(change: Change, payload: RenamePayload) -> dict[str, JsonValue]:
    """Another title, or none."""
    change.columns["title"] = None if payload.title is None else scrub(payload.title)
    return {"title": payload.title}


def archive(change: Change, payload: ArchivePayload) -> dict[str, JsonValue]:
    """Out of the list, or back into it."""
    change.columns["archived"] = payload.archived
    return {"archived": payload.archived}


def pin(change: Change, payload: PinPayload) -> dict[str, JsonValue]:
    """To the top of the list, or back to its place."""
    change.columns["pinned"] = payload.pinned
    return {"pinned": payload.pinned}


def configure(change: Change, payload: ConfigurePayload) -> dict[str, JsonValue]:
    """Other options from the next execution on."""
    given: dict[str, JsonValue] = payload.model_dump(mode="json", exclude_unset=True)
    launch = {**change.session.launch, **given}
    change.columns["launch"] = encode({key: value for key, value in launch.items() if value is not None}).decode()
    return given


def delete(change: Change, payload: DeletePayload) -> dict[str, JsonValue]:
    """Gone for good, with all threads."""
    replacement.forget(change.tx, change.session.session_id)
    return {}


def reset(change: Change, payload: ResetPayload) -> dict[str, JsonValue]:
    """An empty conversation in the same session."""
    return {"generation": replacement.replace(change.tx, change.key, ())}


def rewind(change: Change, payload: RewindPayload) -> dict[str, JsonValue]:
    """Take back everything from a message of the user on. Raises `NotFound` for any other message."""
    kept: list[Message] = []
    told = messages.stored(change.tx.connection, change.key)
    for message in told:
        if message.message_id == payload.message_id and message.role == "user":
            generation = replacement.replace(change.tx, change.key, kept)
            removed = len(told) - len(kept)
            return {"generation": generation, "text": message.text, "removed": removed}
        kept.append(message)
    raise NotFound(
        f"The user said nothing with the id {payload.message_id} in this thread.",
        hint="Rewind to a message of role user; its id is in the history.",
    )


def branch(change: Change, payload: BranchPayload) -> dict[str, JsonValue]:
    """Another session with the same beginning. The source keeps its conversation as it is. Raises `NotFound`."""
    tx, source = change.tx, change.session
    known = [message.message_id for message in messages.stored(tx.connection, change.key)]
    if payload.through_message_id is not None and payload.through_message_id not in known:
        raise NotFound(f"There is no message {payload.through_message_id} in this thread.")
    origin = source.session_id.partition("-")[0]
    new = NewSession(
        session_id=identifiers.session_id(origin),
        title=payload.title or source.title,
        agent=source.agent,
        cwd=source.cwd,
        source=source.source,
        principal=change.principal,
        digest=hashlib.sha256(source.session_id.encode()).hexdigest(),
        launch=Launch.read(source.launch).inherited(),
    )
    made = sessions.create(tx, new)
    copied = replacement.copy(tx, change.key, made.thread.key, payload.through_message_id)
    head = tx.head(made.thread.key)
    return {
        "session_id": made.record.session_id,
        "thread_id": made.thread.key.thread_id,
        "revision": made.record.revision,
        "cursor": f"{head.generation}:{head.seq}",
        "messages": copied,
        "info": session_info(made.record, change.scope),
    }


def import_messages(change: Change, payload: ImportPayload) -> dict[str, JsonValue]:
    """The conversation of elsewhere in the place of this one's."""
    brought = [
        Message(message_id=messages.new_id(), role=each.role, text=scrub(each.text)) for each in payload.messages
    ]
    return {"generation": replacement.replace(change.tx, change.key, brought), "messages": len(brought)}


_ROWS: tuple[AnyOperation, ...] = (
    Operation("rename", rename),
    Operation("archive", archive),
    Operation("pin", pin),
    Operation("configure", configure),
    Operation("delete", delete, idle="session", deletes=True),
    Operation("reset", reset, idle="thread"),
    Operation(
        "rewind", rewind, idle="thread", consent="What was said from this message on is taken back for good. Go on?"
    ),
    Operation("branch", branch),
    Operation("compress", edits.compress, idle="thread", prepare=edits.summarised),
    Operation("model", edits.model, prepare=edits.relaunched),
    Operation("undo", edits.undo, idle="thread", consent="What was said last is taken back for good. Go on?"),
    Operation("retry", edits.retry, idle="thread", consent="The last answer is taken back for good. Go on?"),
    Operation("import", import_messages, idle="thread"),
)


def table(rows: tuple[AnyOperation, ...]) -> Mapping[str, AnyOperation]:
    """The rows by name. Raises `ImportError` for one without a declared payload, or a payload without a row."""
    found = {row.name: row for row in rows}
    if len(found) != len(rows) or found.keys() != PAYLOADS.keys():
        raise ImportError(f"operations and payloads differ: {sorted(found.keys() ^ PAYLOADS.keys())}")
    return MappingProxyType(found)


OPERATIONS: Mapping[str, AnyOperation] = table(_ROWS)
