"""Schedules: prompts of one profile that are submitted at their time, by the profile itself.

A schedule is a row in the home's own store, and its next time is a timer there (`timers.py`): no other profile, and no
other server, has it to run (cases SCHED-01 to 04, SCHED-07), and a run is claimed before it is dispatched, so that it
happens once (case SCHED-06). A run is an unattended input of a session of this profile, admitted like any other.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, Literal, cast, final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import orjson
from cronsim import CronSim, CronSimError
from pydantic import JsonValue

from hermes_ws.contract.errors import HermesError, InvalidParams, LimitReached, NotFound
from hermes_ws.contract.methods.prompts import SubmitParams
from hermes_ws.contract.methods.schedules import CreateScheduleParams, ScheduleRow
from hermes_ws.contract.methods.sessions import CreateParams
from hermes_ws.hosting.timers import Fired, Timer, Timers
from hermes_ws.journal.database import Database, Transaction
from hermes_ws.session.identifiers import MAIN_THREAD
from hermes_ws.session.sessions import Sessions
from hermes_ws.wire.frames import encode

KIND: Final = "schedule"

PRINCIPAL: Final = "schedule"
"""Who submits the inputs; receipts and logs name it."""

SOURCE: Final = "schedule"
"""Where a session says that it was started from."""

MOST: Final = 1000
"""Schedules of one profile."""

MISSED_AFTER_S: Final = 120.0
"""Seconds after which a run counts as missed: the profile was not up, or the machine slept."""

State = Literal["active", "paused", "done"]


@final
class Schedules:
    """The schedules of one open profile."""

    def __init__(
        self,
        journal: Database,
        timers: Timers,
        sessions: Callable[[], Sessions],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._journal = journal
        self._timers = timers
        self._sessions = sessions
        self._clock = clock
        timers.handle(KIND, self._fire, _again)

    async def create(self, params: CreateScheduleParams) -> ScheduleRow:
        """Make one; durable when this returns.

        Raises `InvalidParams` for a time that is none, `SessionUnknown`, `NotFound` for an agent, `LimitReached`.
        """
        plan = cast("dict[str, JsonValue]", params.model_dump(mode="json", exclude={"profile"}))
        due = following(plan, self._clock())
        if due is None:
            raise InvalidParams("That time has passed, or never comes.", path="at" if params.at is not None else "cron")
        if params.session_id is not None:
            await self._sessions().get(params.session_id)
        schedule_id = f"sched-{secrets.token_hex(6)}"

        def work(tx: Transaction) -> None:
            count = int(tx.connection.execute("SELECT count(*) FROM schedule").fetchone()[0])
            if count >= MOST:
                raise LimitReached(f"A profile has at most {MOST} schedules.", limit=MOST)
            tx.connection.execute(
                "INSERT INTO schedule (schedule_id, plan, state, created_at) VALUES (?, ?, 'active', ?)",
                (schedule_id, encode(plan).decode(), tx.now),
            )
            self._timers.set_in(tx, _timer(schedule_id, due, plan))

        await self._journal.transact(work)
        return await self.get(schedule_id)

    async def list(self) -> list[ScheduleRow]:
        """All of them, oldest first."""
        return await self._journal.read(_all)

    async def get(self, schedule_id: str) -> ScheduleRow:
        """One of them. Raises `NotFound`."""
        found = await self._journal.read(lambda connection: _find(connection, schedule_id))
        if found is None:
            raise _unknown(schedule_id)
        return found

    async def pause(self, schedule_id: str) -> ScheduleRow:
        """Stop it; a paused one stays so. Raises `NotFound`."""
        return await self._turn(schedule_id, "paused")

    async def resume(self, schedule_id: str) -> ScheduleRow:
        """Let it go on from its next time; what came due while it was paused does not run. Raises `NotFound`."""
        return await self._turn(schedule_id, "active")

    async def delete(self, schedule_id: str) -> bool:
        """Remove it; false when there is none (any more)."""

        def work(tx: Transaction) -> bool:
            self._timers.cancel_in(tx, _timer_id(schedule_id))
            gone = tx.connection.execute("DELETE FROM schedule WHERE schedule_id = ?", (schedule_id,))
            return gone.rowcount > 0

        return await self._journal.transact(work)

    async def run(self, schedule_id: str) -> ScheduleRow:
        """Submit its prompt now, whatever its state. Raises `NotFound`, and what submitting raises."""
        row = await self.get(schedule_id)
        session_id = await self._submit(row, f"{schedule_id}-now-{secrets.token_hex(6)}")
        await self._remember(schedule_id, session_id, "")
        return await self.get(schedule_id)

    # --- within ------------------------------------------------------------------------------------------------------

    async def _fire(self, fired: Fired) -> None:
        schedule_id = str(fired.timer.payload["schedule_id"])
        row = await self._journal.read(lambda connection: _find(connection, schedule_id))
        if row is None or row.state != "active":
            return
        if row.missed == "skip" and fired.late_s > MISSED_AFTER_S:
            await self._remember(schedule_id, None, f"Skipped: it was due {fired.late_s:.0f} s ago.")
            return
        try:
            # The id follows from the time that it was due: however often this is tried, one input is admitted.
            session_id = await self._submit(row, f"{schedule_id}-{fired.timer.due:.3f}")
        except HermesError as error:
            await self._remember(schedule_id, None, f"{error.message} {error.hint}".strip())
        else:
            await self._remember(schedule_id, session_id, "")

    async def _submit(self, row: ScheduleRow, input_id: str) -> str:
        sessions = self._sessions()
        if row.session_id is not None:
            session = await sessions.get(row.session_id)
        else:
            made = CreateParams(agent=row.agent, title=row.title, source=SOURCE, request_id=input_id)
            session, _ = await sessions.create(made, PRINCIPAL)
        thread = await session.thread(MAIN_THREAD)
        params = SubmitParams(
            session_id=session.session_id, input_id=input_id, text=row.prompt, finite=True, unattended=True
        )
        await thread.submit(params, PRINCIPAL)
        return session.session_id

    async def _remember(self, schedule_id: str, session_id: str | None, problem: str) -> None:
        def work(tx: Transaction) -> None:
            row = _find(tx.connection, schedule_id)
            if row is None:
                return
            ran = session_id is not None
            last = {
                "at": tx.now if ran else row.last_at,
                "session_id": session_id if ran else row.last_session_id,
                "problem": problem,
                "runs": row.runs + ran,
            }
            state: State = "done" if row.at is not None and row.state == "active" and row.next_at is None else row.state
            tx.connection.execute(
                "UPDATE schedule SET last = ?, state = ? WHERE schedule_id = ?",
                (encode(last).decode(), state, schedule_id),
            )

        await self._journal.transact(work)

    async def _turn(self, schedule_id: str, state: State) -> ScheduleRow:
        def work(tx: Transaction) -> None:
            row = tx.connection.execute(
                "SELECT plan, state FROM schedule WHERE schedule_id = ?", (schedule_id,)
            ).fetchone()
            if row is None:
                raise _unknown(schedule_id)
            plan, before = cast("dict[str, JsonValue]", orjson.loads(row[0])), row[1]
            if before == state:
                return
            due = following(plan, self._clock()) if state == "active" else None
            if due is None:
                self._timers.cancel_in(tx, _timer_id(schedule_id))
            else:
                self._timers.set_in(tx, _timer(schedule_id, due, plan))
            after: State = "done" if state == "active" and due is None else state
            tx.connection.execute("UPDATE schedule SET state = ? WHERE schedule_id = ?", (after, schedule_id))

        await self._journal.transact(work)
        return await self.get(schedule_id)


def following(plan: Mapping[str, JsonValue], now: float, before: float | None = None) -> float | None:
    """When a plan is due next after `now`; None for never. `before` is when it was due last, which `every_s` counts on
    from. Raises `InvalidParams` for an expression or a time zone that is none.
    """
    at, every, cron = plan.get("at"), plan.get("every_s"), plan.get("cron")
    if isinstance(at, int | float):
        return float(at) if at > now and before is None else None
    if isinstance(every, int):
        start = now if before is None else before
        return start + every * (int((now - start) // every) + 1)
    try:
        zone = ZoneInfo(str(plan.get("timezone", "UTC")))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidParams("There is no such time zone.", path="timezone") from None
    try:
        return next(CronSim(str(cron), datetime.fromtimestamp(now, zone))).timestamp()
    except CronSimError as problem:
        raise InvalidParams(f"The cron expression cannot be read: {problem}.", path="cron") from None
    except StopIteration:
        return None


def _again(timer: Timer, now: float) -> float | None:
    """When the timer of a schedule is due after it has fired."""
    plan = timer.payload.get("plan")
    try:
        return following(plan, now, timer.due) if isinstance(plan, dict) else None
    except InvalidParams:
        return None  # It could be read when it was made: the machine's time zones have changed since.


def _timer(schedule_id: str, due: float, plan: Mapping[str, JsonValue]) -> Timer:
    times: dict[str, JsonValue] = {name: plan.get(name) for name in ("at", "every_s", "cron", "timezone")}
    return Timer(_timer_id(schedule_id), KIND, due, {"schedule_id": schedule_id, "plan": times})


def _timer_id(schedule_id: str) -> str:
    return f"{KIND}:{schedule_id}"


_SELECT: Final = (
    "SELECT s.schedule_id, s.plan, s.state, s.last, s.created_at, t.due FROM schedule s"
    " LEFT JOIN timer t ON t.timer_id = 'schedule:' || s.schedule_id"
)


def _all(connection: sqlite3.Connection) -> list[ScheduleRow]:
    return [_row(*row) for row in connection.execute(f"{_SELECT} ORDER BY s.created_at, s.schedule_id")]


def _find(connection: sqlite3.Connection, schedule_id: str) -> ScheduleRow | None:
    row = connection.execute(f"{_SELECT} WHERE s.schedule_id = ?", (schedule_id,)).fetchone()
    return None if row is None else _row(*row)


def _row(
    schedule_id: str, plan: str, state: State, last: str | None, created_at: float, due: float | None
) -> ScheduleRow:
    done = cast("dict[str, JsonValue]", orjson.loads(last)) if last is not None else {}
    return ScheduleRow.model_validate(
        {
            **orjson.loads(plan),
            "schedule_id": schedule_id,
            "state": state,
            "next_at": due,
            "last_at": done.get("at"),
            "last_session_id": done.get("session_id"),
            "last_problem": done.get("problem", ""),
            "runs": done.get("runs", 0),
            "created_at": created_at,
        }
    )


def _unknown(schedule_id: str) -> NotFound:
    return NotFound(f"This profile has no schedule {schedule_id[:100]}.", hint="schedule.list names those there are.")
