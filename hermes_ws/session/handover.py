"""What a lost execution had asked, until the one that goes on with its input asks it again.

It is the same question, under the same id; an answer that came between the two is the answer.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import final

import trio
from pydantic import JsonValue

from hermes_ws.contract.model import Params
from hermes_ws.contract.questions import CONNECTION
from hermes_ws.journal import questions as rows
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.questions import QuestionRecord


@final
class Handover:
    """The answers to what nobody waits for yet. There are few: each execution that goes on has asked one thing."""

    def __init__(self) -> None:
        self._early: dict[str, tuple[QuestionRecord, Params]] = {}
        self.taking = trio.Lock()
        """Held while a question is asked, and while one is answered, so that no answer falls between the two."""

    def answered(self, record: QuestionRecord, result: Params) -> None:
        """Keep an answer until somebody asks for it."""
        self._early[record.question_id] = (record, result)

    def take(self, admission_id: str, kind: str, asked: Mapping[str, JsonValue]) -> Params | None:
        """The answer that has come already, given once."""
        for id, (record, result) in self._early.items():
            if (record.admission_id, record.kind, record.params) == (admission_id, kind, asked):
                del self._early[id]
                return result
        return None

    def of(self, admission_id: str) -> list[QuestionRecord]:
        """What of an input has been answered, and not been asked again."""
        return [record for record, _ in self._early.values() if record.admission_id == admission_id]

    def forget(self, admission_id: str) -> None:
        """The input has ended."""
        for record in self.of(admission_id):
            del self._early[record.question_id]


def left(connection: sqlite3.Connection, key: ThreadKey, admission_id: str) -> list[QuestionRecord]:
    """What is open of an input, and was asked by an earlier owner of the home."""
    epoch = connection.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()[0]
    found = rows.open_of(connection, key, admission_id)
    return [each for each in found if each.epoch < epoch and each.kind != CONNECTION.kind]
