"""However a turn ends, what it committed is a valid history: failures and interrupts."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from hermes_ws.agent import reply
from hermes_ws.agent.history import calls_of, results_of
from hermes_ws.agent.models.model import (
    Model,
    RetryPiece,
    TextPiece,
    UsagePiece,
)
from hermes_ws.agent.turn import TurnRequest
from hermes_ws.contract.content import Message, ToolCallBlock
from hermes_ws.contract.errors import ModelFailed, StorageUnavailable
from tests.agent.scene import Replies, Scene, call, done
from tests.agent.twins import (
    DIRECTORY,
    AskerTwin,
    HandsTwin,
    request,
    user,
)

pytestmark = pytest.mark.usefixtures("no_threads")

# --- failures ------------------------------------------------------------------------------------------------------


async def test_a_failure_keeps_what_was_said_as_partial() -> None:
    scene, model = Scene(), Replies([TextPiece("half a sen"), call("terminal", command="ls"), ModelFailed("broke")])
    with pytest.raises(ModelFailed, match="broke"):
        await scene.run("x", model)
    ((message, partial),) = scene.narrator.all("message_complete")
    assert (message.text, partial) == ("half a sen", True)
    assert calls_of(message) == [], "a call counts only in a whole reply"
    assert model.closed == 1
    scene.assert_valid()


async def test_a_failure_before_the_first_piece_leaves_no_message() -> None:
    scene = Scene()
    with pytest.raises(ModelFailed):
        await scene.run("/do fail model_failed")
    assert scene.narrator.told == []


async def test_a_stream_without_its_end_is_a_failure() -> None:
    scene = Scene()
    with pytest.raises(ModelFailed, match="broke off"):
        await scene.run("x", Replies([TextPiece("a")]))


async def test_a_model_that_floods_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply, "REPLY_CHARACTERS", 100)
    scene = Scene()
    with pytest.raises(ModelFailed, match="longer than"):
        await scene.run("/do stream 200 0 10")
    ((message, partial),) = scene.narrator.all("message_complete")
    assert partial
    assert len(message.text) <= 100


async def test_retries_and_odd_ends_are_told_to_the_person() -> None:
    scene = Scene()
    await scene.run("x", Replies([RetryPiece("It is busy.", 1.5), TextPiece("a"), *done("length")]))
    assert [each[1] for each in scene.narrator.all("notice")] == ["model_length"]
    assert scene.narrator.all("status") == [("model_retry", "It is busy. Trying again in 1.5 s.")]
    scene = Scene()
    await scene.run("x", Replies(done()))
    assert [each[1] for each in scene.narrator.all("notice")] == ["model_empty"]


async def test_lone_surrogates_of_a_model_reach_nobody() -> None:
    """FRAME: one bad character, stored and sent again at each reconnect, is an outage for ever."""
    model = Replies([TextPiece("a\ud800b"), call("read_file", path="\udfff"), *done()], [TextPiece("ok"), *done()])
    scene = Scene()
    await scene.run("x", model)
    repr(scene.narrator.told).encode("utf-8")
    for message in scene.narrator.history:
        message.model_dump_json()
    assert scene.narrator.live["m1"] == "a\ufffdb"


async def test_a_disk_that_fails_ends_the_turn_and_is_not_told_to_the_model() -> None:
    scene = Scene()

    async def fail(kind: str) -> None:
        if kind == "tool_start":
            raise StorageUnavailable("disk gone")

    scene.narrator.before = fail
    with pytest.raises(StorageUnavailable):
        await scene.run("/do read a\n/do read b")
    scene.assert_valid()


async def test_a_bug_in_a_tool_ends_the_turn_with_a_valid_history() -> None:
    class Broken(HandsTwin):
        async def run(self, *args: Any, **more: Any) -> Any:
            raise ZeroDivisionError

    scene = Scene(hands=Broken())
    with pytest.raises(ZeroDivisionError):
        await scene.run("/do run ls\n/do run ls")
    first, second = scene.narrator.all("tool_results")[0]
    assert first.output.startswith("Broken off by an error in the server")
    assert second.output.startswith("Not started")
    scene.assert_valid()


# --- interrupts ----------------------------------------------------------------------------------------------------


async def interrupted(scene: Scene, what: TurnRequest | str, *, after_s: float, model: Model | None = None) -> None:
    with trio.move_on_after(after_s) as scope:
        await scene.run(what, model)
    assert scope.cancelled_caught


async def test_an_interrupt_keeps_the_text_that_was_said(autojump_clock: trio.abc.Clock) -> None:
    scene = Scene()
    await interrupted(scene, "/do stream 100 1000 4", after_s=10.5)
    ((message, partial),) = scene.narrator.all("message_complete")
    assert partial
    assert message.text == "".join(f"{number} ".rjust(4, ".") for number in range(1, 11))
    scene.assert_valid()


async def test_an_interrupt_during_tools_gives_each_call_its_result(autojump_clock: trio.abc.Clock) -> None:
    """The next request is refused by providers otherwise; TURN-10: the reason is told apart."""
    scene = Scene(hands=HandsTwin(delay_s=10))
    await interrupted(scene, "/do run ls 1\n/do run ls 2\n/do run ls 3", after_s=15)
    outputs = [block.output for block in scene.narrator.all("tool_results")[0]]
    assert outputs[0] == "(no output)"
    assert outputs[1].startswith("Interrupted before it finished")
    assert outputs[2].startswith("Not started")
    assert scene.hands.ended == ["ls 1", "ls 2"], "the second was ended before the turn was left"
    scene.assert_valid()


async def test_an_interrupt_during_calls_side_by_side_gives_each_its_result(autojump_clock: trio.abc.Clock) -> None:
    hands = HandsTwin(files={str(DIRECTORY / name): name for name in "ab"}, delay_s=10)
    scene = Scene(hands=hands)
    await interrupted(scene, "/do read a\n/do read b", after_s=5)
    assert hands.most_running == 2
    outputs = [block.output for block in scene.narrator.all("tool_results")[0]]
    assert all(output.startswith("Interrupted") for output in outputs)
    assert hands.running == 0
    scene.assert_valid()


async def test_an_interrupt_while_a_question_is_open_leaves_a_valid_history(autojump_clock: trio.abc.Clock) -> None:
    scene = Scene(asker=AskerTwin(forever=True))
    await interrupted(scene, "/do run make\n/do run ls", after_s=5)
    assert scene.hands.ran == []
    outputs = [block.output for block in scene.narrator.all("tool_results")[0]]
    assert all(output.startswith("Not started") for output in outputs)
    scene.assert_valid()


async def test_an_interrupt_does_not_wait_for_ever_for_a_disk(autojump_clock: trio.abc.Clock) -> None:
    scene = Scene()

    async def hang(kind: str) -> None:
        if kind == "message_complete":
            await trio.sleep_forever()

    scene.narrator.before = hang
    began = trio.current_time()
    with pytest.raises(StorageUnavailable), trio.move_on_after(3):
        await scene.run("/do stream 100 1000")
    assert trio.current_time() - began == pytest.approx(3 + reply.CLOSING_S)


@pytest.mark.parametrize("steps", range(1, 40))
async def test_history_is_valid_wherever_an_interrupt_strikes(steps: int) -> None:
    scene = Scene(hands=HandsTwin(files={str(DIRECTORY / "a"): "x"}))
    narrator = scene.narrator
    seen = 0
    with trio.CancelScope() as scope:

        async def strike(kind: str) -> None:
            nonlocal seen
            seen += 1
            if seen == steps:
                scope.cancel()

        narrator.before = strike
        await scene.run("/do think a\n/do run ls\n/do read a\n\n/do read a\n/do read a\n\n/do say bye")
    scene.assert_valid()
    for message in narrator.history:
        assert message.role != "tool" or results_of(message)


async def test_history_that_a_crash_left_is_mended_for_the_model() -> None:
    broken = Message(
        message_id="a1",
        role="assistant",
        text="",
        content=[ToolCallBlock(call_id=each, name="terminal", arguments={"command": "ls"}) for each in ("c1", "c2")],
    )
    model = Replies([TextPiece("ok"), *done()])
    await Scene().run(request(user("go"), broken, user("again", "u2")), model)
    roles = [message.role for message in model.requests[0].messages]
    assert roles == ["user", "assistant", "tool", "user"]
    assert all("not known" in result.output for result in results_of(model.requests[0].messages[2]))


async def test_the_model_is_closed_however_the_turn_ends() -> None:
    model = Replies([TextPiece("ok"), UsagePiece(1, 2), *done()])
    await Scene().run("x", model)
    assert model.closed == 1
