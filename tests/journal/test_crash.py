"""kill -9 in the middle of writing: what was acknowledged is there, once, and in order."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
import trio

from hermes_ws.journal import admissions, events
from hermes_ws.journal.database import Database, ThreadKey
from hermes_ws.wire.cursor import Cursor

CHILD = Path(__file__).with_name("writing_child.py")
ROOT = Path(__file__).parents[2]

ROUNDS = 3
"""Kills in one test: each after a random number of acknowledgements, on what the one before left."""


def write_and_die(home: Path, round: str, acknowledgements: int) -> list[list[str]]:
    """Run the child until it acknowledged that much, kill it, and return all that it said."""
    with subprocess.Popen(
        [sys.executable, CHILD, home, round], stdout=subprocess.PIPE, text=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}
    ) as child:
        assert child.stdout is not None
        said = [child.stdout.readline().split() for _ in range(acknowledgements)]
        child.send_signal(signal.SIGKILL)
        # What it said before it died counts as well; a last line that was cut off was not said.
        rest = child.stdout.read()
    return [*said, *[line.split() for line in rest[: rest.rfind("\n") + 1].splitlines()]]


@pytest.mark.parametrize("seed", [1, 2])
def test_what_was_acknowledged_survives_a_kill(home: Path, file: Path, lock: Path, seed: int) -> None:
    chance = random.Random(seed)
    acknowledged: dict[tuple[str, int], str] = {}
    inputs: set[str] = set()
    for round in range(ROUNDS):
        said = write_and_die(home, f"r{round}", chance.randrange(1, 400))
        assert said[0] == ["epoch", str(round + 1), str(int(round > 0))]
        for kind, *rest in said[1:]:
            if kind == "input":
                inputs.add(rest[0])
            else:
                key = (rest[0], int(rest[1]))
                assert key not in acknowledged, "a number was given out twice"
                acknowledged[key] = rest[2]

    async def look() -> None:
        database = await Database.open(home, file, lock, instance_id="i", profile="work")
        assert database.epoch == ROUNDS + 1
        assert database.recovered
        stored: dict[tuple[str, int], str] = {}
        for session in {session for session, _ in acknowledged}:
            key = ThreadKey(session, "main")
            found, _ = await database.read(
                lambda connection: events.since(connection, key, Cursor(1, 0), 10**6, 10**9)  # noqa: B023
            )
            assert [event.seq for event in found] == list(range(1, len(found) + 1))
            stored |= {(session, event.seq): orjson.loads(event.payload).get("message", "") for event in found}
            waiting = await database.read(lambda connection: admissions.pending(connection, key))  # noqa: B023
            inputs.difference_update(each.input_id for each in waiting)
        assert {key: stored.get(key) for key in acknowledged} == acknowledged
        assert inputs == set()
        await database.close()

    trio.run(look)
