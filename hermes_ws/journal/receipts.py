"""Answers that are kept, so that a request that is repeated is carried out once and answered alike.

They belong to the home and not to a session: the answer to a deletion outlives what was deleted.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import cast, final

import orjson
from pydantic import JsonValue

from hermes_ws.contract.errors import AdmissionConflict
from hermes_ws.journal.transaction import Transaction
from hermes_ws.wire.frames import encode


@final
@dataclass(frozen=True, slots=True)
class Request:
    """Who asked, under which id of theirs, and what: `digest` stands for the content."""

    principal: str
    request_id: str
    digest: str


def find(connection: sqlite3.Connection, request: Request) -> dict[str, JsonValue] | None:
    """The stored answer; None when this request was not carried out. Raises `AdmissionConflict` if the id was used
    with other content.
    """
    row = connection.execute(
        "SELECT digest, body FROM receipt WHERE principal = ? AND request_id = ?",
        (request.principal, request.request_id),
    ).fetchone()
    if row is None:
        return None
    digest, body = row
    if digest != request.digest:
        raise AdmissionConflict(f"The request {request.request_id} was carried out with other content.")
    return cast("dict[str, JsonValue]", orjson.loads(body))


def store(tx: Transaction, request: Request, answer: dict[str, JsonValue]) -> None:
    """Keep the answer, in the transaction that did what it tells."""
    tx.connection.execute(
        "INSERT INTO receipt (principal, request_id, digest, body, created_at) VALUES (?, ?, ?, ?, ?)",
        (request.principal, request.request_id, request.digest, encode(answer).decode(), tx.now),
    )
