"""A process that writes to a home until it is killed, and says aloud what was acknowledged. Run by test_crash.py."""

from __future__ import annotations

import sys
from pathlib import Path

import trio

from hermes_ws.contract.events import Notice
from hermes_ws.journal import admissions, sessions
from hermes_ws.journal.admissions import NewAdmission
from hermes_ws.journal.database import Database, ThreadKey
from hermes_ws.journal.sessions import NewSession

PRODUCERS = 4


async def produce(database: Database, key: ThreadKey, round: str) -> None:
    for number in range(1_000_000):
        name = f"{round}-{key.session_id}-{number}"
        if number % 5 == 0:
            new = NewAdmission(key, "owner", name, "digest", name)
            await database.transact(lambda tx: admissions.admit(tx, new))  # noqa: B023
            print("input", name, flush=True)
        notice = Notice(level="info", type="test", message=name)
        cursor = await database.transact(lambda tx: tx.append(key, "notice", notice))  # noqa: B023
        print("event", key.session_id, cursor.seq, name, flush=True)


async def main(home: Path, round: str) -> None:
    database = await Database.open(
        home, home / "state" / "sessions.db", home / "run" / "owner.lock", instance_id=round, profile="work"
    )
    print("epoch", database.epoch, int(database.recovered), flush=True)
    async with trio.open_nursery() as nursery:
        for number in range(PRODUCERS):
            name = f"ses-{number}"
            new = NewSession(name, None, "default", "/", "api", "owner", "d", request_id=name)
            await database.transact(lambda tx: sessions.create(tx, new))  # noqa: B023
            nursery.start_soon(produce, database, ThreadKey(name, "main"), round)


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), sys.argv[2])
