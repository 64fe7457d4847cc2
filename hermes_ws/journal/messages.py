"""Messages of a thread, as the model and a client read them back."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Sequence

from hermes_ws.contract.content import Block, Message, TextBlock
from hermes_ws.journal import threads
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.transaction import Transaction
from hermes_ws.wire.frames import encode

RECENT_MESSAGES = 50
"""Messages in a snapshot: what a person scrolls back through before asking for more."""

RECENT_BYTES = 256 * 1024
"""Bytes of messages in a snapshot: a quarter of a frame, so that the reply has room for all else."""


TOLD_BYTES = 700 * 1024
"""Bytes of results in one message of role `tool`: with its envelope it stays below what an event may have."""


def new_id() -> str:
    """An id for a message of ours."""
    return f"msg-{secrets.token_hex(8)}"


def add(tx: Transaction, key: ThreadKey, message: Message) -> None:
    """Store a whole message at the end of the thread. Raises `ThreadUnknown`; an id is used once per thread."""
    thread = tx.head(key).id
    tx.connection.execute(
        "INSERT INTO message (thread, message_id, role, body) VALUES (?, ?, ?, ?)",
        (thread, message.message_id, message.role, encode(message)),
    )


def fitting(blocks: Sequence[Block]) -> list[Message]:
    """Messages of role `tool` with these results, as few as fit into an event each."""
    found: list[Message] = []
    group: list[Block] = []
    size = 0
    for block in blocks:
        length = len(encode(block))
        if group and size + length > TOLD_BYTES:
            found.append(Message(message_id=new_id(), role="tool", text="", content=group))
            group, size = [], 0
        group.append(block)
        size += length
    if group:
        found.append(Message(message_id=new_id(), role="tool", text="", content=group))
    return found


def stored(connection: sqlite3.Connection, key: ThreadKey) -> list[Message]:
    """All messages, oldest first, word for word."""
    thread = threads.number(connection, key)
    rows = connection.execute("SELECT body FROM message WHERE thread = ? ORDER BY id", (thread,))
    return [Message.model_validate_json(body) for (body,) in rows]


def exists(connection: sqlite3.Connection, key: ThreadKey, message_id: str) -> bool:
    """Whether the thread has that message."""
    thread = threads.number(connection, key)
    query = "SELECT 1 FROM message WHERE thread = ? AND message_id = ?"
    return connection.execute(query, (thread, message_id)).fetchone() is not None


def history(connection: sqlite3.Connection, key: ThreadKey) -> list[Message]:
    """All messages, oldest first. What has only `text` gets it as a block as well, so that a reader needs one way."""
    thread = threads.number(connection, key)
    rows = connection.execute("SELECT body FROM message WHERE thread = ? ORDER BY id", (thread,))
    return [_with_blocks(Message.model_validate_json(body)) for (body,) in rows]


def recent(
    connection: sqlite3.Connection,
    key: ThreadKey,
    limit: int = RECENT_MESSAGES,
    max_bytes: int = RECENT_BYTES,
    before: str | None = None,
) -> tuple[list[Message], bool]:
    """The last messages (before that one), oldest first, within both bounds; and whether there are older ones.

    The newest is there whatever its size, as an event that fits into a frame carried it before.
    """
    thread = threads.number(connection, key)
    rows = connection.execute(
        "SELECT body FROM message WHERE thread = ?1 AND (?2 IS NULL OR id <"
        " (SELECT id FROM message WHERE thread = ?1 AND message_id = ?2)) ORDER BY id DESC LIMIT ?3",
        (thread, before, limit + 1),
    )
    found: list[Message] = []
    size = 0
    more = False
    for (body,) in rows:
        size += len(body)
        if len(found) == limit or (found and size > max_bytes):
            more = True
            break
        found.append(Message.model_validate_json(body))
    rows.close()
    found.reverse()
    return found, more


def _with_blocks(message: Message) -> Message:
    if message.content or not message.text:
        return message
    return message.model_copy(update={"content": [TextBlock(text=message.text)]})
