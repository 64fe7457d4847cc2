"""Answers that are kept: given again to who repeats a request, and to nobody else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes_ws.contract.errors import AdmissionConflict
from hermes_ws.journal import receipts, replacement
from hermes_ws.journal.database import Database, Transaction
from hermes_ws.journal.receipts import Request

REQUEST = Request("owner", "r-1", "digest")


async def found(journal: Database, request: Request) -> object:
    return await journal.read(lambda connection: receipts.find(connection, request))


async def test_a_repeated_request_gets_the_answer_that_was_given(journal: Database) -> None:
    assert await found(journal, REQUEST) is None
    await journal.transact(lambda tx: receipts.store(tx, REQUEST, {"revision": 2, "text": "Grüße"}))
    assert await found(journal, REQUEST) == {"revision": 2, "text": "Grüße"}
    assert await found(journal, replace(REQUEST, request_id="r-2")) is None
    assert await found(journal, replace(REQUEST, principal="somebody else")) is None


async def test_an_id_that_was_used_for_something_else_is_refused(journal: Database) -> None:
    await journal.transact(lambda tx: receipts.store(tx, REQUEST, {}))
    with pytest.raises(AdmissionConflict, match="r-1"):
        await found(journal, replace(REQUEST, digest="another"))


async def test_the_answer_to_a_deletion_outlives_what_was_deleted(journal: Database) -> None:
    def work(tx: Transaction) -> None:
        replacement.forget(tx, "ses-1")
        receipts.store(tx, REQUEST, {"deleted": True})

    await journal.transact(work)
    assert await found(journal, REQUEST) == {"deleted": True}


async def test_what_was_not_carried_out_has_no_answer(journal: Database) -> None:
    def work(tx: Transaction) -> None:
        receipts.store(tx, REQUEST, {})
        raise LookupError

    with pytest.raises(LookupError):
        await journal.transact(work)
    assert await found(journal, REQUEST) is None
