"""What a server that was killed leaves behind, and how the next one goes on."""

from __future__ import annotations

import pytest

from hermes_ws.contract.errors import UnknownExecution
from hermes_ws.contract.methods.prompts import ReceiptParams
from hermes_ws.contract.methods.sessions import ListParams
from hermes_ws.journal import admissions
from hermes_ws.wire.cursor import Cursor
from tests.session.house import OWNER, House, Viewer, leave_behind, say


async def test_a_lost_execution_is_reported_and_nothing_is_repeated_on_a_guess(house: House) -> None:
    left = await leave_behind(house)

    async with house.served():
        runtime = await house.runtime()
        session = await runtime.sessions.get(left.session_id)
        thread = await session.thread("main")
        viewer = await Viewer.of(thread, Cursor(1, 0))
        lost = await viewer.until("execution.lost")
        assert lost["payload"] == {"admission_id": left.running, "execution_generation": 1}
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
        thread = await (await runtime.sessions.get(left.session_id)).thread("main")
        viewer = await Viewer.of(thread)
        admitted = await say(thread, "/do say three", "three")
        assert admitted.status == "queued"
        with pytest.raises(UnknownExecution):
            await say(thread, "/do say four", "four", mode="reject")
        await runtime.sessions.wait_until_idle()
        assert thread.active is None
        await runtime.journal.transact(lambda tx: admissions.resolve_unknown(tx, thread.key, left.running))
        thread.wake()
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
            "request.opened",
            "request.settled",
            "execution.lost",
        ]
        assert page.events[5].payload["state"] == "abandoned"
