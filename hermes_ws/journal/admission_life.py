"""The life of an admission, as a table: what was accepted runs once, or it is known why not.

A *queued* input waits for its turn on the thread, or for the execution that it steers. One that has *started* has an
execution. After a crash it is *unknown* what that had done, unless it stood between two steps: then the input is
queued again, at the head. While one is unknown the thread's queue waits, since nothing is repeated on a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, final

from hermes_ws.journal.transaction import Transaction


@final
class State(Enum):
    """Where an admission stands; the values are those of the wire and of the journal."""

    QUEUED = "queued"
    STARTED = "started"
    UNKNOWN = "unknown"
    FINISHED = "finished"
    CANCELLED = "cancelled"


@final
class Happened(Enum):
    """What moves it on."""

    CLAIMED = "it is the head of the queue, and nothing runs on the thread"
    TAKEN = "the execution that it steers has heard it"
    RETIRED = "it was taken back, or what it steers has ended without it"
    SETTLED = "its execution has ended"
    OWNER_LOST = "the server was lost in the middle of a step"
    OWNER_LOST_SAFELY = "the server was lost between two steps"
    RESOLVED = "somebody has said what became of it"


TRANSITIONS: Final[Mapping[tuple[State, Happened], State]] = MappingProxyType(
    {
        (State.QUEUED, Happened.CLAIMED): State.STARTED,
        (State.QUEUED, Happened.TAKEN): State.FINISHED,
        (State.QUEUED, Happened.RETIRED): State.CANCELLED,
        (State.STARTED, Happened.SETTLED): State.FINISHED,
        (State.STARTED, Happened.OWNER_LOST): State.UNKNOWN,
        (State.STARTED, Happened.OWNER_LOST_SAFELY): State.QUEUED,
        (State.UNKNOWN, Happened.RESOLVED): State.FINISHED,
    }
)

_STEPS: Final = MappingProxyType({happened: (source, to) for (source, happened), to in TRANSITIONS.items()})
"""Each happening leads from one state to one other."""


def move(tx: Transaction, admission_id: str, happened: Happened, **columns: str | int) -> None:
    """Store that this happened to an admission, with other columns of its row. Raises `RuntimeError`, and stores
    nothing, when it stands where this cannot happen: our own mistake.
    """
    source, to = _STEPS[happened]
    others = "".join(f", {name} = ?" for name in columns)
    moved = tx.connection.execute(
        f"UPDATE admission SET status = ?{others} WHERE admission_id = ? AND status = ?",
        (to.value, *columns.values(), admission_id, source.value),
    )
    if moved.rowcount != 1:
        raise RuntimeError(f"Admission {admission_id} is not {source.value}, so it cannot be that {happened.value}.")
