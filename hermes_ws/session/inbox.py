"""An input as it comes in: checked, and made into what is admitted to a thread."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import orjson

from hermes_ws.contract.errors import UnknownExecution
from hermes_ws.contract.methods.prompts import SubmitParams
from hermes_ws.journal import admissions
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.admissions import AdmissionRecord, NewAdmission
from hermes_ws.journal.blobs import Blobs
from hermes_ws.journal.database import Transaction
from hermes_ws.session import attachments


@final
@dataclass(frozen=True, slots=True)
class Incoming:
    """An input, and the work that admits it; the work returns what is stored, and whether it is new."""

    new: NewAdmission
    admit: Callable[[Transaction], tuple[AdmissionRecord, bool]]


async def incoming(blobs: Blobs, key: ThreadKey, params: SubmitParams, principal: str) -> Incoming:
    """Check what was sent. Raises `InvalidParams` for an attachment that is not there, or is too large.

    The work raises `AdmissionConflict`, and `SessionBusy` and `UnknownExecution` in mode `reject`.
    """
    text = params.plain_text()
    attached = await attachments.checked(blobs, params.attached)
    new = NewAdmission(
        key=key,
        principal=principal,
        input_id=params.input_id,
        digest=_digest(params, text),
        text=text,
        finite=params.finite,
        unattended=params.unattended,
        reject_if_busy=params.mode == "reject",
        attached=[block for block, _ in attached],
    )

    def admit(tx: Transaction) -> tuple[AdmissionRecord, bool]:
        if new.reject_if_busy:
            _refuse_if_lost(admissions.pending(tx.connection, key))
        for _, blob in attached:
            blobs.use(tx, blob, key)
        return admissions.admit(tx, new)

    return Incoming(new, admit)


def _refuse_if_lost(pending: Sequence[AdmissionRecord]) -> None:
    for record in pending:
        if record.status == "unknown":
            raise UnknownExecution(
                "An earlier execution of this thread was lost, and what it did last is not known.",
                admission_id=record.admission_id,
            )


def _digest(params: SubmitParams, text: str) -> str:
    """Tells whether two inputs are the same. How they were to be queued is no part of what they say."""
    attached = [[each.blob, each.media_type, each.name] for each in params.attached]
    content = orjson.dumps([text, params.finite, params.unattended, *([attached] if attached else [])])
    return hashlib.sha256(content).hexdigest()
