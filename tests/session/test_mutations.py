"""Edits of a session: checked in order, carried out once, told to everybody, and kept as a whole or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_ws.contract.errors import (
    AdmissionConflict,
    ConsentRequired,
    InvalidParams,
    NotFound,
    RevisionConflict,
    SessionBusy,
    SessionUnknown,
    StaleGeneration,
    ThreadUnknown,
    UnknownExecution,
    UnknownParameter,
)
from hermes_ws.contract.methods.mutations import Mutated, MutateParams
from hermes_ws.contract.methods.sessions import ListParams
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal import messages
from hermes_ws.session import operations
from hermes_ws.session.mutations import Operation
from hermes_ws.session.session import Session
from hermes_ws.session.thread import Thread
from hermes_ws.wire.cursor import Cursor
from tests.session.house import OWNER, House, Viewer, leave_behind, new_session, say


class Editor:
    """Edits one session as a client does that knows its revision."""

    def __init__(self, runtime: ProfileRuntime, session: Session) -> None:
        self.runtime = runtime
        self.session_id = session.session_id
        self.revision = 1
        self.number = 0

    def params(self, operation: str, payload: dict[str, Any] | None = None, **given: Any) -> MutateParams:
        self.number += 1
        said: dict[str, Any] = {
            "session_id": self.session_id,
            "request_id": f"{self.session_id}-{self.number}",
            "expected_revision": self.revision,
            "operation": operation,
            "payload": payload or {},
        }
        return MutateParams(**{**said, **given})

    async def send(self, params: MutateParams, principal: str = OWNER) -> Mutated:
        done = await self.runtime.sessions.mutate(params, principal)
        self.revision = done.revision
        return done

    async def edit(self, operation: str, payload: dict[str, Any] | None = None, **given: Any) -> Mutated:
        return await self.send(self.params(operation, payload, **given))

    async def agreed(self, operation: str, payload: dict[str, Any]) -> Mutated:
        """As a person does who was asked, and said yes."""
        params = self.params(operation, payload)
        with pytest.raises(ConsentRequired) as asked:
            await self.send(params)
        return await self.send(params.model_copy(update={"consent": asked.value.data["consent"]}))


async def conversation(runtime: ProfileRuntime, inputs: int = 2) -> tuple[Editor, Thread, Viewer]:
    session, thread, viewer = await new_session(runtime, title="before")
    for number in range(inputs):
        await say(thread, f"/do say answer {number}", f"input-{number}")
        await viewer.until("execution.finished", outcome="completed")
    return Editor(runtime, session), thread, viewer


async def texts(thread: Thread) -> list[str]:
    told = (await thread.snapshot(None, messages=True)).messages
    assert told is not None
    return [message.text.strip() for message in told]


async def test_a_renamed_session_is_called_so_everywhere(runtime: ProfileRuntime) -> None:
    editor, thread, viewer = await conversation(runtime, 0)
    done = await editor.edit("rename", {"title": "after"})
    assert (done.revision, done.result) == (2, {"title": "after"})
    told = await viewer.until("session.info")
    assert told["payload"]["revision"] == 2
    assert told["payload"]["info"]["title"] == "after"
    snapshot = await thread.snapshot(None, None)
    assert (snapshot.revision, snapshot.info["title"]) == (2, "after")
    assert snapshot.info == told["payload"]["info"]
    assert (await runtime.sessions.find(title="after")).session_id == editor.session_id
    await editor.edit("rename", {"title": None})
    assert (await thread.snapshot(None, None)).info["title"] is None


async def test_archived_sessions_leave_the_list_and_pinned_ones_lead_it(runtime: ProfileRuntime) -> None:
    first, _, _ = await conversation(runtime, 0)
    second, _, _ = await conversation(runtime, 0)
    third, _, _ = await conversation(runtime, 0)
    await second.edit("archive")
    await first.edit("pin")
    listed = await runtime.sessions.list(ListParams())
    assert [row.session_id for row in listed.sessions] == [first.session_id, third.session_id]
    assert [row.pinned for row in listed.sessions] == [True, False]
    page = await runtime.sessions.list(ListParams(limit=1))
    rest = await runtime.sessions.list(ListParams(limit=1, before=page.next))
    assert [row.session_id for row in rest.sessions] == [third.session_id]
    archived = await runtime.sessions.list(ListParams(archived=True))
    assert [row.session_id for row in archived.sessions] == [second.session_id]
    await second.edit("archive", {"archived": False})
    await first.edit("pin", {"pinned": False})
    assert len((await runtime.sessions.list(ListParams())).sessions) == 3


async def test_a_reset_conversation_begins_anew_for_those_who_watch_it(runtime: ProfileRuntime) -> None:
    editor, thread, viewer = await conversation(runtime)
    done = await editor.edit("reset")
    assert done.result == {"generation": 2}
    rebased = await viewer.until("thread.rebased")
    assert (rebased["cursor"], rebased["payload"]) == ("2:1", {"generation": 2})
    await viewer.until("session.info")
    assert await texts(thread) == []
    await say(thread, "/do say again", "again")
    await viewer.until("execution.finished", outcome="completed")
    assert await texts(thread) == ["/do say again", "again"]
    stood = await thread.snapshot(Cursor(1, 3), None)
    assert (stood.position, stood.generation) == ("rebased", 2)


async def test_rewinding_takes_back_with_consent_and_gives_the_words_for_editing(runtime: ProfileRuntime) -> None:
    editor, thread, viewer = await conversation(runtime, 3)
    history = await runtime.journal.read(lambda connection: messages.stored(connection, thread.key))
    second = history[2]
    with pytest.raises(NotFound):
        await editor.agreed("rewind", {"message_id": history[1].message_id})
    done = await editor.agreed("rewind", {"message_id": second.message_id})
    assert done.result == {"generation": 2, "text": "/do say answer 1", "removed": 4}
    await viewer.until("thread.rebased")
    assert (await viewer.until("message.complete"))["payload"]["message_id"] == history[0].message_id
    assert await texts(thread) == ["/do say answer 0", "answer 0"]


async def test_consent_counts_for_what_was_asked_and_nothing_else(runtime: ProfileRuntime) -> None:
    editor, thread, _ = await conversation(runtime)
    history = await runtime.journal.read(lambda connection: messages.stored(connection, thread.key))
    first, second = (editor.params("rewind", {"message_id": history[at].message_id}) for at in (0, 2))
    with pytest.raises(ConsentRequired) as asked:
        await editor.send(first)
    token = asked.value.data["consent"]
    with pytest.raises(ConsentRequired):
        await editor.send(second.model_copy(update={"consent": token}))
    await editor.edit("rename", {"title": "edited meanwhile"})
    with pytest.raises(ConsentRequired):
        await editor.send(first.model_copy(update={"consent": token, "expected_revision": editor.revision}))
    assert len(await texts(thread)) == 4


async def test_a_branch_is_a_session_of_its_own_with_the_same_beginning(runtime: ProfileRuntime) -> None:
    editor, thread, _ = await conversation(runtime)
    history = await runtime.journal.read(lambda connection: messages.stored(connection, thread.key))
    with pytest.raises(NotFound):
        await editor.edit("branch", {"through_message_id": "msg-none"})
    through = history[1].message_id
    done = await editor.edit("branch", {"through_message_id": through, "title": "another way"})
    made = await runtime.sessions.get(str(done.result["session_id"]))
    branched = await made.thread("main")
    assert done.result["messages"] == 2
    assert await texts(branched) == await texts(thread) or (await texts(branched)) == (await texts(thread))[:2]
    assert made.record.title == "another way"
    assert runtime.sessions.stored == 2
    viewer = await Viewer.of(branched, Cursor(1, 0))
    await say(branched, "/do say apart", "apart")
    await viewer.until("execution.finished", outcome="completed")
    assert len(await texts(branched)) == 4
    assert len(await texts(thread)) == 4
    assert done.result["cursor"] == "1:2"


async def test_an_import_replaces_the_conversation(runtime: ProfileRuntime) -> None:
    editor, thread, viewer = await conversation(runtime)
    brought = [{"role": "user", "text": "from elsewhere"}, {"role": "assistant", "text": "indeed"}]
    done = await editor.edit("import", {"messages": brought})
    assert done.result == {"generation": 2, "messages": 2}
    await viewer.until("thread.rebased")
    assert await texts(thread) == ["from elsewhere", "indeed"]


async def test_a_deleted_session_is_gone_and_its_viewers_are_told(runtime: ProfileRuntime) -> None:
    editor, thread, _ = await conversation(runtime)
    params = editor.params("delete")
    done = await editor.send(params)
    assert thread.tail.farewell is not None
    assert b'"reason":"deleted"' in thread.tail.farewell.json
    with pytest.raises(SessionUnknown):
        await runtime.sessions.get(editor.session_id)
    with pytest.raises(ThreadUnknown):
        await say(thread, "/do say never", "never")
    assert runtime.sessions.stored == 0
    # A repeated request is answered, though there is no such session any more.
    assert await editor.send(params) == done
    with pytest.raises(SessionUnknown):
        await editor.edit("rename", {"title": "too late"})


async def test_a_repeated_request_gets_the_stored_answer_and_is_not_carried_out_again(
    house: House,
) -> None:
    async with house.served():
        editor, thread, _ = await conversation(await house.runtime(), 1)
        params = editor.params("reset")
        done = await editor.send(params)
        assert await editor.send(params) == done
        assert (await thread.snapshot(None, None)).generation == 2
        with pytest.raises(AdmissionConflict):
            await editor.send(params.model_copy(update={"operation": "archive"}))
    async with house.served():
        editor.runtime = await house.runtime()
        assert await editor.send(params) == done
        # Another principal's request of the same id is another request.
        with pytest.raises(RevisionConflict):
            await editor.send(params, "somebody else")


async def test_the_checks_come_in_their_order(runtime: ProfileRuntime) -> None:
    editor, thread, viewer = await conversation(runtime, 1)
    await say(thread, "/do wait 1000", "busy")
    await viewer.until("execution.started")
    with pytest.raises(RevisionConflict) as conflict:
        await editor.edit("reset", expected_revision=7, expected_generation=9)
    assert conflict.value.data["revision"] == 1
    with pytest.raises(StaleGeneration) as stale:
        await editor.edit("reset", expected_generation=9)
    assert stale.value.data["active"] == 2
    for operation in ("reset", "delete", "import", "rewind"):
        payloads = {"import": {"messages": [{"role": "user", "text": "x"}]}, "rewind": {"message_id": "msg-1"}}
        with pytest.raises(SessionBusy):
            await editor.edit(operation, payloads.get(operation, {}), expected_generation=2)
    with pytest.raises(ThreadUnknown):
        await editor.edit("reset", thread_id="another")
    with pytest.raises(InvalidParams, match="There is no operation"):
        await editor.edit("explode")
    with pytest.raises(UnknownParameter):
        await editor.edit("rename", {"name": "x", "title": "y"})
    # What does not touch the conversation need not wait for it.
    await editor.edit("rename", {"title": "while it runs"})
    assert thread.active is not None
    thread.interrupt(2)
    await runtime.sessions.wait_until_idle()
    await editor.edit("reset", expected_generation=2)


async def test_a_lost_execution_is_resolved_before_its_history_is_edited(house: House) -> None:
    left = await leave_behind(house)
    async with house.served():
        runtime = await house.runtime()
        editor = Editor(runtime, await runtime.sessions.get(left.session_id))
        with pytest.raises(UnknownExecution):
            await editor.edit("reset")
        await editor.edit("rename", {"title": "still lost"})


async def test_an_edit_that_fails_leaves_nothing(runtime: ProfileRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    editor, thread, _ = await conversation(runtime, 1)

    def fail(*_: object) -> dict[str, Any]:
        operations.replacement.replace(_[0].tx, thread.key, ())  # type: ignore[attr-defined]
        raise NotFound("half-way")

    rows = {**operations.OPERATIONS, "reset": Operation("reset", fail, idle="thread")}
    monkeypatch.setattr(runtime.sessions._mutations, "_operations", rows)
    params = editor.params("reset")
    with pytest.raises(NotFound):
        await editor.send(params)
    assert len(await texts(thread)) == 2
    monkeypatch.undo()
    assert (await editor.send(params)).revision == 2


async def test_what_an_operation_prepares_is_there_when_it_is_applied(
    runtime: ProfileRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor, _, _ = await conversation(runtime, 0)
    prepared: list[str] = []

    async def prepare(preparation: Any, payload: Any) -> str:
        prepared.append(preparation.session.title)
        return f"{preparation.session.title}, summed up"

    def apply(change: Any, payload: Any) -> dict[str, Any]:
        change.columns["title"] = change.prepared
        return {}

    rows = {**operations.OPERATIONS, "rename": Operation("rename", apply, prepare=prepare)}
    monkeypatch.setattr(runtime.sessions._mutations, "_operations", rows)
    params = editor.params("rename", {"title": "x"})
    done = await editor.send(params)
    assert await editor.send(params) == done
    assert prepared == ["before"]
    assert (await runtime.sessions.find(title="before, summed up")).session_id == editor.session_id
    with pytest.raises(RevisionConflict):
        await editor.edit("rename", {"title": "x"}, expected_revision=1)
    assert prepared == ["before"]


def test_every_operation_has_a_payload_and_every_payload_an_operation() -> None:
    with pytest.raises(ImportError, match="differ"):
        operations.table((Operation("rename", operations.rename),))


async def test_a_closed_session_is_put_away_and_can_be_opened_again(runtime: ProfileRuntime) -> None:
    session, thread, viewer = await new_session(runtime)
    await say(thread, "/do wait 1000", "busy")
    await viewer.until("execution.started")
    with pytest.raises(SessionBusy):
        await runtime.sessions.close(session.session_id)
    thread.interrupt(1)
    await runtime.sessions.wait_until_idle()
    assert (await runtime.sessions.close(session.session_id)).closed
    assert thread.tail.farewell is not None
    assert b'"reason":"closed"' in thread.tail.farewell.json
    assert not (await runtime.sessions.close(session.session_id)).closed
    with pytest.raises(SessionUnknown):
        await runtime.sessions.close("none-1")
    again = await runtime.sessions.get(session.session_id)
    assert again is not session
    thread = await again.thread("main")
    viewer = await Viewer.of(thread)
    await say(thread, "/do say hello again", "two")
    await viewer.until("message.delta")
    await viewer.until("execution.finished", outcome="completed")
