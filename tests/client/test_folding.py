"""The fold of events onto a snapshot, and the end of a following at an event that cannot be read."""

from __future__ import annotations

import anyio
import pytest

from hermes_ws.client.failures import EventUnreadable
from hermes_ws.client.folding import advance, fold
from hermes_ws.client.follow import Away, Resumed, follow
from hermes_ws.client.link import Link
from hermes_ws.contract.events import Envelope
from hermes_ws.contract.methods.connection import GATEWAY_PING
from hermes_ws.contract.methods.threads import Snapshot
from hermes_ws.contract.model import Empty
from tests.client.peer import Peer
from tests.client.test_follow import made, over, say

EMPTY = Snapshot.model_validate(
    {
        "session_id": "s",
        "thread_id": "main",
        "profile": "work",
        "position": "fresh",
        "generation": 1,
        "cursor": "1:0",
        "execution": None,
        "questions": [],
        "pending": [],
        "messages": [],
        "revision": 1,
        "info": {},
    }
)


def event(
    seq: int | None, type: str, *, generation: int = 1, admission: str | None = "adm-1", **payload: object
) -> Envelope:
    said = {
        "type": type,
        "session_id": "s",
        "thread_id": "main",
        "ts": 5.0,
        "payload": payload,
        "admission_id": admission,
    }
    place = {} if seq is None else {"cursor": f"{generation}:{seq}", "seq": seq}
    return Envelope.model_validate({**said, **place})


QUEUED = event(1, "execution.queued", admission_id="adm-1", input_id="i", text="x" * 3000)
STARTED = event(2, "execution.started", admission_id="adm-1", execution_generation=1)
BEGUN = event(3, "message.start", message_id="m", role="assistant")
WHOLE = event(4, "message.complete", message_id="m", role="assistant", text="hello", content=[])
FINISHED = event(5, "execution.finished", outcome="completed", usage={})


def folded(*events: Envelope, onto: Snapshot = EMPTY) -> Snapshot:
    for each in events:
        onto = fold(onto, each)
    return onto


def delta(offset: int, text: str) -> Envelope:
    return event(None, "message.delta", message_id="m", offset=offset, text=text)


def test_a_turn_goes_through_the_states_that_a_server_would_tell() -> None:
    queued = folded(QUEUED)
    assert [(row.status, len(row.text)) for row in queued.pending] == [("queued", 2000)]
    running = folded(STARTED, onto=queued)
    assert running.execution is not None
    assert (running.execution.started_at, running.execution.state) == (5.0, "running")
    assert [(row.status, row.execution_generation) for row in running.pending] == [("started", 1)]
    speaking = folded(BEGUN, delta(0, "hel"), delta(3, "lo"), onto=running)
    assert speaking.in_progress is not None
    assert speaking.in_progress.text == "hello"
    done = folded(WHOLE, FINISHED, onto=speaking)
    assert (done.execution, done.in_progress, done.pending, done.cursor) == (None, None, [], "1:5")
    assert [message.text for message in done.messages or []] == ["hello"]


def test_the_fold_changes_nothing_of_what_it_is_given() -> None:
    before = EMPTY.model_dump_json()
    folded(QUEUED, STARTED, BEGUN, delta(0, "x"), WHOLE, FINISHED)
    assert EMPTY.model_dump_json() == before


def test_an_event_that_was_folded_already_changes_nothing() -> None:
    state = folded(QUEUED, STARTED, BEGUN)
    assert folded(QUEUED, STARTED, BEGUN, onto=state) == state


def test_a_gap_is_never_folded_over() -> None:
    with pytest.raises(EventUnreadable, match="others are missing") as told:
        folded(QUEUED, BEGUN)
    assert told.value.cursor == "1:1"
    with pytest.raises(EventUnreadable, match="others are missing"):
        fold(EMPTY, event(3, "notice", generation=2))


def test_an_unknown_event_moves_the_cursor_and_nothing_else() -> None:
    assert fold(EMPTY, event(1, "of.a.later.version")) == EMPTY.model_copy(update={"cursor": "1:1"})


def test_a_known_event_of_another_shape_is_not_guessed_at() -> None:
    with pytest.raises(EventUnreadable, match=r"execution\.queued after 1:1"):
        fold(EMPTY, event(1, "execution.queued", admission_id=7))


def test_text_that_was_missed_is_right_again_with_the_whole() -> None:
    state = folded(QUEUED, STARTED, BEGUN, delta(0, "he"), delta(4, "o"))
    assert state.in_progress is not None
    assert state.in_progress.text == "he"
    assert folded(delta(1, "el"), onto=state).in_progress == state.in_progress.model_copy(update={"text": "hel"})
    assert folded(event(None, "message.delta", message_id="other", offset=0, text="x"), onto=state) == state


def test_an_open_question_makes_its_execution_wait() -> None:
    asked = {"id": "srq-1", "kind": "approval", "execution_generation": 1, "params": {}, "asked_at": 5.0}
    waiting = folded(QUEUED, STARTED, event(3, "request.opened", **asked))
    assert waiting.execution is not None
    assert waiting.execution.state == "waiting"
    going = folded(event(4, "request.settled", id="srq-1", kind="approval", state="settled"), onto=waiting)
    assert going.execution is not None
    assert (going.execution.state, going.questions) == ("running", [])


@pytest.mark.parametrize(("resumes", "status"), [(True, "queued"), (False, "unknown")])
def test_a_lost_execution_waits_for_its_second_run_or_for_a_person(resumes: bool, status: str) -> None:
    lost = event(3, "execution.lost", admission_id="adm-1", execution_generation=1, resumes=resumes)
    state = folded(QUEUED, STARTED, lost)
    assert state.execution is None
    assert [row.status for row in state.pending] == [status]


def test_an_input_that_ends_without_an_execution_leaves_the_running_one() -> None:
    other = event(3, "execution.queued", admission="adm-2", admission_id="adm-2", input_id="j", text="y")
    ended = event(4, "execution.finished", admission="adm-2", outcome="cancelled", usage={})
    state = folded(QUEUED, STARTED, other, ended)
    assert state.execution is not None
    assert [row.admission_id for row in state.pending] == ["adm-1"]


def test_another_generation_begins_with_nothing() -> None:
    state = folded(QUEUED, STARTED, BEGUN, WHOLE)
    assert state.cursor == "1:4"
    rebased = Envelope.model_validate(
        {"type": "thread.rebased", "cursor": "2:1", "seq": 1, "ts": 6.0, "payload": {"generation": 2}}
    )
    anew = fold(state, rebased)
    assert (anew.generation, anew.cursor, anew.messages, anew.pending, anew.execution) == (2, "2:1", [], [], None)


def test_a_resume_keeps_what_the_client_has_and_takes_what_only_a_snapshot_tells() -> None:
    state = folded(QUEUED, STARTED, BEGUN, delta(0, "he"))
    assert advance(None, Resumed(EMPTY)) == EMPTY
    growing = {"message_id": "m", "text": "hello"}
    resumed = Snapshot.model_validate(
        {**EMPTY.model_dump(), "position": "ok", "cursor": "1:9", "in_progress": growing, "messages": None}
    )
    after = advance(state, Resumed(resumed))
    assert after is not None
    assert (after.cursor, after.pending) == (state.cursor, state.pending)
    assert after.in_progress is not None
    assert after.in_progress.text == "hello"
    gone = resumed.model_copy(update={"position": "rebased", "generation": 4, "cursor": "4:7"})
    anew = advance(state, Resumed(gone))
    assert anew is not None
    assert (anew.cursor, anew.generation, anew.messages) == ("4:0", 4, [])
    assert advance(state, Away(EventUnreadable(None, "x", "y"))) == state
    assert advance(None, QUEUED) is None


def test_over_a_real_connection_the_fold_ends_where_the_server_is(peer: Peer, backend: str) -> None:
    async def body(link: Link) -> None:
        created = await made(link)
        await say(link, created.session_id, "say hello", "i-1")
        state: Snapshot | None = None
        following = follow(link, created.session_id, after=created.cursor)
        async for item in following:
            state = advance(state, item)
            if isinstance(item, Envelope) and item.type == "execution.finished":
                break
        assert state is not None
        at = peer.conversations[created.session_id]
        assert (state.cursor, state.pending, state.questions) == (at.cursor, at.pending, [])

    over(peer, backend, body)


@pytest.mark.parametrize("broken", ["payload", "envelope"])
def test_an_event_that_cannot_be_read_ends_the_following_at_its_cursor(peer: Peer, backend: str, broken: str) -> None:
    """It is said, and said again: nothing is passed over, and the cursor stays where everything was handled."""

    async def body(link: Link) -> None:
        created = await made(link)
        following = follow(link, created.session_id, after="1:0")
        await anext(following)
        at = peer.conversations[created.session_id]
        bad: dict[str, object] = (
            {"payload": {"outcome": 7}} if broken == "payload" else {"payload": "text", "ts": "never"}
        )
        with peer.lock:
            told = {"session_id": created.session_id, "thread_id": "main", "cursor": "1:1", "seq": 1, "ts": 1.0}
            at.journal.append({"type": "execution.finished", **told, **bad})
        for ws in list(peer.connections):
            peer.send(ws, {"jsonrpc": "2.0", "method": "event", "params": at.journal[0]})
        for _ in range(2):
            with pytest.raises(EventUnreadable, match=r"execution\.finished after 1:0"):
                await anext(following)
        assert following.cursor == "1:0"
        # The connection and everything else on it goes on.
        gateway = await link.gateway()
        assert gateway.lost is None
        await gateway.call(GATEWAY_PING, Empty())

    over(peer, backend, body)


def test_after_the_session_was_closed_the_following_is_over(peer: Peer, backend: str) -> None:
    async def body(link: Link) -> None:
        created = await made(link)
        following = follow(link, created.session_id)
        await anext(following)
        named = {"session_id": created.session_id, "thread_id": "main", "ts": 1.0}
        farewell = {"type": "session.closed", **named, "payload": {"reason": "deleted"}}
        for ws in list(peer.connections):
            peer.send(ws, {"jsonrpc": "2.0", "method": "event", "params": farewell})
        with anyio.fail_after(10):
            seen = [item.type async for item in following if isinstance(item, Envelope)]
        assert seen == ["session.closed"]

    over(peer, backend, body)
