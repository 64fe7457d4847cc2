"""A disk that takes nothing for a while: said as it is, and gone on with when it does again."""

from __future__ import annotations

import pytest

from hermes_ws.contract.errors import StorageFull, StorageUnavailable
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal import admissions
from hermes_ws.journal.database import Transaction
from tests.session.house import House, eventually, new_session, say


def fill(tx: Transaction) -> None:
    """From here on the database may not grow."""
    tx.connection.execute("PRAGMA max_page_count = 1")


def empty(tx: Transaction) -> None:
    tx.connection.execute("PRAGMA max_page_count = 1073741823")


async def test_an_input_that_cannot_be_stored_is_refused_and_nothing_runs(runtime: ProfileRuntime) -> None:
    _, thread, _ = await new_session(runtime)
    await runtime.journal.transact(fill)
    with pytest.raises(StorageFull):
        for number in range(200):
            await say(thread, "x" * 50_000, f"n{number}")
    await runtime.journal.transact(empty)
    await runtime.sessions.wait_until_idle()
    assert thread.active is None


async def test_an_outcome_that_cannot_be_stored_is_stored_when_it_can_be(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = 0

    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        journal = runtime.journal
        real = journal.transact

        async def transact(work: object, **options: object) -> object:
            nonlocal refused
            if thread.active is not None and thread.active.state.value == "finishing" and refused < 2:
                refused += 1
                raise StorageUnavailable("The disk is gone.")
            return await real(work, **options)  # pyright: ignore[reportArgumentType]

        monkeypatch.setattr(journal, "transact", transact)
        await say(thread, "/do say hello", "one")
        await eventually(lambda: refused == 2)
        assert thread.interrupt(1).outcome == "finishing"
        await say(thread, "/do say next", "two")
        await viewer.until("execution.finished", outcome="completed")
        await viewer.until("execution.finished", outcome="completed")
    log = (house.root / "default" / "logs" / "profile.log").read_text()
    assert log.count("execution.not_settled") == 2


async def test_a_queue_that_the_disk_held_up_goes_on_in_its_order(
    runtime: ProfileRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TURN-02: what was accepted behind an input that could not be stored yet runs after it, and is not stranded."""
    real, refused = admissions.claim, 0

    def claim(*args: object) -> object:
        nonlocal refused
        if refused < 3:
            refused += 1
            raise StorageUnavailable("The disk is gone.")
        return real(*args)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(admissions, "claim", claim)
    monkeypatch.setattr("hermes_ws.session.thread.CLAIM_RETRY_S", (0.0,))
    _, thread, viewer = await new_session(runtime)
    for number in (1, 2):
        await say(thread, f"/do say p{number}", f"p{number}")
    for number in (1, 2):
        said = await viewer.until("message.complete", role="assistant")
        assert said["payload"]["text"].strip() == f"p{number}"
    assert refused == 3
