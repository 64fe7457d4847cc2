"""Making, finding and listing sessions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes_ws.contract.errors import AdmissionConflict, InvalidParams
from hermes_ws.journal import admissions, questions, recovery, sessions, threads
from hermes_ws.journal.admissions import NewAdmission
from hermes_ws.journal.database import ThreadKey
from hermes_ws.journal.questions import NewQuestion
from hermes_ws.journal.sessions import SessionState, SessionSummary
from tests.journal.conftest import NEW, Opener

FULL = replace(NEW, title="Taxes \ud800", launch={"model": "m"}, request_id="r1")


async def test_a_session_comes_with_its_main_thread(open_home: Opener) -> None:
    database = await open_home()
    made = await database.transact(lambda tx: sessions.create(tx, FULL))
    assert made.new
    assert (made.record.title, made.record.launch, made.record.revision) == ("Taxes \ufffd", {"model": "m"}, 1)
    assert (made.record.created_at, made.record.archived) == (1000.0, False)
    assert str(made.thread.cursor) == "1:0"
    assert await database.read(lambda connection: sessions.get(connection, "ses-1")) == made.record
    assert await database.read(lambda connection: threads.get(connection, ThreadKey("ses-1", "main"))) == made.thread
    assert await database.read(lambda connection: sessions.get(connection, "none")) is None


async def test_a_repeated_request_gets_the_session_that_it_made(open_home: Opener) -> None:
    database = await open_home()
    made = await database.transact(lambda tx: sessions.create(tx, FULL))
    again = await database.transact(lambda tx: sessions.create(tx, replace(FULL, session_id="ses-2")))
    assert (again.record, again.thread, again.new) == (made.record, made.thread, False)
    other = await database.transact(lambda tx: sessions.create(tx, replace(FULL, session_id="ses-2", principal="x")))
    assert other.new
    with pytest.raises(AdmissionConflict) as caught:
        await database.transact(lambda tx: sessions.create(tx, replace(FULL, session_id="ses-3", digest="e")))
    assert caught.value.data == {"session_id": "ses-1"}
    assert await database.read(sessions.count) == 2


async def test_the_latest_is_the_one_used_last(open_home: Opener) -> None:
    times = iter(range(1, 100))
    database = await open_home(clock=lambda: float(next(times)))
    assert await database.read(sessions.latest) is None
    for number, source in ((1, "cli"), (2, "api"), (3, "api")):
        new = replace(NEW, session_id=f"ses-{number}", source=source, title="same")
        await database.transact(lambda tx: sessions.create(tx, new))  # noqa: B023
    await database.transact(lambda tx: sessions.touch(tx, "ses-2"))

    async def names() -> list[str | None]:
        found = [
            await database.read(lambda connection: sessions.latest(connection)),
            await database.read(lambda connection: sessions.latest(connection, "cli")),
            await database.read(lambda connection: sessions.latest(connection, "tui")),
            await database.read(lambda connection: sessions.by_title(connection, "same")),
        ]
        return [each.session_id if each is not None else None for each in found]

    assert await names() == ["ses-2", "ses-1", None, "ses-2"]
    await database.transact(lambda tx: tx.connection.execute("UPDATE session SET archived = 1 WHERE source = 'api'"))
    assert await names() == ["ses-1", "ses-1", None, "ses-2"]


def ids(found: list[SessionSummary]) -> list[str]:
    return [each.record.session_id for each in found]


async def test_pages_of_the_list_follow_each_other_and_times_may_be_equal(open_home: Opener) -> None:
    database = await open_home()
    for number in range(5):
        new = replace(NEW, session_id=f"ses-{number}")
        await database.transact(lambda tx: sessions.create(tx, new))  # noqa: B023
    first, following = await database.read(lambda connection: sessions.page(connection, 2))
    second, last = await database.read(lambda connection: sessions.page(connection, 2, following))
    third, end = await database.read(lambda connection: sessions.page(connection, 2, last))
    assert [ids(first), ids(second), ids(third), end] == [["ses-4", "ses-3"], ["ses-2", "ses-1"], ["ses-0"], None]
    with pytest.raises(InvalidParams) as caught:
        await database.read(lambda connection: sessions.page(connection, 2, "yesterday"))
    assert caught.value.data == {"path": "before"}


async def test_the_list_says_what_each_session_does(open_home: Opener) -> None:
    database = await open_home()
    states: tuple[SessionState, ...] = ("idle", "running", "waiting", "lost")
    for name in states:
        key = ThreadKey(name, "main")
        await database.transact(lambda tx: sessions.create(tx, replace(NEW, session_id=name)))  # noqa: B023
        if name == "idle":
            continue
        await database.transact(
            lambda tx: admissions.admit(tx, NewAdmission(key, "owner", "i", "d", f"Do 100% of {key.session_id}"))  # noqa: B023
        )
        if name != "running":
            await database.transact(lambda tx: admissions.claim(tx, key))  # noqa: B023
    question = NewQuestion("srq-o-1", ThreadKey("waiting", "main"), "approval", 1, {})
    await database.transact(lambda tx: questions.open(tx, question))
    await database.transact(lambda tx: tx.connection.execute("UPDATE execution SET epoch = 0 WHERE thread = 4"))
    await database.transact(lambda tx: recovery.recover(tx, resume=False))
    found, _ = await database.read(lambda connection: sessions.page(connection, 10))
    assert {each.record.session_id: each.state for each in found} == {name: name for name in states}
    assert {each.preview for each in found} == {"", "Do 100% of running", "Do 100% of waiting", "Do 100% of lost"}
    for name in states:
        only, _ = await database.read(lambda connection: sessions.page(connection, 10, state=name))  # noqa: B023
        assert ids(only) == [name]


async def test_a_query_means_its_letters(open_home: Opener) -> None:
    database = await open_home()
    for number, title in enumerate(("100% done", "1000 done", "a_b", "axb", None)):
        new = replace(NEW, session_id=f"ses-{number}", title=title)
        await database.transact(lambda tx: sessions.create(tx, new))  # noqa: B023
    for query, expected in (("100%", ["ses-0"]), ("a_b", ["ses-2"]), ("DONE", ["ses-1", "ses-0"]), ("\\", [])):
        found, _ = await database.read(lambda connection: sessions.page(connection, 10, query=query))  # noqa: B023
        assert ids(found) == expected


async def test_a_title_that_is_there_is_the_session_that_is_meant_when_one_is_only_to_be_there(
    open_home: Opener,
) -> None:
    database = await open_home()
    wanted = replace(NEW, title="Taxes", if_missing=True)
    made = await database.transact(lambda tx: sessions.create(tx, wanted))
    assert (made.new, made.existing) == (True, False)
    again = await database.transact(lambda tx: sessions.create(tx, replace(wanted, session_id="ses-2")))
    assert (again.record, again.new, again.existing) == (made.record, False, True)
    untitled = replace(wanted, session_id="ses-3", title=None)
    assert (await database.transact(lambda tx: sessions.create(tx, untitled))).new


async def test_each_change_is_a_revision(open_home: Opener) -> None:
    times = iter((1.0, 2.0, 3.0))
    database = await open_home(clock=lambda: next(times))
    made = (await database.transact(lambda tx: sessions.create(tx, FULL))).record
    changed = await database.transact(lambda tx: sessions.edit(tx, "ses-1", title="Taxes 2026", pinned=True))
    assert (changed.title, changed.pinned, changed.revision) == ("Taxes 2026", True, made.revision + 1)
    assert changed.updated_at > made.updated_at
    assert await database.read(lambda connection: sessions.get(connection, "ses-1")) == changed
    lent = changed.with_launch({"model": "other"})
    assert (lent.launch, lent.revision) == ({"model": "other"}, changed.revision)
    assert await database.read(lambda connection: sessions.get(connection, "ses-1")) == changed


async def test_what_a_list_shows_of_a_session_can_be_had_of_one(open_home: Opener) -> None:
    database = await open_home()
    record = (await database.transact(lambda tx: sessions.create(tx, NEW))).record
    words = NewAdmission(ThreadKey("ses-1", "main"), "owner", "in-1", "digest", "Count the receipts")
    await database.transact(lambda tx: admissions.admit(tx, words))
    shown = await database.read(lambda connection: sessions.summary(connection, record))
    assert (shown.record, shown.state, shown.preview) == (record, "running", "Count the receipts")
