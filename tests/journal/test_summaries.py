"""A summary stands for what is older when a model reads, and for nothing else."""

from __future__ import annotations

import pytest

from hermes_ws.contract.content import SUMMARY_ID, Message
from hermes_ws.contract.errors import NotFound
from hermes_ws.journal import messages, replacement, summaries
from hermes_ws.journal.database import Database, ThreadKey, Transaction
from hermes_ws.journal.summaries import Summary

KEY = ThreadKey("ses-1", "main")
SAID = [Message(message_id=f"msg-{number}", role="user", text=f"text {number}") for number in range(4)]


def say(tx: Transaction) -> None:
    for message in SAID:
        messages.add(tx, KEY, message)


async def read_by_a_model(journal: Database) -> list[str]:
    return [each.message_id for each in await journal.read(lambda connection: summaries.history(connection, KEY))]


async def put(journal: Database, summary: Summary) -> None:
    await journal.transact(lambda tx: summaries.put(tx, KEY, summary))


async def test_without_a_summary_all_is_read(journal: Database) -> None:
    await journal.transact(say)
    assert await journal.read(lambda connection: summaries.get(connection, KEY)) is None
    assert await read_by_a_model(journal) == ["msg-0", "msg-1", "msg-2", "msg-3"]


async def test_a_summary_comes_in_the_place_of_what_it_covers_and_the_last_one_counts(journal: Database) -> None:
    await journal.transact(say)
    await put(journal, Summary("zero", "msg-1"))
    await put(journal, Summary("zero and one", "msg-2"))
    assert await journal.read(lambda connection: summaries.get(connection, KEY)) == Summary("zero and one", "msg-2")
    (summary, *_) = await journal.read(lambda connection: summaries.history(connection, KEY))
    assert summary.text.endswith("zero and one")
    assert await read_by_a_model(journal) == [SUMMARY_ID, "msg-2", "msg-3"]
    assert await journal.read(lambda connection: messages.stored(connection, KEY)) == SAID, "all is still there"


async def test_one_that_covers_everything_leaves_what_is_said_later(journal: Database) -> None:
    await put(journal, Summary("nothing yet", None))
    await journal.transact(say)
    assert await read_by_a_model(journal) == [SUMMARY_ID, "msg-0", "msg-1", "msg-2", "msg-3"]
    await put(journal, Summary("all", None))
    assert await journal.read(lambda connection: summaries.get(connection, KEY)) == Summary("all", None)
    assert await read_by_a_model(journal) == [SUMMARY_ID]
    later = Message(message_id="msg-9", role="user", text="later")
    await journal.transact(lambda tx: messages.add(tx, KEY, later))
    assert await read_by_a_model(journal) == [SUMMARY_ID, "msg-9"]


async def test_it_begins_at_a_message_that_is_there(journal: Database) -> None:
    with pytest.raises(NotFound, match="msg-9"):
        await put(journal, Summary("what?", "msg-9"))


async def test_it_goes_when_it_is_dropped_and_with_the_history(journal: Database) -> None:
    await journal.transact(say)
    await put(journal, Summary("zero", "msg-1"))
    await journal.transact(lambda tx: summaries.drop(tx, KEY))
    assert len(await read_by_a_model(journal)) == 4
    await put(journal, Summary("zero", "msg-1"))
    await journal.transact(lambda tx: replacement.replace(tx, KEY, SAID[2:]))
    assert await read_by_a_model(journal) == ["msg-2", "msg-3"]


def test_nothing_follows_what_is_not_there() -> None:
    assert summaries.since(SAID, "msg-9") == []
    assert summaries.since(SAID, "msg-3") == SAID[3:]
