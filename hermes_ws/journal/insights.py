"""What was done in a home, in numbers. Reads the executions, each of which keeps what it consumed, and what was
consumed beside them.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, final

import orjson

from hermes_ws.contract.content import Usage
from hermes_ws.journal import spending

DAY_S: Final = 86_400.0


@final
@dataclass(slots=True)
class Consumption:
    """Sums over executions, and what was consumed beside them. `cost_usd` is None as long as nothing had a price."""

    executions: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    duration_ms: int = 0
    models: Counter[str] = field(default_factory=Counter[str])
    outcomes: Counter[str] = field(default_factory=Counter[str])

    def add(self, usage: Usage, outcome: str | None) -> None:
        """Count one execution."""
        self.executions += 1
        self.outcomes[outcome or "running"] += 1
        self.spend(usage)

    def spend(self, usage: Usage) -> None:
        """Count what was consumed, and no execution."""
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.cached_tokens += usage.cached_tokens
        self.duration_ms += usage.duration_ms
        if usage.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + usage.cost_usd
        if usage.model:
            self.models[usage.model] += 1


@final
@dataclass(frozen=True, slots=True)
class Report:
    """What was begun since a moment: all of it, and by day (`YYYY-MM-DD` in UTC), the earliest first."""

    sessions: int
    messages: int
    total: Consumption
    days: tuple[tuple[str, Consumption], ...]


def since(connection: sqlite3.Connection, start: float) -> Report:
    """The report of everything that began at or after `start`, seconds since 1970."""
    sessions = _count(connection, "SELECT count(*) FROM session WHERE created_at >= ?", start)
    messages = _count(
        connection,
        "SELECT count(*) FROM message m JOIN thread t ON t.id = m.thread JOIN session s USING (session_id)"
        " WHERE s.updated_at >= ?",
        start,
    )
    total = Consumption()
    days: dict[str, Consumption] = {}
    rows = connection.execute(
        "SELECT started_at, usage, outcome FROM execution WHERE started_at >= ? ORDER BY started_at", (start,)
    )
    for started_at, usage, outcome in rows:
        for each in (total, days.setdefault(_day(started_at), Consumption())):
            each.add(_usage(usage), outcome)
    for at, spent in spending.since(connection, start):
        for each in (total, days.setdefault(_day(at), Consumption())):
            each.spend(spent)
    return Report(sessions, messages, total, tuple(sorted(days.items())))


def of_session(connection: sqlite3.Connection, session_id: str) -> Consumption:
    """What a session consumed: all its executions, those of its forks and subagents among them, and summaries that were
    made for a fork or an edit."""
    total = Consumption()
    rows = connection.execute(
        "SELECT e.usage, e.outcome FROM execution e JOIN thread t ON t.id = e.thread WHERE t.session_id = ?",
        (session_id,),
    )
    for usage, outcome in rows:
        total.add(_usage(usage), outcome)
    for spent in spending.of_session(connection, session_id):
        total.spend(spent)
    return total


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def _usage(stored: str | None) -> Usage:
    return Usage() if stored is None else Usage.model_validate(orjson.loads(stored))


def _count(connection: sqlite3.Connection, query: str, start: float) -> int:
    return int(connection.execute(query, (start,)).fetchone()[0])
