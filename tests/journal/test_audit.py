"""Who did what: kept in its order, found by who and by what, and not for ever."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes_ws.journal import audit
from hermes_ws.journal.audit import Deed
from hermes_ws.journal.database import Database

DEED = Deed(1.0, "owner", None, "c-1", "prompt.submit", "ses-1", "ok")
REVOKED = Deed(2.0, "reviewer", "tok-1", "c-2", "token.revoke", None, "not_found")


async def test_the_latest_stand_first_and_the_next_page_goes_on(journal: Database) -> None:
    await journal.transact(lambda tx: audit.add(tx, [DEED, REVOKED, replace(DEED, at=3.0)]))
    assert await journal.read(lambda connection: audit.page(connection, 2)) == [
        (3, replace(DEED, at=3.0)),
        (2, REVOKED),
    ]
    assert await journal.read(lambda connection: audit.page(connection, 2, before=2)) == [(1, DEED)]


async def test_they_are_found_by_who_and_by_what(journal: Database) -> None:
    await journal.transact(lambda tx: audit.add(tx, [DEED, REVOKED]))
    assert await journal.read(lambda connection: audit.page(connection, 9, principal="reviewer")) == [(2, REVOKED)]
    assert await journal.read(lambda connection: audit.page(connection, 9, method="prompt.submit")) == [(1, DEED)]
    assert await journal.read(lambda c: audit.page(c, 9, principal="owner", method="token.revoke")) == []


async def test_the_oldest_go_when_there_are_too_many(journal: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "KEPT", 5)
    monkeypatch.setattr(audit, "TRIM_EVERY", 8)
    for number in range(9):
        await journal.transact(lambda tx: audit.add(tx, [replace(DEED, at=float(number))]))  # noqa: B023
    kept = await journal.read(lambda connection: audit.page(connection, 100))
    assert [deed.at for _, deed in kept] == [
        8.0,
        7.0,
        6.0,
        5.0,
        4.0,
        3.0,
    ]  # trimmed with the eighth, not with the ninth
