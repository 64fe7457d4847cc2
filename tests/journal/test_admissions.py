"""The life of an input, from its admission to its one outcome."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from hermes_ws.contract.content import Usage
from hermes_ws.contract.errors import (
    AdmissionConflict,
    LimitReached,
    NotFound,
    SessionBusy,
    StaleEpoch,
    StaleGeneration,
    ThreadUnknown,
)
from hermes_ws.contract.events import ExecutionError
from hermes_ws.journal import admission_life, admissions, events, messages, questions, recovery, sessions, threads
from hermes_ws.journal.admission_life import TRANSITIONS, Happened, State
from hermes_ws.journal.admissions import AdmissionRecord, NewAdmission
from hermes_ws.journal.database import Database, ThreadKey
from hermes_ws.journal.questions import NewQuestion
from hermes_ws.journal.stored_event import StoredEvent
from hermes_ws.wire.cursor import Cursor
from tests.journal.conftest import NEW, Opener

KEY = ThreadKey("ses-1", "main")
INPUT = NewAdmission(KEY, "owner", "in-1", "digest", "Hello")


async def admit(journal: Database, number: int = 1, key: ThreadKey = KEY) -> AdmissionRecord:
    new = replace(INPUT, input_id=f"in-{number}", key=key)
    return (await journal.transact(lambda tx: admissions.admit(tx, new)))[0]


async def claim(journal: Database, key: ThreadKey = KEY) -> AdmissionRecord | None:
    return await journal.transact(lambda tx: admissions.claim(tx, key))


async def told(journal: Database) -> list[StoredEvent]:
    return (await journal.read(lambda connection: events.since(connection, KEY, Cursor(1, 0))))[0]


async def test_an_input_is_queued_and_its_cursor_is_just_before_its_first_event(journal: Database) -> None:
    first, second = await admit(journal, 1), await admit(journal, 2)
    assert (first.status, first.execution_generation, first.cursor) == ("queued", None, Cursor(1, 0))
    assert second.cursor == Cursor(1, 1)
    (event, _) = await told(journal)
    assert (event.type, event.admission_id, event.execution_generation) == (
        "execution.queued",
        first.admission_id,
        None,
    )
    assert orjson.loads(event.payload) == {
        "admission_id": first.admission_id,
        "input_id": "in-1",
        "text": "Hello",
    }
    assert await journal.read(lambda connection: admissions.pending(connection, KEY)) == [first, second]
    assert await journal.read(admissions.queued_threads) == [KEY]


async def test_the_same_input_is_admitted_once_whatever_became_of_it(journal: Database) -> None:
    first, new = await journal.transact(lambda tx: admissions.admit(tx, INPUT))
    assert new
    assert await journal.transact(lambda tx: admissions.admit(tx, INPUT)) == (first, False)
    await claim(journal)
    await journal.transact(lambda tx: admissions.settle(tx, KEY, 1, "completed"))
    again, new = await journal.transact(lambda tx: admissions.admit(tx, replace(INPUT, reject_if_busy=True)))
    assert (again.status, again.outcome, new) == ("finished", "completed", False)
    other, new = await journal.transact(lambda tx: admissions.admit(tx, replace(INPUT, principal="guest")))
    assert new
    assert other.admission_id != first.admission_id


async def test_the_same_id_with_other_content_or_on_another_thread_is_refused(journal: Database) -> None:
    fork = ThreadKey("ses-1", "fork")
    await journal.transact(lambda tx: threads.ensure(tx, fork))
    first = await admit(journal)
    for changed in (replace(INPUT, digest="other"), replace(INPUT, key=fork)):
        with pytest.raises(AdmissionConflict) as caught:
            await journal.transact(lambda tx: admissions.admit(tx, changed))  # noqa: B023
        assert caught.value.data == {"admission_id": first.admission_id}
    assert len(await told(journal)) == 1


async def test_an_input_that_would_not_wait_is_refused_while_the_thread_is_busy(journal: Database) -> None:
    await admit(journal, 1)
    hasty = replace(INPUT, input_id="in-2", reject_if_busy=True)
    for _ in range(2):
        with pytest.raises(SessionBusy):
            await journal.transact(lambda tx: admissions.admit(tx, hasty))
        await claim(journal)
    await journal.transact(lambda tx: admissions.settle(tx, KEY, 1, "completed"))
    assert (await journal.transact(lambda tx: admissions.admit(tx, hasty)))[1]


async def test_an_input_needs_a_thread_and_must_fit_into_an_event(journal: Database) -> None:
    with pytest.raises(ThreadUnknown):
        await admit(journal, key=ThreadKey("ses-1", "none"))
    with pytest.raises(LimitReached):
        await journal.transact(lambda tx: admissions.admit(tx, replace(INPUT, text="x" * 950_000)))
    assert await journal.read(lambda connection: admissions.pending(connection, KEY)) == []


async def test_the_longest_prompt_goes_through(journal: Database) -> None:
    await journal.transact(lambda tx: admissions.admit(tx, replace(INPUT, text="x" * 500_000)))
    await claim(journal)
    (said,) = await journal.read(lambda connection: messages.history(connection, KEY))
    assert len(said.text) == 500_000


async def test_a_claim_starts_the_head_of_the_queue_and_tells_what_the_user_said(journal: Database) -> None:
    first = await admit(journal, 1)
    await admit(journal, 2)
    claimed = await claim(journal)
    assert claimed is not None
    assert (claimed.admission_id, claimed.status, claimed.execution_generation) == (first.admission_id, "started", 1)
    started, said = (await told(journal))[2:]
    assert (started.type, started.execution_generation, started.admission_id) == (
        "execution.started", 1, first.admission_id,
    )  # fmt: skip
    assert said.type == "message.complete"
    body = orjson.loads(said.payload)
    assert (body["role"], body["text"], body["partial"]) == ("user", "Hello", False)
    (stored,) = await journal.read(lambda connection: messages.history(connection, KEY))
    assert (stored.message_id, stored.role, stored.text) == (body["message_id"], "user", "Hello")


async def test_one_execution_runs_per_thread_and_threads_run_side_by_side(journal: Database) -> None:
    fork = ThreadKey("ses-1", "fork")
    await journal.transact(lambda tx: threads.ensure(tx, fork))
    await admit(journal, 1)
    await admit(journal, 2)
    await admit(journal, 3, fork)
    assert await claim(journal) is not None
    assert await claim(journal) is None
    assert await claim(journal, fork) is not None
    await journal.transact(lambda tx: admissions.settle(tx, KEY, 1, "completed"))
    second = await claim(journal)
    assert second is not None
    assert (second.input_id, second.execution_generation) == ("in-2", 2)
    assert await claim(journal, fork) is None


async def test_an_execution_ends_once_with_its_outcome(journal: Database) -> None:
    await admit(journal)
    await claim(journal)
    error = ExecutionError(type="model_failed", message="It broke off.")
    usage = Usage(input_tokens=3, output_tokens=5)
    record = await journal.transact(lambda tx: admissions.settle(tx, KEY, 1, "failed", error, usage))
    assert (record.status, record.outcome, record.usage) == ("finished", "failed", usage)
    last = (await told(journal))[-1]
    assert (last.type, last.execution_generation, last.admission_id) == ("execution.finished", 1, record.admission_id)
    assert orjson.loads(last.payload) == {
        "outcome": "failed",
        "error": error.model_dump(),
        "usage": usage.model_dump(),
    }
    with pytest.raises(StaleGeneration) as caught:
        await journal.transact(lambda tx: admissions.settle(tx, KEY, 1, "completed"))
    assert caught.value.data == {"active": 1}
    assert await claim(journal) is None


async def test_a_stale_execution_settles_nothing(journal: Database) -> None:
    await admit(journal, 1)
    await admit(journal, 2)
    await claim(journal)
    await journal.transact(lambda tx: admissions.settle(tx, KEY, 1, "interrupted"))
    await claim(journal)
    before = len(await told(journal))
    for key, generation in ((KEY, 1), (KEY, 3), (ThreadKey("ses-1", "none"), 2)):
        with pytest.raises(StaleGeneration):
            await journal.transact(lambda tx: admissions.settle(tx, key, generation, "completed"))  # noqa: B023
    assert len(await told(journal)) == before
    assert (await journal.transact(lambda tx: admissions.settle(tx, KEY, 2, "completed"))).input_id == "in-2"


async def test_a_claim_that_fails_leaves_the_queue_and_the_generation(journal: Database) -> None:
    await admit(journal)

    with pytest.raises(ValueError, match="after all"):
        await journal.transact(lambda tx: (admissions.claim(tx, KEY), _fail()))
    claimed = await claim(journal)
    assert claimed is not None
    assert claimed.execution_generation == 1


def _fail() -> None:
    raise ValueError("after all")


async def lose(open_home: Opener) -> tuple[Database, AdmissionRecord]:
    """A database whose last owner died with one execution running, a question open, and an input queued behind."""
    database = await open_home()
    await database.transact(lambda tx: sessions.create(tx, NEW))
    await admit(database, 1)
    await admit(database, 2)
    claimed = await claim(database)
    assert claimed is not None
    asked = NewQuestion("srq-o-1", KEY, "approval", 1, {}, claimed.admission_id)
    await database.transact(lambda tx: questions.open(tx, asked))
    await database.close()
    return await open_home(), claimed


async def test_what_an_earlier_owner_left_running_is_lost_and_its_queue_waits(open_home: Opener) -> None:
    """Case REPLAY-18: the state is what is true, not what was true."""
    database, claimed = await lose(open_home)
    with pytest.raises(StaleEpoch):
        await database.transact(lambda tx: admissions.settle(tx, KEY, 1, "completed"))
    (lost,) = [each.admission for each in await database.transact(lambda tx: recovery.recover(tx, resume=False))]
    assert (lost.admission_id, lost.status, lost.execution_generation) == (claimed.admission_id, "unknown", 1)
    settled, event = (await told(database))[-2:]
    assert (settled.type, orjson.loads(settled.payload)["state"]) == ("request.settled", "abandoned")
    assert (event.type, orjson.loads(event.payload)["admission_id"]) == ("execution.lost", claimed.admission_id)
    assert await claim(database) is None
    assert await database.transact(lambda tx: recovery.recover(tx, resume=False)) == []
    with pytest.raises(StaleGeneration):
        await database.transact(lambda tx: admissions.settle(tx, KEY, 1, "completed"))


async def test_when_a_lost_execution_is_resolved_the_queue_goes_on(open_home: Opener) -> None:
    database, claimed = await lose(open_home)
    await database.transact(lambda tx: recovery.recover(tx, resume=False))
    queued = (await database.read(lambda connection: admissions.pending(connection, KEY)))[1]
    for _ in range(2):
        resolved = await database.transact(lambda tx: admissions.resolve_unknown(tx, KEY, claimed.admission_id))
        assert (resolved.status, resolved.outcome) == ("finished", "interrupted")
    assert [event.type for event in await told(database)].count("execution.finished") == 1
    with pytest.raises(StaleGeneration, match="is queued, not lost"):
        await database.transact(lambda tx: admissions.resolve_unknown(tx, KEY, queued.admission_id))
    for key, id in ((KEY, "adm-none"), (ThreadKey("ses-1", "none"), queued.admission_id)):
        with pytest.raises(NotFound):
            await database.transact(lambda tx: admissions.resolve_unknown(tx, key, id))  # noqa: B023
    following = await claim(database)
    assert following is not None
    assert (following.input_id, following.execution_generation) == ("in-2", 2)


async def test_a_queued_input_can_be_retired_and_no_other(journal: Database) -> None:
    await admit(journal, 1)
    second = await admit(journal, 2)
    running = await claim(journal)
    assert running is not None
    assert await journal.transact(lambda tx: admissions.retire(tx, KEY, running.admission_id)) == (running, False)
    retired, did = await journal.transact(lambda tx: admissions.retire(tx, KEY, second.admission_id))
    assert (retired.status, retired.outcome, did) == ("cancelled", "cancelled", True)
    assert await journal.transact(lambda tx: admissions.retire(tx, KEY, second.admission_id)) == (retired, False)
    last = (await told(journal))[-1]
    assert (last.type, last.admission_id, last.execution_generation) == (
        "execution.finished", second.admission_id, None,
    )  # fmt: skip
    await journal.transact(lambda tx: admissions.settle(tx, KEY, 1, "completed"))
    assert await claim(journal) is None
    for key, id in ((KEY, "adm-none"), (ThreadKey("ses-1", "none"), second.admission_id)):
        with pytest.raises(NotFound):
            await journal.transact(lambda tx: admissions.retire(tx, key, id))  # noqa: B023


async def test_an_admission_is_found_by_either_of_its_ids(journal: Database) -> None:
    mine = await admit(journal)
    for principal, session, names in (
        ("owner", "ses-1", {"input_id": "in-1"}),
        (None, "ses-1", {"input_id": "in-1"}),
        (None, "ses-1", {"admission_id": mine.admission_id}),
    ):
        found = await journal.read(lambda connection: admissions.find(connection, principal, session, **names))  # noqa: B023
        assert found == mine
        assert found.key == KEY
    for principal, session in (("guest", "ses-1"), ("owner", "ses-2")):
        assert (
            await journal.read(lambda connection: admissions.find(connection, principal, session, input_id="in-1"))  # noqa: B023
            is None
        )


@pytest.mark.parametrize("happened", Happened, ids=lambda happened: happened.name)
async def test_what_cannot_happen_to_an_admission_is_not_stored(journal: Database, happened: Happened) -> None:
    """From each state: either the table says where it leads, or it is refused and everything is as before."""
    admitted = await admit(journal)

    for state in State:
        row = (state.value, admitted.admission_id)
        await journal.transact(
            lambda tx, row=row: tx.connection.execute("UPDATE admission SET status = ? WHERE admission_id = ?", row)
        )
        then = TRANSITIONS.get((state, happened))
        if then is None:
            with pytest.raises(RuntimeError, match="so it cannot be that"):
                await journal.transact(lambda tx: admission_life.move(tx, admitted.admission_id, happened))
        else:
            await journal.transact(lambda tx: admission_life.move(tx, admitted.admission_id, happened))
        stored = await journal.read(lambda connection: admissions.known(connection, admitted.admission_id))
        assert stored.status == (state if then is None else then).value
