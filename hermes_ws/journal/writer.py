"""The one thread that writes to a home's database.

Works wait in a queue. The thread takes what is there, runs each in its own savepoint, commits all of them with one
fsync and hands the outcome to the trio thread with one call; it never waits for more to come. On the trio thread the
events are published and the calls made in the order of the commit, then the listeners are told, and then the tasks
that waited go on.
"""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar, cast, final

import outcome
import trio

from hermes_ws.contract.errors import HermesError, StaleEpoch, StorageUnavailable
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.failures import is_storage, storage_error
from hermes_ws.journal.opening import Opened, Place, close_place, open_place
from hermes_ws.journal.stored_event import StoredEvent
from hermes_ws.journal.transaction import Committed, Group, Head, Transaction

T = TypeVar("T")

GROUP = 512
"""Works and events in one commit. Beyond this the fsync is a small part of the cost, and the first ones only wait."""


class Board(Protocol):
    """Where committed events appear, on the trio thread."""

    def publish(self, key: ThreadKey, event: StoredEvent) -> None:
        """Put an event into the tail of its thread, if anybody has it open."""
        ...

    def notify(self) -> None:
        """Tell the listeners of every tail that got something since the last call."""
        ...

    def wrote(self, trouble: StorageUnavailable | None) -> None:
        """A commit succeeded, or failed for this reason."""
        ...


@final
class Job:
    """One work in the queue, the task that waits for it, and what became of it."""

    __slots__ = ("committed", "delivered", "result", "task", "work")

    def __init__(self, work: Callable[[Transaction], object], task: trio.lowlevel.Task | None) -> None:
        self.work: Final = work
        self.task = task
        self.delivered = False
        self.committed: Committed | None = None
        self.result: outcome.Value[object] | outcome.Error | None = None

    def fail(self, error: BaseException) -> None:
        """The work did not happen, for this reason."""
        self.committed = None
        self.result = outcome.Error(error)


@final
class Later(Generic[T]):
    """A work that is queued right behind another one, and whose outcome is waited for by another task."""

    __slots__ = ("_job", "_work")

    def __init__(self, work: Callable[[Transaction], T]) -> None:
        self._work: Final = work
        self._job: Job | None = None

    @property
    def queued(self) -> bool:
        """Whether it will happen. False before the work that it follows was queued, which then may never be."""
        return self._job is not None

    def job(self) -> Job:
        """What the writer queues."""
        self._job = Job(self._work, None)
        return self._job

    async def wait(self) -> T:
        """What it returned, when that is durable; by one task only. Raises what it raised; not cancellable."""
        job = self._job
        assert job is not None, "this work was never queued; look at `queued` before waiting for it"
        if not job.delivered:
            job.task = trio.lowlevel.current_task()
            return cast("T", await trio.lowlevel.wait_task_rescheduled(stay))
        return cast("T", _result(job).unwrap())


def stay(_: object) -> trio.lowlevel.Abort:
    """A task that waits for the writer cannot be cancelled: what is queued will happen, and it must learn that."""
    return trio.lowlevel.Abort.FAILED


@final
class Writer:
    """The thread, its queue, and the connection that only it uses."""

    def __init__(self, place: Place, board: Board, context: contextvars.Context, clock: Callable[[], float]) -> None:
        self._place = place
        self._board = board
        self._context = context
        self._clock = clock
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._token = trio.lowlevel.current_trio_token()
        self._opened: Opened | None = None
        self._heads: dict[ThreadKey, Head] = {}
        self._last_ts = 0.0
        self._closing = False
        self._damage: StorageUnavailable | None = None
        """What was found wrong with the file itself. Nothing is written to it any more by this owner."""
        self._waiting: trio.lowlevel.Task | None = None
        self.groups = 0
        self.works = 0

    async def start(self) -> Opened:
        """Open the database in the new thread. Cancelling does not interrupt it; raises what `open_place` raises."""
        thread = threading.Thread(
            target=self._context.run, args=(self._main,), name=f"journal {self._place.database.name}", daemon=True
        )
        self._waiting = trio.lowlevel.current_task()
        thread.start()
        self._opened = cast("Opened", await trio.lowlevel.wait_task_rescheduled(stay))
        return self._opened

    async def transact(self, work: Callable[[Transaction], T], behind: Later[Any] | None = None) -> T:
        """Queue a work and wait until it is durable and published, or did not happen and raises why.

        What is to come right `behind` it is queued in the same step, so that both are in one commit.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._closing:
            raise StorageUnavailable(f"{self._place.database} is closed.", file=str(self._place.database))
        self._queue.put(Job(work, trio.lowlevel.current_task()))
        if behind is not None:
            self._queue.put(behind.job())
        return cast("T", await trio.lowlevel.wait_task_rescheduled(stay))

    async def close(self) -> None:
        """End the thread after all that is queued. Not cancellable; once only."""
        self._closing = True
        self._waiting = trio.lowlevel.current_task()
        self._queue.put(None)
        failed = cast("HermesError | None", await trio.lowlevel.wait_task_rescheduled(stay))
        if failed is not None:
            raise failed

    # --- in the thread -----------------------------------------------------------------------------------------------

    def _main(self) -> None:
        try:
            place = open_place(self._place)
        except BaseException as error:
            self._tell(self._wake, outcome.Error(error))
            return
        self._last_ts = place.last_ts
        self._tell(self._wake, outcome.Value(place))
        while True:
            job = self._queue.get()
            if job is None or not self._commit(place, job):
                break
        self._tell(self._wake, outcome.capture(close_place, place, self._last_ts, clean=self._damage is None))

    def _commit(self, place: Opened, first: Job) -> bool:
        """One group. False if there is no trio to tell any more."""
        if self._damage is not None:
            first.fail(self._reason(self._damage))
            return self._tell(self._deliver, [first], self._damage)
        jobs: list[Job] = []
        self._last_ts = max(self._last_ts, self._clock())
        group = Group(place.connection, place.epoch, self._last_ts, self._heads)
        trouble: StorageUnavailable | None = None
        job: Job | None = first
        try:
            jobs.append(first)
            group.begin()
            while job is not None:
                trouble = self._run(group, job) or trouble
                job = self._next(group)
                if job is not None:
                    jobs.append(job)
            group.commit()
        except BaseException as error:  # whatever it is, the tasks that wait must learn of it, and the thread goes on
            group.abandon()
            trouble = self._fail(jobs, error)
        if trouble is not None and trouble.data.get("damaged"):
            self._damage = trouble
        self.groups += 1
        self.works += len(jobs)
        return self._tell(self._deliver, jobs, trouble)

    def _next(self, group: Group) -> Job | None:
        """What is queued now, if the group has room. The sign to end is put back: it is the last in the queue."""
        if group.size >= GROUP:
            return None
        try:
            job = self._queue.get_nowait()
        except queue.Empty:
            return None
        if job is None:
            self._queue.put(None)
        return job

    def _run(self, group: Group, job: Job) -> StorageUnavailable | None:
        """One work. Returns what failed beneath it; raises when SQLite gave up the whole group with it."""
        try:
            value, job.committed = group.run(job.work)
            job.result = outcome.Value(value)
        except BaseException as error:
            if group.broken or not group.connection.in_transaction:
                raise
            trouble = storage_error(error, self._place.database) if is_storage(error) else None
            job.fail(trouble if trouble is not None else error)
            return trouble
        return None

    def _fail(self, jobs: list[Job], error: BaseException) -> StorageUnavailable | None:
        """Fail every job that had not failed for its own reason. Each gets its own exception, as each raises it."""
        for job in jobs:
            if not isinstance(job.result, outcome.Error):
                job.fail(self._reason(error))
        return storage_error(error, self._place.database) if is_storage(error) else None

    def _reason(self, error: BaseException) -> Exception:
        if is_storage(error):
            return storage_error(error, self._place.database)
        if isinstance(error, StaleEpoch | StorageUnavailable):
            return type(error)(error.message, hint=error.hint, **error.data)
        wrapped = RuntimeError("the commit failed, and nothing of its works was stored")
        wrapped.__cause__ = error
        return wrapped

    def _tell(self, fn: Callable[..., None], *args: object) -> bool:
        try:
            self._token.run_sync_soon(fn, *args)
        except trio.RunFinishedError:
            return False
        return True

    # --- on the trio thread ------------------------------------------------------------------------------------------

    def _wake(self, result: outcome.Value[object] | outcome.Error) -> None:
        task, self._waiting = self._waiting, None
        assert task is not None
        trio.lowlevel.reschedule(task, result)

    def _deliver(self, jobs: list[Job], trouble: StorageUnavailable | None) -> None:
        self._board.wrote(trouble)
        for job in jobs:
            if job.committed is not None:
                self._publish(job, job.committed)
        self._board.notify()
        for job in jobs:
            job.delivered = True
            if job.task is not None:
                trio.lowlevel.reschedule(job.task, _result(job))

    def _publish(self, job: Job, committed: Committed) -> None:
        for key, event in committed.events:
            self._board.publish(key, event)
        for call in committed.calls:
            try:
                call()
            except Exception as error:  # a bug of ours; the one who left the call learns of it, and nobody else
                error.add_note("raised by a call after the commit: what the transaction did is stored")
                job.result = outcome.Error(error)


def _result(job: Job) -> outcome.Value[object] | outcome.Error:
    return job.result if job.result is not None else outcome.Value(None)
