"""What was done and consumed, in numbers."""

from __future__ import annotations

from hermes_ws.contract.content import Message, Usage
from hermes_ws.journal import admissions, insights, messages, replacement, sessions, spending, threads
from hermes_ws.journal.admissions import NewAdmission
from hermes_ws.journal.database import Database, ThreadKey, Transaction
from hermes_ws.journal.insights import Consumption
from tests.journal.conftest import NEW, Opener

KEY = ThreadKey("ses-1", "main")
FORK = ThreadKey("ses-1", "fork")
PRICED = Usage(input_tokens=10, output_tokens=5, cached_tokens=2, cost_usd=0.25, model="large", duration_ms=40)
FREE = Usage(input_tokens=1, model="local")
DAY = insights.DAY_S


def run(tx: Transaction, input_id: str, usage: Usage | None, key: ThreadKey = KEY) -> None:
    admissions.admit(tx, NewAdmission(key, "owner", input_id, "digest", "Hello"))
    started = admissions.claim(tx, key)
    assert started is not None
    assert started.execution_generation is not None
    if usage is not None:
        admissions.settle(tx, key, started.execution_generation, "completed", usage=usage)


async def test_a_report_adds_up_all_and_by_day(open_home: Opener) -> None:
    now = [3 * DAY]
    journal = await open_home(clock=lambda: now[0])
    await journal.transact(lambda tx: sessions.create(tx, NEW))
    await journal.transact(lambda tx: run(tx, "in-1", PRICED))
    now[0] = 4 * DAY
    await journal.transact(lambda tx: run(tx, "in-2", FREE))
    await journal.transact(lambda tx: spending.keep(tx, KEY, PRICED))
    now[0] = 5 * DAY
    await journal.transact(lambda tx: spending.keep(tx, KEY, FREE))
    await journal.transact(lambda tx: run(tx, "in-3", None))

    report = await journal.read(lambda connection: insights.since(connection, 0))
    assert (report.sessions, report.messages) == (1, 3)
    total = report.total
    assert (total.executions, total.outcomes) == (3, {"completed": 2, "running": 1})
    assert (total.input_tokens, total.output_tokens, total.cached_tokens, total.duration_ms) == (22, 10, 4, 80)
    assert (total.cost_usd, total.models) == (0.5, {"large": 2, "local": 2})
    days = [(day, each.executions, each.input_tokens, each.cost_usd) for day, each in report.days]
    assert days == [("1970-01-04", 1, 10, 0.25), ("1970-01-05", 1, 11, 0.25), ("1970-01-06", 1, 1, None)]

    later = await journal.read(lambda connection: insights.since(connection, 4 * DAY))
    assert (later.sessions, later.total.executions, later.total.input_tokens) == (0, 2, 12)
    assert [day for day, _ in later.days] == ["1970-01-05", "1970-01-06"]


async def test_a_session_has_consumed_what_its_threads_and_summaries_did(journal: Database) -> None:
    def work(tx: Transaction) -> None:
        threads.ensure(tx, FORK, "fork")
        run(tx, "in-1", PRICED)
        run(tx, "in-2", FREE, FORK)
        spending.keep(tx, FORK, PRICED)
        sessions.create(tx, sessions.NewSession("ses-2", None, "default", "/home/user", "api", "owner", "digest"))
        run(tx, "in-3", PRICED, ThreadKey("ses-2", "main"))

    await journal.transact(work)
    consumed = await journal.read(lambda connection: insights.of_session(connection, "ses-1"))
    assert (consumed.executions, consumed.input_tokens, consumed.cost_usd) == (2, 21, 0.5)
    assert await journal.read(lambda connection: insights.of_session(connection, "none")) == Consumption()


async def test_what_is_gone_counts_nothing_and_an_edit_takes_nothing_back(journal: Database) -> None:
    await journal.transact(lambda tx: spending.keep(tx, ThreadKey("ses-1", "gone"), PRICED))
    await journal.transact(lambda tx: spending.keep(tx, KEY, FREE))
    kept = [Message(message_id=messages.new_id(), role="user", text="what is left")]
    await journal.transact(lambda tx: replacement.replace(tx, KEY, kept))
    consumed = await journal.read(lambda connection: insights.of_session(connection, "ses-1"))
    assert (consumed.executions, consumed.input_tokens, consumed.models) == (0, 1, {"local": 1})
