"""The methods that end the server, as the last thing that it is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_ws.contract.catalog import METHODS
from tests.leak import examples
from tests.leak.world import World, make_world


@pytest.mark.parametrize("name", sorted(examples.ALONE & METHODS.keys()))
def test_the_end_of_a_server_tells_nothing(tmp_path: Path, base_environment: dict[str, str], name: str) -> None:
    world: World = make_world(tmp_path, base_environment, 2)
    world.check(None, world.outcome(world.owner, world.owner.send(name)), name)
    world.server.process.wait(60)
    for side in world.sides:
        for event in side.client.events:
            world.check(side, event, f"event {event['type']}")
    world.check(None, world.server.log.read_text(), "the log of the server")
    assert world.server.process.stdout is not None
    world.server.process.stdout.close()
