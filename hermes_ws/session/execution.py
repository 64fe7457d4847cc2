"""The life of an execution.

An admitted input waits in its thread's queue. Claiming it takes it from the head, under the next execution generation;
from that commit on it can be interrupted, also while nothing of it has run. It ends once: what the turn came to is
settled in one transaction, while it is `finishing` and takes no interrupt any more. When the owner of the home is
replaced or ends before that, it is lost, and the next owner says so.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, Literal, cast, final

import trio

from hermes_ws.contract.errors import HermesError, StaleEpoch, StaleGeneration, StorageUnavailable
from hermes_ws.contract.events import ExecutionError, Outcome
from hermes_ws.journal import admissions
from hermes_ws.journal.admissions import AdmissionRecord
from hermes_ws.journal.database import Transaction
from hermes_ws.session import identifiers
from hermes_ws.session.briefing import Briefing
from hermes_ws.session.narration import Narration
from hermes_ws.session.questions import Asking
from hermes_ws.session.steering import ExecutionSteering
from hermes_ws.session.workplace import Workplace

__all__ = ["TRANSITIONS", "Execution", "Happened", "State", "Workplace"]


class State(Enum):
    """Where an execution stands."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    RUNNING = "running"
    FINISHING = "finishing"
    FINISHED = "finished"
    LOST = "lost"


class Happened(Enum):
    """What moves it on."""

    CLAIM_COMMITTED = "the head of the queue is this one"
    TURN_BEGAN = "the scope is bound and the turn runs"
    TURN_ENDED = "the turn is over, in whichever way"
    SETTLE_COMMITTED = "its outcome is durable"
    OWNER_REPLACED = "its outcome cannot be written by this owner any more"


TRANSITIONS: Mapping[tuple[State, Happened], State] = MappingProxyType(
    {
        (State.QUEUED, Happened.CLAIM_COMMITTED): State.CLAIMED,
        (State.CLAIMED, Happened.TURN_BEGAN): State.RUNNING,
        (State.CLAIMED, Happened.TURN_ENDED): State.FINISHING,
        (State.RUNNING, Happened.TURN_ENDED): State.FINISHING,
        (State.FINISHING, Happened.SETTLE_COMMITTED): State.FINISHED,
        (State.FINISHING, Happened.OWNER_REPLACED): State.LOST,
    }
)

SETTLE_RETRY_S = (0.1, 0.5, 2.0, 10.0)
"""Seconds between attempts to write an outcome to a disk that is full or gone; the last repeats until it is back."""


@final
class Execution:
    """One run of the agent on a thread."""

    def __init__(self, place: Workplace) -> None:
        self._place = place
        self._cancel_scope: Final = trio.CancelScope()
        self._record: AdmissionRecord | None = None
        self._generation = 0
        self._interrupted = False
        self._steering: ExecutionSteering | None = None
        self.state = State.QUEUED
        self.leaves_waiting = False
        """Whether more inputs were queued on the thread at the moment in which this one finished."""

    @property
    def generation(self) -> int:
        """The execution generation; 0 while it is queued."""
        return self._generation

    @property
    def admission_id(self) -> str | None:
        """The input that it runs; None while it is queued."""
        return None if self._record is None else self._record.admission_id

    @property
    def steering(self) -> ExecutionSteering | None:
        """What is said to it while it runs; None when nothing can be, since it is queued or ends."""
        return None if self._interrupted else self._steering

    async def claim(self, claimed: Callable[[], None]) -> bool:
        """Take the head of the thread's queue; false when there is none that may start.

        `claimed` is called in the step in which the commit becomes visible. Raises `StorageUnavailable`, `StaleEpoch`.
        """
        return await self._place.runtime.journal.transact(self.claiming(claimed))

    def claiming(self, claimed: Callable[[], None]) -> Callable[[Transaction], bool]:
        """The work that `claim` does, for whoever commits it together with another."""

        def work(tx: Transaction) -> bool:
            record = admissions.claim(tx, self._place.key)
            if record is None:
                return False

            def committed() -> None:
                self._record = record
                self._generation = record.execution_generation or 0
                self._steering = ExecutionSteering(
                    self._place.runtime.journal, self._place.key, self._generation, steerable=not record.finite
                )
                self._become(Happened.CLAIM_COMMITTED)
                claimed()

            tx.after_commit(committed)
            return True

        return work

    def interrupt(self) -> bool:
        """End the turn; false when it has ended already and only its outcome is being written."""
        if self.state not in (State.CLAIMED, State.RUNNING):
            return False
        self._interrupted = True
        self._cancel_scope.cancel()
        return True

    async def run(self, finished: Callable[[], None]) -> None:
        """Run what was claimed to its end and settle it. `finished` is called when it is no longer active.

        Cancelling ends the turn like an interrupt; the outcome is committed before the cancellation goes on.
        """
        assert self._record is not None
        place, record = self._place, self._record
        narration = Narration(
            place.runtime.journal,
            place.key,
            place.tail,
            execution_generation=self._generation,
            admission_id=record.admission_id,
            rules=place.rules,
        )
        outcome: Outcome = "completed"
        error: ExecutionError | None = None
        going_on: BaseException | None = None
        try:
            with self._cancel_scope:
                await self._turn(record, narration)
        except (Exception, trio.Cancelled, BaseExceptionGroup) as raised:
            going_on, failure = _take_apart(raised)
            if failure is not None:
                outcome, error = "failed", self._explain(failure)
        if self._interrupted or going_on is not None:
            outcome, error = "interrupted", None
        if self._steering is not None:
            self._steering.close()
        self._become(Happened.TURN_ENDED)
        await self._settle(outcome, error, narration, finished)
        if going_on is not None:
            raise going_on

    async def _turn(self, record: AdmissionRecord, narration: Narration) -> None:
        asking = Asking(self._place.key, self._generation, record.admission_id, record.unattended)
        briefing = Briefing(self._place, record, asking, narration, self._steering)
        await briefing.run(lambda: self._become(Happened.TURN_BEGAN))

    async def _settle(
        self, outcome: Outcome, error: ExecutionError | None, narration: Narration, finished: Callable[[], None]
    ) -> None:
        """Commit the end. A disk that takes nothing is asked again until it does, or until the runtime closes: then the
        row stays as it is, and the next owner of the home reports the execution as lost.
        """

        def ended(happened: Happened, waiting: bool = False) -> None:
            self._become(happened)
            self.leaves_waiting = waiting
            narration.end_live()
            finished()

        def work(tx: Transaction) -> None:
            settled = admissions.settle(tx, self._place.key, self._generation, outcome, error, narration.total)
            self._place.questions.leave(tx, self._place.key, settled.admission_id)
            waiting = any(each.status == "queued" for each in admissions.pending(tx.connection, self._place.key))
            tx.after_commit(lambda: ended(Happened.SETTLE_COMMITTED, waiting))

        attempt = 0
        while True:
            try:
                with trio.CancelScope(shield=True):
                    await self._place.runtime.journal.transact(work)
            except StorageUnavailable as unavailable:
                self._log("error", "execution.not_settled", message=unavailable.message)
                await trio.sleep(SETTLE_RETRY_S[min(attempt, len(SETTLE_RETRY_S) - 1)])
                attempt += 1
            except (StaleEpoch, StaleGeneration) as stale:
                self._log("error", "execution.lost", message=stale.message)
                ended(Happened.OWNER_REPLACED)
                return
            else:
                return

    def _explain(self, failure: Exception) -> ExecutionError:
        """What the client is told. Of a bug of ours it is told that it is one, and where its stack can be found."""
        if isinstance(failure, HermesError):
            redact = self._place.runtime.scope.secrets.redact
            return ExecutionError(type=failure.type, message=redact(failure.message), hint=redact(failure.hint))
        incident = identifiers.incident_id()
        self._log("error", "internal", incident=incident, stack="".join(traceback.format_exception(failure)))
        return ExecutionError(
            type="internal",
            message=f"Something went wrong in the server (incident {incident}).",
            hint="Look for the incident id in the profile's log.",
        )

    def _log(self, level: Literal["info", "warning", "error"], event: str, **fields: str) -> None:
        key = self._place.key
        self._place.runtime.log.write(
            level, event, session_id=key.session_id, thread_id=key.thread_id, execution=self._generation, **fields
        )

    def _become(self, happened: Happened) -> None:
        self.state = TRANSITIONS[self.state, happened]


def _take_apart(raised: BaseException) -> tuple[BaseException | None, Exception | None]:
    """What must go on to the owner (a cancellation from outside), and what the turn failed with."""
    if isinstance(raised, Exception):
        return None, _leading(raised)
    if not isinstance(raised, BaseExceptionGroup):
        return raised, None
    group = cast("BaseExceptionGroup[BaseException]", raised)
    failed, outside = group.split(Exception)
    return outside, None if failed is None else _leading(failed)


def _leading(failed: Exception) -> Exception:
    """The one exception that explains a failure: the only one of a group, the first if all were foreseen, else all."""
    leaves = list(_leaves(failed))
    if len(leaves) == 1 or all(isinstance(leaf, HermesError) for leaf in leaves):
        return leaves[0]
    return failed


def _leaves(failed: Exception) -> Iterator[Exception]:
    if not isinstance(failed, ExceptionGroup):
        yield failed
        return
    for part in cast("ExceptionGroup[Exception]", failed).exceptions:
        yield from _leaves(part)
