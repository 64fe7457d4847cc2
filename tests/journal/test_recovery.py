"""What a killed owner left running: it goes on where nothing can have happened unseen, and else waits for a word."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import orjson
import pytest

from hermes_ws.contract.content import FileBlock, ImageBlock, Message, TextBlock, ToolCallBlock, ToolResultBlock
from hermes_ws.contract.events import ToolComplete, ToolStart
from hermes_ws.journal import admissions, events, messages, questions, recovery, sessions, steering
from hermes_ws.journal.admissions import AdmissionRecord, NewAdmission
from hermes_ws.journal.database import Database, ThreadKey, Transaction
from hermes_ws.journal.questions import NewQuestion
from hermes_ws.journal.recovery import NOT_STARTED
from hermes_ws.wire.cursor import Cursor
from tests.journal.conftest import NEW, Opener

KEY = ThreadKey("ses-1", "main")
INPUT = NewAdmission(KEY, "owner", "in-1", "digest", "Begin")
PICTURE = ImageBlock(blob="a" * 64, media_type="image/png")

Killed = Callable[..., Awaitable[Database]]


@pytest.fixture
def killed(open_home: Opener) -> Killed:
    """The next owner of a home in which an execution ran, and did these things before its owner was killed."""

    async def after(*deeds: Callable[[Transaction], object], new: NewAdmission = INPUT) -> Database:
        database = await open_home()
        await database.transact(lambda tx: sessions.create(tx, NEW))
        await database.transact(lambda tx: admissions.admit(tx, new))
        await database.transact(lambda tx: admissions.claim(tx, KEY))
        for deed in deeds:
            await database.transact(deed)
        await database.close()
        return await open_home()

    return after


def start(call_id: str) -> Callable[[Transaction], object]:
    begun = ToolStart(call_id=call_id, name="terminal", arguments={})
    return lambda tx: tx.append(KEY, "tool.start", begun, execution_generation=1)


def complete(call_id: str, output: str, **more: object) -> Callable[[Transaction], object]:
    done = ToolComplete.model_validate(
        {"call_id": call_id, "name": "terminal", "output": output, "is_error": False, "duration_ms": 1, **more}
    )
    return lambda tx: tx.append(KEY, "tool.complete", done, execution_generation=1)


def asked_for(*call_ids: str) -> Callable[[Transaction], object]:
    calls = [ToolCallBlock(call_id=each, name="terminal", arguments={}) for each in call_ids]
    content = [TextBlock(text="Now"), *calls]
    return lambda tx: messages.add(tx, KEY, Message(message_id="msg-a", role="assistant", text="Now", content=content))


def ask(id: str, kind: str) -> Callable[[Transaction], object]:
    def work(tx: Transaction) -> None:
        (running,) = admissions.pending(tx.connection, KEY)
        questions.open(tx, NewQuestion(id, KEY, kind, 1, {}, running.admission_id))

    return work


async def recover(database: Database, *, resume: bool = True) -> tuple[AdmissionRecord, bool]:
    (lost,) = await database.transact(lambda tx: recovery.recover(tx, resume=resume))
    return lost.admission, lost.resumes


async def claim(database: Database) -> AdmissionRecord:
    claimed = await database.transact(lambda tx: admissions.claim(tx, KEY))
    assert claimed is not None
    return claimed


async def types(database: Database) -> list[str]:
    found, _ = await database.read(lambda connection: events.since(connection, KEY, Cursor(1, 0)))
    return [event.type for event in found]


async def results(database: Database) -> Sequence[ToolResultBlock]:
    found = await database.read(lambda connection: messages.stored(connection, KEY))
    return [block for message in found for block in message.content if isinstance(block, ToolResultBlock)]


async def test_what_stood_at_a_safe_point_goes_on_as_the_same_input_and_says_nothing_twice(killed: Killed) -> None:
    database = await killed()
    admission, resumes = await recover(database)
    assert (resumes, admission.status, admission.execution_generation) == (True, "queued", 1)
    again = await claim(database)
    assert (again.admission_id, again.execution_generation) == (admission.admission_id, 2)
    assert await types(database) == [
        "execution.queued",
        "execution.started",
        "message.complete",
        "execution.lost",
        "execution.started",
    ]


async def test_a_second_crash_is_not_tried_again(killed: Killed, open_home: Opener) -> None:
    database = await killed()
    await recover(database)
    await claim(database)
    await database.close()
    admission, resumes = await recover(await open_home())
    assert (resumes, admission.status) == (False, "unknown")


@pytest.mark.parametrize("new", [replace(INPUT, finite=True), replace(INPUT, unattended=True)])
async def test_what_nobody_waits_with_never_goes_on_by_itself(killed: Killed, new: NewAdmission) -> None:
    assert (await recover(await killed(new=new)))[1] is False


async def test_nothing_goes_on_where_that_is_not_wanted(killed: Killed) -> None:
    admission, resumes = await recover(await killed(), resume=False)
    assert (resumes, admission.status) == (False, "unknown")


async def test_a_call_that_was_under_way_may_have_happened(killed: Killed) -> None:
    database = await killed(asked_for("c1", "c2"), start("c1"), complete("c1", "one"), start("c2"))
    assert (await recover(database))[1] is False
    assert await results(database) == []


async def test_a_batch_that_was_broken_off_between_two_calls_is_told_as_far_as_it_came(killed: Killed) -> None:
    done = [start("c1"), complete("c1", "one", images=[PICTURE]), start("c2"), complete("c2", "no", is_error=True)]
    database = await killed(asked_for("c1", "c2", "c3"), *done)
    assert (await recover(database))[1] is True
    assert [(each.call_id, each.output, each.is_error, each.images) for each in await results(database)] == [
        ("c1", "one", False, [PICTURE]),
        ("c2", "no", True, []),
        ("c3", NOT_STARTED, True, []),
    ]
    again = await claim(database)
    assert await database.read(lambda connection: recovery.results_before(connection, again)) == {
        "c1": ("one", False),
        "c2": ("no", True),
    }


async def test_a_first_execution_has_none_before_it(killed: Killed) -> None:
    database = await killed()
    (running,) = await database.read(lambda connection: admissions.pending(connection, KEY))
    assert await database.read(lambda connection: recovery.results_before(connection, running)) == {}


async def test_an_answer_without_calls_is_left_as_it_is(killed: Killed) -> None:
    database = await killed(asked_for())
    assert (await recover(database))[1] is True
    assert await results(database) == []


async def test_what_is_asked_between_calls_stays_asked_and_the_rest_is_given_up(killed: Killed) -> None:
    database = await killed(asked_for("c1"), ask("srq-1", "approval"), ask("srq-2", "clarify"))
    await recover(database)
    (left,) = await database.read(lambda connection: questions.open_questions(connection))
    assert (left.id, left.execution_generation) == ("srq-1", 1)
    given_up = await database.read(lambda connection: questions.get(connection, "srq-2"))
    assert given_up is not None
    assert given_up.state == "abandoned"
    assert await results(database) == [], "the call that is asked about waits for the answer"
    await claim(database)
    (left,) = await database.read(lambda connection: questions.open_questions(connection))
    assert (left.id, left.execution_generation) == ("srq-1", 2)
    assert (await types(database))[-2:] == ["execution.started", "request.opened"]


async def test_what_was_said_to_it_alone_is_cancelled_with_it(killed: Killed) -> None:
    words = NewAdmission(KEY, "owner", "in-2", "digest", "Shorter", steers=1)
    database = await killed(lambda tx: steering.admit(tx, words))
    await recover(database)
    (only,) = await database.read(lambda connection: admissions.pending(connection, KEY))
    assert only.input_id == "in-1"
    assert "notice" in await types(database)


async def test_what_was_attached_goes_with_the_words_into_the_message(open_home: Opener) -> None:
    database = await open_home()
    await database.transact(lambda tx: sessions.create(tx, NEW))
    file = FileBlock(blob="b" * 64, media_type="text/plain", name="notes.txt", size=3)
    await database.transact(lambda tx: admissions.admit(tx, replace(INPUT, attached=(PICTURE, file))))
    await claim(database)
    (said,) = await database.read(lambda connection: messages.stored(connection, KEY))
    assert said.content == [PICTURE, file]
    found, _ = await database.read(lambda connection: events.since(connection, KEY, Cursor(1, 0)))
    (told,) = [event for event in found if event.type == "message.complete"]
    assert [block["type"] for block in orjson.loads(told.payload)["content"]] == ["image", "file"]
