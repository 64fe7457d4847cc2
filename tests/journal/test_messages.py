"""Messages, read back whole or the last of them."""

from __future__ import annotations

import sqlite3

import pytest

from hermes_ws.contract.content import Message, TextBlock, ToolResultBlock
from hermes_ws.contract.errors import ThreadUnknown
from hermes_ws.journal import messages
from hermes_ws.journal.database import Database, ThreadKey, Transaction

KEY = ThreadKey("ses-1", "main")


def message(number: int, text: str = "") -> Message:
    return Message(message_id=f"m{number}", role="user", text=text or f"text {number}")


async def fill(journal: Database, *added: Message) -> None:
    def work(tx: Transaction) -> None:
        for each in added:
            messages.add(tx, KEY, each)

    await journal.transact(work)


async def test_history_is_whole_and_in_order_and_has_blocks(journal: Database) -> None:
    spoken = Message(message_id="m2", role="assistant", text="b", content=[TextBlock(text="b")])
    result = Message(
        message_id="m3", role="tool", text="", content=[ToolResultBlock(call_id="c", name="terminal", output="o")]
    )
    await fill(journal, message(1, "a"), spoken, result)
    found = await journal.read(lambda connection: messages.history(connection, KEY))
    assert found == [message(1, "a").model_copy(update={"content": [TextBlock(text="a")]}), spoken, result]


async def test_the_last_messages_come_in_order_with_word_of_more(journal: Database) -> None:
    await fill(journal, *map(message, range(1, 8)))
    for limit, before, expected, more in (
        (3, None, ["m5", "m6", "m7"], True),
        (3, "m5", ["m2", "m3", "m4"], True),
        (3, "m2", ["m1"], False),
        (7, None, [f"m{number}" for number in range(1, 8)], False),
        (3, "none", [], False),
    ):
        found, further = await journal.read(
            lambda connection: messages.recent(connection, KEY, limit, before=before)  # noqa: B023
        )
        assert ([each.message_id for each in found], further) == (expected, more)


async def test_the_newest_message_comes_whatever_its_size(journal: Database) -> None:
    await fill(journal, message(1), message(2, "x" * messages.RECENT_BYTES))
    found, more = await journal.read(lambda connection: messages.recent(connection, KEY))
    assert ([each.message_id for each in found], more) == (["m2"], True)


async def test_an_id_is_used_once_in_a_thread(journal: Database) -> None:
    """Case REPLAY-05."""
    await fill(journal, message(1))
    with pytest.raises(sqlite3.IntegrityError):
        await fill(journal, message(1))
    with pytest.raises(ThreadUnknown):
        await journal.transact(lambda tx: messages.add(tx, ThreadKey("ses-1", "none"), message(2)))
    assert messages.new_id() != messages.new_id()


async def test_a_thread_has_a_message_or_not(journal: Database) -> None:
    await fill(journal, message(1))
    assert await journal.read(lambda connection: messages.exists(connection, KEY, "m1"))
    assert not await journal.read(lambda connection: messages.exists(connection, KEY, "m2"))
    assert not await journal.read(lambda connection: messages.exists(connection, ThreadKey("ses-1", "none"), "m1"))
