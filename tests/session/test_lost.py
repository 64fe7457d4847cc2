"""What a server that was killed leaves behind, and how the next one goes on."""

from __future__ import annotations

import pytest

from hermes_ws.contract.content import Message, ToolCallBlock, ToolResultBlock
from hermes_ws.contract.errors import NotFound, StaleGeneration, UnknownExecution
from hermes_ws.contract.events import ToolComplete, ToolStart
from hermes_ws.contract.methods.prompts import ReceiptParams, ResolveParams
from hermes_ws.contract.methods.sessions import ListParams
from hermes_ws.journal import messages, recovery
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.database import Database, Transaction
from hermes_ws.scope.home import ProfileHome
from hermes_ws.wire.cursor import Cursor
from tests.session.house import OWNER, House, Viewer, leave_behind, say


async def test_a_lost_execution_is_reported_and_nothing_is_repeated_on_a_guess(house: House) -> None:
    """REAP-03."""
    left = await leave_behind(house)

    async with house.served():
        runtime = await house.runtime()
        session = await runtime.sessions.get(left.session_id)
        thread = await session.thread("main")
        viewer = await Viewer.of(thread, Cursor(1, 0))
        lost = await viewer.until("execution.lost")
        assert lost["payload"] == {"admission_id": left.running, "execution_generation": 1, "resumes": False}
        receipt = await session.receipt(ReceiptParams(session_id=left.session_id, admission_id=left.running), OWNER)
        assert (receipt.status, receipt.outcome) == ("unknown", None)
        snapshot = await thread.snapshot(None, None)
        assert snapshot.execution is None
        assert [row.status for row in snapshot.pending] == ["unknown", "queued"]
        assert snapshot.questions == []
        listing = await runtime.sessions.list(ListParams())
        assert [row.state for row in listing.sessions] == ["lost"]


async def test_the_queue_behind_a_lost_execution_takes_inputs_and_waits(house: House) -> None:
    left = await leave_behind(house)

    async with house.served():
        runtime = await house.runtime()
        session = await runtime.sessions.get(left.session_id)
        thread = await session.thread("main")
        viewer = await Viewer.of(thread)
        admitted = await say(thread, "/do say three", "three")
        assert admitted.status == "queued"
        with pytest.raises(UnknownExecution):
            await say(thread, "/do say four", "four", mode="reject")
        await runtime.sessions.wait_until_idle()
        assert thread.active is None
        lost = ResolveParams(session_id=left.session_id, admission_id=left.running, execution_generation=1)
        with pytest.raises(StaleGeneration):
            await session.resolve_unknown(lost.model_copy(update={"execution_generation": 2}))
        with pytest.raises(NotFound):
            await session.resolve_unknown(lost.model_copy(update={"admission_id": "adm-none"}))
        assert (await session.resolve_unknown(lost)).status == "finished"
        assert (await session.resolve_unknown(lost)).status == "finished"
        for input_id in ("two", "three"):
            said = await viewer.until("message.complete", role="user")
            assert said["payload"]["text"] == f"/do say {input_id}"
            await viewer.until("execution.finished", outcome="completed")


async def test_a_client_that_resumes_sees_exactly_what_was_committed(house: House) -> None:
    left = await leave_behind(house)

    async with house.served():
        runtime = await house.runtime()
        thread = await (await runtime.sessions.get(left.session_id)).thread("main")
        page = await thread.events(Cursor(1, 0), 100)
        assert page.position == "ok"
        assert [event.seq for event in page.events] == list(range(1, len(page.events) + 1))
        assert [event.type for event in page.events] == [
            "execution.queued",
            "execution.queued",
            "execution.started",
            "message.complete",
            "tool.start",
            "request.opened",
            "request.settled",
            "execution.lost",
        ]
        assert page.events[6].payload["state"] == "abandoned"


async def test_an_execution_that_stood_at_a_safe_point_goes_on_as_the_same_input(house: House) -> None:
    left = await leave_behind(house, under_way=False)

    async with house.served():
        runtime = await house.runtime()
        session = await runtime.sessions.get(left.session_id)
        thread = await session.thread("main")
        viewer = await Viewer.of(thread, Cursor(1, 0))
        lost = await viewer.until("execution.lost")
        assert lost["payload"] == {"admission_id": left.running, "execution_generation": 1, "resumes": True}
        started = await viewer.until("execution.started")
        assert started["payload"] == {"admission_id": left.running, "execution_generation": 2}
        ended = await viewer.until("execution.finished", outcome="completed")
        assert ended["admission_id"] == left.running
        await viewer.until("execution.finished", outcome="completed")
        texts = [e["payload"]["text"].strip() for e in viewer.events if e["type"] == "message.complete"]
        assert texts == ["/do say one", "one", "/do say two", "two"]
        done = await session.receipt(ReceiptParams(session_id=left.session_id, admission_id=left.running), OWNER)
        assert (done.status, done.outcome, done.execution_generation) == ("finished", "completed", 2)
        assert [e["payload"]["state"] for e in viewer.events if e["type"] == "request.settled"] == ["abandoned"]


@pytest.mark.parametrize(
    ("config", "options", "before"),
    [
        ("agent:\n  after_crash: unknown\n", {}, 0),
        ("", {"finite": True}, 0),
        ("", {"finite": True, "unattended": True}, 0),
        ("", {}, 1),
    ],
    ids=["as configured", "finite", "unattended", "a second time"],
)
async def test_what_must_not_go_on_by_itself_waits_for_a_person(
    house: House, config: str, options: dict[str, bool], before: int
) -> None:
    house.home("default", config=config)
    left = await leave_behind(house, under_way=False, before=before, **options)

    async with house.served():
        runtime = await house.runtime()
        session = await runtime.sessions.get(left.session_id)
        receipt = await session.receipt(ReceiptParams(session_id=left.session_id, admission_id=left.running), OWNER)
        assert (receipt.status, receipt.execution_generation) == ("unknown", before + 1)
        await runtime.sessions.wait_until_idle()
        assert (await session.thread("main")).active is None


async def test_a_batch_that_was_broken_off_between_its_calls_is_told_as_it_was(house: House) -> None:
    left = await leave_behind(house, under_way=False)
    home = ProfileHome((house.root / "default").resolve())
    key = ThreadKey(left.session_id, "main")
    calls = [ToolCallBlock(call_id=f"call-{n}", name="terminal", arguments={"command": "make"}) for n in (1, 2)]

    def work(tx: Transaction) -> None:
        messages.add(tx, key, Message(message_id="msg-calls", role="assistant", text="", content=list(calls)))
        made = {"call_id": "call-1", "name": "terminal"}
        started = ToolStart.model_validate({**made, "arguments": {}})
        ended = ToolComplete.model_validate({**made, "output": "built", "is_error": False, "duration_ms": 1})
        tx.append(key, "tool.start", started, execution_generation=1)
        tx.append(key, "tool.complete", ended, execution_generation=1)

    database = await Database.open(home.path, home.database, home.lock, instance_id="before", profile="default")
    await database.transact(work)
    await database.close()

    async with house.served():
        runtime = await house.runtime()
        thread = await (await runtime.sessions.get(left.session_id)).thread("main")
        await runtime.sessions.wait_until_idle()
        told = await runtime.journal.read(lambda connection: messages.stored(connection, thread.key))
        (results,) = [message for message in told if message.role == "tool"]
        outputs = [(block.output, block.is_error) for block in results.content if isinstance(block, ToolResultBlock)]
        assert outputs == [("built", False), (recovery.NOT_STARTED, True)]
