"""Another history in the place of a thread's: one transaction, another generation, and the whole state in it."""

from __future__ import annotations

import pytest

from hermes_ws.contract.content import Message, ToolResultBlock
from hermes_ws.contract.errors import ThreadUnknown
from hermes_ws.contract.events import Notice
from hermes_ws.journal import admissions, events, messages, questions, replacement, threads
from hermes_ws.journal.admissions import NewAdmission
from hermes_ws.journal.database import Database, ThreadKey, Transaction
from hermes_ws.journal.questions import NewQuestion
from hermes_ws.wire.cursor import Cursor

KEY = ThreadKey("ses-1", "main")
KEPT = [Message(message_id="msg-summary", role="user", text="what was said")]
NOTICE = Notice(level="info", type="test", message="before")


def admit(tx: Transaction, number: int) -> None:
    admissions.admit(tx, NewAdmission(KEY, "owner", f"input-{number}", str(number), f"text {number}"))


async def told(journal: Database, generation: int) -> list[str]:
    found, _ = await journal.read(lambda connection: events.since(connection, KEY, Cursor(generation, 0)))
    return [event.type for event in found]


async def test_the_new_generation_begins_by_saying_so_and_tells_what_is_left(journal: Database) -> None:
    tail = await journal.open_tail(KEY)
    await journal.transact(lambda tx: tx.append(KEY, "notice", NOTICE))
    assert await journal.transact(lambda tx: replacement.replace(tx, KEY, KEPT)) == 2
    assert await told(journal, 2) == ["thread.rebased", "message.complete"]
    assert await told(journal, 1) == []
    assert (tail.generation, tail.head) == (2, 2)
    assert await journal.read(lambda connection: messages.stored(connection, KEY)) == KEPT
    # The writer goes on where the new one ends.
    cursor = await journal.transact(lambda tx: tx.append(KEY, "notice", NOTICE))
    assert cursor == Cursor(2, 3)


async def test_what_runs_waits_and_is_asked_is_told_again(journal: Database) -> None:
    def work(tx: Transaction) -> None:
        admit(tx, 1)
        admit(tx, 2)
        admissions.claim(tx, KEY)
        questions.open(tx, NewQuestion("srq-1", KEY, "approval", 1, {}))

    await journal.transact(work)
    await journal.transact(lambda tx: replacement.replace(tx, KEY, ()))
    assert await told(journal, 2) == [
        "thread.rebased",
        "execution.queued",
        "execution.started",
        "execution.queued",
        "request.opened",
    ]
    await journal.transact(lambda tx: admissions.settle(tx, KEY, 1, "completed"))
    claimed = await journal.transact(lambda tx: admissions.claim(tx, KEY))
    assert claimed is not None
    assert claimed.input_id == "input-2"


async def test_a_replacement_that_fails_leaves_the_old_generation(journal: Database) -> None:
    await journal.transact(lambda tx: tx.append(KEY, "notice", NOTICE))

    def work(tx: Transaction) -> None:
        replacement.replace(tx, KEY, KEPT)
        raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        await journal.transact(work)
    assert await told(journal, 1) == ["notice"]
    cursor = await journal.transact(lambda tx: tx.append(KEY, "notice", NOTICE))
    assert cursor == Cursor(1, 2)


async def test_a_forgotten_session_leaves_nothing_and_takes_nothing(journal: Database) -> None:
    await journal.transact(lambda tx: admit(tx, 1))
    assert await journal.transact(lambda tx: replacement.forget(tx, KEY.session_id)) == [KEY]
    assert await journal.read(lambda connection: threads.get(connection, KEY)) is None
    with pytest.raises(ThreadUnknown):
        await journal.transact(lambda tx: tx.append(KEY, "notice", NOTICE))


async def test_results_that_fit_into_no_event_are_told_in_several() -> None:
    blocks = [ToolResultBlock(call_id=f"c{n}", name="t", output="x" * 300_000) for n in range(5)]
    found = messages.fitting(blocks)
    assert [len(message.content) for message in found] == [2, 2, 1]
    assert [block for message in found for block in message.content] == blocks
    assert messages.fitting([]) == []


async def test_a_history_is_copied_up_to_a_message_and_told_there(journal: Database) -> None:
    said = [Message(message_id=f"msg-{number}", role="user", text=f"text {number}") for number in range(3)]
    some, all_of_it = ThreadKey("ses-1", "some"), ThreadKey("ses-1", "all")

    def work(tx: Transaction) -> list[int]:
        for message in said:
            messages.add(tx, KEY, message)
        for key in (some, all_of_it):
            threads.ensure(tx, key)
        return [replacement.copy(tx, KEY, some, "msg-1"), replacement.copy(tx, KEY, all_of_it)]

    assert await journal.transact(work) == [2, 3]
    assert await journal.read(lambda connection: messages.stored(connection, some)) == said[:2]
    assert await journal.read(lambda connection: messages.stored(connection, all_of_it)) == said
    found, _ = await journal.read(lambda connection: events.since(connection, some, Cursor(1, 0)))
    assert [event.type for event in found] == ["message.complete"] * 2
