"""How an execution ends, whatever its turn does; and that its life follows the table."""

from __future__ import annotations

import pytest
import trio

from hermes_ws.agent.ports import Narrator
from hermes_ws.contract.content import Usage
from hermes_ws.contract.errors import ModelFailed, ModelRateLimited, StaleEpoch, StorageUnavailable
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal import admissions
from hermes_ws.session.execution import TRANSITIONS, State
from hermes_ws.session.narration import add_usage
from hermes_ws.wire.cursor import Cursor
from tests.journal.writes import Held
from tests.session.house import House, eventually, new_session, say

RUN_TURN = "hermes_ws.session.briefing.run_turn"


async def ended(runtime: ProfileRuntime) -> dict[str, object]:
    """Run one input, and tell how it ended."""
    _, thread, viewer = await new_session(runtime)
    await say(thread, "/do say hello", "one")
    return dict((await viewer.until("execution.finished"))["payload"])


@pytest.mark.parametrize(
    ("failure", "type"),
    [
        (ExceptionGroup("tools", [ModelFailed("one")]), "model_failed"),
        (ExceptionGroup("tools", [ExceptionGroup("deep", [ModelRateLimited("two")])]), "model_rate_limited"),
        (ExceptionGroup("tools", [ModelRateLimited("first"), ModelFailed("second")]), "model_rate_limited"),
        (ExceptionGroup("tools", [ModelFailed("foreseen"), ValueError("not")]), "internal"),
        (ExceptionGroup("tools", [ValueError("not")]), "internal"),
        (BaseExceptionGroup("tools", [ModelFailed("one")]), "model_failed"),
    ],
)
async def test_a_failure_is_told_by_what_explains_it(
    runtime: ProfileRuntime, monkeypatch: pytest.MonkeyPatch, failure: BaseException, type: str
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(RUN_TURN, fail)
    payload = await ended(runtime)
    assert payload["outcome"] == "failed"
    error = payload["error"]
    assert isinstance(error, dict)
    assert error["type"] == type


async def test_a_failure_while_the_profile_closes_is_an_interrupt(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail_when_cancelled(*_: object, **__: object) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("while it was cancelled")

    monkeypatch.setattr(RUN_TURN, fail_when_cancelled)
    monkeypatch.setattr("hermes_ws.session.sessions.Sessions.interrupt_all", lambda _: None)
    monkeypatch.setattr("hermes_ws.hosting.runtime.FINISH_WITHIN_S", 0)
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        await say(thread, "hello", "one")
        await viewer.until("execution.started")
        await eventually(lambda: thread.active is not None and thread.active.state is State.RUNNING)
    await viewer.pull()
    assert viewer.events[-1]["payload"]["outcome"] == "interrupted"


async def test_an_owner_that_was_replaced_writes_no_outcome(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def stale(*_: object) -> None:
        raise StaleEpoch("Another process owns this home now.")

    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        monkeypatch.setattr(admissions, "settle", stale)
        await say(thread, "/do say hello", "one")
        await viewer.until("message.complete", role="assistant")
        await runtime.sessions.wait_until_idle()
        assert thread.active is None
        assert "execution.finished" not in viewer.types()
    assert "execution.lost" in (house.root / "default" / "logs" / "profile.log").read_text()


async def test_a_claim_that_the_disk_refuses_is_made_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    real, refused = admissions.claim, 0

    def claim(*args: object) -> object:
        nonlocal refused
        refused += 1
        if refused < 3:
            raise StorageUnavailable("The disk is gone.")
        return real(*args)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr("hermes_ws.session.thread.CLAIM_RETRY_S", (0.01,))
    monkeypatch.setattr(admissions, "claim", claim)
    async with house.served():
        _, thread, viewer = await new_session(await house.runtime())
        await say(thread, "/do say hello", "one")
        await viewer.until("execution.finished", outcome="completed")
    assert (house.root / "default" / "logs" / "profile.log").read_text().count("queue.not_claimed") == 2


async def test_an_input_and_its_beginning_wait_for_the_disk_once(house: House) -> None:
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        held, before = Held(), runtime.journal.statistics().groups
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runtime.journal.transact, held.work)
            await held.reached()
            nursery.start_soon(say, thread, "/do wait 60", "one")
            await eventually(lambda: thread.busy)
            held.release()
        assert thread.running == 1, "it began with the commit that acknowledged it"
        assert runtime.journal.statistics().groups == before + 1
        assert thread.interrupt(1).outcome == "accepted"
        await viewer.until("execution.finished", outcome="interrupted")
        assert not thread.busy


async def test_what_begins_while_the_profile_closes_ends_as_interrupted(house: House) -> None:
    async with house.served() as host:
        runtime = await house.runtime()
        session, thread, _ = await new_session(runtime)
        held = Held()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runtime.journal.transact, held.work)
            await held.reached()
            nursery.start_soon(say, thread, "/do wait 60", "one")
            await eventually(lambda: thread.busy)
            nursery.start_soon(host.drain, 0)
            await eventually(lambda: runtime.draining)
            held.release()
    async with house.served():
        again = await (await house.runtime()).sessions.get(session.session_id)
        events = (await (await again.thread("main")).events(Cursor(1, 0), 100)).events
        kinds = [event.type for event in events if event.type.startswith("execution.")]
        assert kinds == ["execution.queued", "execution.started", "execution.finished"]


async def test_an_owner_that_was_replaced_claims_nothing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def stale(*_: object) -> None:
        raise StaleEpoch("Another process owns this home now.")

    monkeypatch.setattr(admissions, "claim", stale)
    async with house.served():
        runtime = await house.runtime()
        _, thread, _ = await new_session(runtime)
        admitted = await say(thread, "/do say hello", "one")
        await runtime.sessions.wait_until_idle()
        assert (admitted.status, thread.active) == ("queued", None)


async def test_an_input_that_was_admitted_while_the_profile_closes_is_kept(house: House) -> None:
    async with house.served():
        runtime = await house.runtime()
        session, thread, viewer = await new_session(runtime)
        await say(thread, "/do wait 1000", "one")
        await viewer.until("execution.started")
        runtime.close()
        await runtime.ended.wait()
        thread.wake()
        assert thread.active is None
        again = await house.runtime()
        assert again is not runtime
        assert (await again.sessions.get(session.session_id)) is not session


async def test_what_the_model_thinks_is_live_first_and_then_committed(runtime: ProfileRuntime) -> None:
    _, thread, viewer = await new_session(runtime)
    await say(thread, "/do think about it well\n/do say done", "one")
    await viewer.until("execution.finished", outcome="completed")
    complete = next(event for event in viewer.events if event["type"] == "reasoning.complete")
    assert complete["payload"]["text"].strip() == "about it well"
    assert thread.tail.statistics().live_texts == 0


async def test_a_notice_is_told_and_kept(runtime: ProfileRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    async def remark(*_: object, narrator: Narrator, **__: object) -> None:
        await narrator.notice("warning", "max_turns", "That was a lot.", "Go on.")

    monkeypatch.setattr(RUN_TURN, remark)
    _, thread, viewer = await new_session(runtime)
    await say(thread, "hello", "one")
    notice = await viewer.until("notice")
    assert notice["payload"] == {
        "level": "warning",
        "type": "max_turns",
        "message": "That was a lot.",
        "hint": "Go on.",
    }


async def test_text_that_a_failing_turn_left_open_is_dropped(
    runtime: ProfileRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def leave_open(*_: object, narrator: Narrator, **__: object) -> None:
        message_id = await narrator.message_start()
        narrator.text(message_id, "half a")
        raise ModelFailed("It broke off.")

    monkeypatch.setattr(RUN_TURN, leave_open)
    _, thread, viewer = await new_session(runtime)
    await say(thread, "hello", "one")
    await viewer.until("execution.finished", outcome="failed")
    assert thread.tail.statistics().live_texts == 0
    assert (await thread.snapshot(None, None)).in_progress is None


def test_usage_adds_up_and_a_cost_is_known_only_when_all_of_it_is() -> None:
    priced = Usage(input_tokens=1, output_tokens=2, cost_usd=0.25, model="a", time_to_first_token_ms=5)
    both = add_usage(priced, Usage(input_tokens=10, cached_tokens=3, cost_usd=0.5, time_to_first_token_ms=9))
    assert both == Usage(
        input_tokens=11, output_tokens=2, cached_tokens=3, cost_usd=0.75, model="a", time_to_first_token_ms=5
    )
    assert add_usage(priced, Usage(model="b")).cost_usd is None
    assert add_usage(Usage(), priced).time_to_first_token_ms == 5


def test_every_state_can_be_reached_and_the_ends_are_ends() -> None:
    reached = {State.QUEUED} | set(TRANSITIONS.values())
    assert reached == set(State)
    assert {state for state, _ in TRANSITIONS}.isdisjoint({State.FINISHED, State.LOST})
