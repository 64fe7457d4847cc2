"""Questions: numbered once, settled once."""

from __future__ import annotations

import orjson
import pytest

from hermes_ws.contract.errors import NotFound
from hermes_ws.journal import events, questions, sessions, threads
from hermes_ws.journal.database import Database, ThreadKey, Transaction
from hermes_ws.journal.questions import NewQuestion, QuestionRecord
from hermes_ws.wire.cursor import Cursor
from tests.journal.conftest import NEW, Opener

KEY = ThreadKey("ses-1", "main")


async def ask(journal: Database, key: ThreadKey = KEY) -> QuestionRecord:
    def work(tx: Transaction) -> QuestionRecord:
        new = NewQuestion(questions.next_id(tx, "abcd1234"), key, "approval", 3, {"tool": "terminal"}, "adm-1", 2000.0)
        return questions.open(tx, new)

    return await journal.transact(work)


async def told(journal: Database) -> list[tuple[str, dict[str, object]]]:
    found, _ = await journal.read(lambda connection: events.since(connection, KEY, Cursor(1, 0)))
    return [(event.type, orjson.loads(event.payload)) for event in found]


async def test_a_question_is_stored_and_told(journal: Database) -> None:
    record = await ask(journal)
    assert (record.question_id, record.state, record.epoch) == ("srq-abcd1234-1", "open", 1)
    assert await journal.read(lambda connection: questions.open_questions(connection)) == [record.open_question()]
    assert await told(journal) == [
        (
            "request.opened",
            {
                "id": "srq-abcd1234-1",
                "kind": "approval",
                "execution_generation": 3,
                "params": {"tool": "terminal"},
                "asked_at": 1000.0,
                "deadline": 2000.0,
            },
        )
    ]


async def test_no_number_is_used_twice_not_even_after_a_failure_or_a_restart(open_home: Opener) -> None:
    database = await open_home()
    await database.transact(lambda tx: sessions.create(tx, NEW))
    names = [(await ask(database)).question_id for _ in range(2)]
    await database.close()
    database = await open_home()
    names.append((await ask(database)).question_id)
    assert names == ["srq-abcd1234-1", "srq-abcd1234-2", "srq-abcd1234-3"]


async def test_the_first_outcome_stays_and_a_later_one_is_told_what_it_was(journal: Database) -> None:
    """Cases ASK-06, ASK-10."""
    id = (await ask(journal)).question_id
    first, was_first = await journal.transact(lambda tx: questions.settle(tx, id, "settled", {"choice": "deny"}))
    assert was_first
    assert (first.state, first.result, first.settled_at) == ("settled", {"choice": "deny"}, 1000.0)
    second, was_first = await journal.transact(lambda tx: questions.settle(tx, id, "expired"))
    assert not was_first
    assert second == first
    assert [type for type, _ in await told(journal)] == ["request.opened", "request.settled"]
    assert (await told(journal))[1][1] == {
        "id": id,
        "kind": "approval",
        "state": "settled",
        "result": {"choice": "deny"},
    }


async def test_what_is_secret_is_neither_stored_nor_told(journal: Database) -> None:
    id = (await ask(journal)).question_id
    record, _ = await journal.transact(lambda tx: questions.settle(tx, id, "settled", None))
    assert record.result is None
    assert (await told(journal))[1][1]["result"] is None


async def test_a_question_that_is_not_there_is_not_settled(journal: Database) -> None:
    with pytest.raises(NotFound):
        await journal.transact(lambda tx: questions.settle(tx, "srq-abcd1234-9", "settled"))
    assert await journal.read(lambda connection: questions.get(connection, "srq-abcd1234-9")) is None


async def test_open_questions_are_listed_by_thread_by_session_or_all(journal: Database) -> None:
    fork = ThreadKey("ses-1", "fork")
    await journal.transact(lambda tx: threads.ensure(tx, fork, "fork"))
    first, second = await ask(journal), await ask(journal, fork)
    settled = await ask(journal)
    await journal.transact(lambda tx: questions.settle(tx, settled.question_id, "withdrawn"))

    async def names(key: ThreadKey | None = None, session_id: str | None = None) -> list[str]:
        found = await journal.read(lambda connection: questions.open_questions(connection, key, session_id=session_id))
        return [each.id for each in found]

    assert await names() == [first.question_id, second.question_id]
    assert await names(session_id="ses-1") == [first.question_id, second.question_id]
    assert await names(fork) == [second.question_id]
    assert await names(session_id="none") == []


async def test_what_an_earlier_owner_asked_is_abandoned(open_home: Opener) -> None:
    database = await open_home()
    await database.transact(lambda tx: sessions.create(tx, NEW))
    old = await ask(database)
    assert await database.transact(questions.abandon_older) == []
    await database.close()
    database = await open_home()
    new = await ask(database)
    (abandoned,) = await database.transact(questions.abandon_older)
    assert (abandoned.question_id, abandoned.state) == (old.question_id, "abandoned")
    assert await database.read(lambda connection: questions.open_questions(connection)) == [new.open_question()]
