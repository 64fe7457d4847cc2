"""Keys that a command makes, in the profile's confined child."""

from __future__ import annotations

import json

import pytest

from hermes_ws.agent.models.endpoint import Endpoint
from hermes_ws.contract.errors import ModelUnauthorised
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.session.machine import SessionMachine
from tests.session.house import House, new_session, say


def machine(runtime: ProfileRuntime) -> SessionMachine:
    return SessionMachine(runtime, runtime.scope, runtime.scope.home.user)


async def test_a_command_prints_a_key_with_what_it_needs_and_nothing_else(runtime: ProfileRuntime) -> None:
    script = 'echo "noise" >&2; printf "%s-%s\\n" "$SEED" "${OTHER:-none}"'
    key = await machine(runtime).mint("mine", ("/bin/sh", "-c", script), {"SEED": "seed-1"})
    assert key == "seed-1-none"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("true", "it printed nothing."),
        ("echo two words", "it printed words."),
        ("echo sorry; exit 3", "it ended with exit code 3."),
        ("echo half; kill -9 $$", "it ended with signal 9."),
        ("echo log in first >&2; exit 1", "it ended with exit code 1 and said: log in first."),
        ("cat /dev/zero", "it ended with signal"),
    ],
)
async def test_a_command_that_makes_no_key_is_said(runtime: ProfileRuntime, script: str, why: str) -> None:
    with pytest.raises(ModelUnauthorised) as refused:
        await machine(runtime).mint("mine", ("/bin/sh", "-c", script), {})
    assert why in refused.value.message
    assert "providers.mine.key_command" in refused.value.hint


async def test_a_program_that_is_missing_is_said(runtime: ProfileRuntime) -> None:
    with pytest.raises(ModelUnauthorised):
        await machine(runtime).mint("mine", ("/no/such/program",), {})


async def test_a_minted_key_is_in_no_event(house: House) -> None:
    provider = {
        "kind": "openai",
        "base_url": "http://127.0.0.1:9/v1",
        "key_command": ["/bin/sh", "-c", "echo minted-$SEED"],
        "key_env": ["SEED"],
    }
    settings = {"model": {"provider": "mine", "name": "m", "connect_s": 1}, "providers": {"mine": provider}}
    house.home("default", config=json.dumps(settings), env="SEED=seed-4711-abc\n")
    async with house.served():
        runtime = await house.runtime()
        _, thread, viewer = await new_session(runtime)
        await say(thread, "hi", "one")
        await viewer.until("status.update")
        assert thread.active is not None
        thread.active.interrupt()
        await viewer.until("execution.finished")
        assert "minted-" not in json.dumps(viewer.events)
    assert "minted" not in repr(Endpoint("http://x", "x", "minted-key", {}, "nowhere"))
