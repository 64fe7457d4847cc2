"""Words for an execution that runs: admitted for it alone, and a message once it has taken them."""

from __future__ import annotations

from dataclasses import replace

from hermes_ws.journal import admissions, events, messages, steering
from hermes_ws.journal.admissions import AdmissionRecord, NewAdmission
from hermes_ws.journal.database import Database, ThreadKey
from hermes_ws.wire.cursor import Cursor

KEY = ThreadKey("ses-1", "main")
INPUT = NewAdmission(KEY, "owner", "in-1", "digest", "Begin")
WORDS = NewAdmission(KEY, "owner", "in-2", "digest", "Shorter, please", steers=1)


async def running(journal: Database) -> None:
    await journal.transact(lambda tx: admissions.admit(tx, INPUT))
    await journal.transact(lambda tx: admissions.claim(tx, KEY))


async def steer(journal: Database, words: NewAdmission = WORDS) -> AdmissionRecord | None:
    return await journal.transact(lambda tx: steering.admit(tx, words))


async def told(journal: Database) -> list[tuple[str, int | None, str | None]]:
    found, _ = await journal.read(lambda connection: events.since(connection, KEY, Cursor(1, 0)))
    return [(event.type, event.execution_generation, event.admission_id) for event in found]


async def test_only_the_execution_that_runs_can_be_steered(journal: Database) -> None:
    assert await steer(journal) is None, "nothing runs yet"
    await running(journal)
    assert await steer(journal, replace(WORDS, steers=2)) is None, "another one"
    assert await steer(journal, replace(WORDS, steers=None)) is None, "none is named"
    assert await steer(journal, replace(WORDS, key=ThreadKey("ses-1", "none"))) is None
    taken = await steer(journal)
    assert taken is not None
    assert taken.status == "queued"
    await journal.transact(lambda tx: admissions.settle(tx, KEY, 1, "completed"))
    assert await steer(journal, replace(WORDS, input_id="in-3")) is None, "it has ended"


async def test_what_is_taken_is_a_message_and_ends_its_input_but_not_the_execution(journal: Database) -> None:
    await running(journal)
    admitted = await steer(journal)
    assert admitted is not None
    id = admitted.admission_id
    (said,) = await journal.transact(lambda tx: steering.take(tx, KEY, [id, "adm-none"], 1))
    assert (said.role, said.text) == ("user", "Shorter, please")
    assert said in await journal.read(lambda connection: messages.stored(connection, KEY))
    record = await journal.read(lambda connection: admissions.known(connection, id))
    assert (record.status, record.outcome, record.execution_generation) == ("finished", "completed", 1)
    assert (await told(journal))[-2:] == [("message.complete", 1, id), ("execution.finished", None, id)]
    assert await journal.transact(lambda tx: steering.take(tx, KEY, [id], 1)) == [], "once"
    assert (await journal.transact(lambda tx: admissions.settle(tx, KEY, 1, "completed"))).status == "finished"


async def test_what_was_not_taken_in_time_is_cancelled_and_whoever_said_it_is_told(journal: Database) -> None:
    await running(journal)
    admitted = await steer(journal)
    assert admitted is not None
    await journal.transact(lambda tx: admissions.settle(tx, KEY, 1, "completed"))
    record = await journal.read(lambda connection: admissions.known(connection, admitted.admission_id))
    assert record.status == "cancelled"
    assert ("notice", 1, admitted.admission_id) in await told(journal)
    assert await journal.transact(lambda tx: admissions.claim(tx, KEY)) is None, "it never runs by itself"
