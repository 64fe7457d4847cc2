"""STORE: locks, damage, and who may open the file."""

from __future__ import annotations

import sqlite3
import sys
import threading
from pathlib import Path

import pytest

from hermes_ws.contract.errors import StorageUnavailable
from hermes_ws.contract.methods.sessions import ListParams
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal import opening, sessions
from hermes_ws.journal.database import Database, Transaction
from hermes_ws.journal.sessions import NewSession
from tests.session.house import OWNER, House, new_session, say


class Opens:
    """What this process opens by itself, as the interpreter tells; a hook cannot be taken away, so it can be silent."""

    def __init__(self) -> None:
        self.listening = False
        self.paths: list[str] = []
        sys.addaudithook(self._heard)

    def _heard(self, event: str, given: tuple[object, ...]) -> None:
        if self.listening and event == "open" and "sessions.db" in str(given[0]):
            self.paths.append(str(given[0]))


async def test_store_01_nothing_but_sqlite_opens_a_live_database(house: House) -> None:
    """A whole conversation, a list and a shutdown; the one plain open is the one that makes the new, empty file."""
    opens = Opens()
    opens.listening = True
    async with house.served():
        runtime = await house.runtime()
        made = len(opens.paths)
        _, thread, viewer = await new_session(runtime)
        await say(thread, "/do say hello", "one")
        await viewer.until("execution.finished")
        await runtime.sessions.list(ListParams())
        assert opens.paths[made:] == []
    opens.listening = False
    assert made == 1
    assert opens.paths[made:] == []


async def test_store_03_a_turn_waits_for_a_lock_that_another_program_holds(runtime: ProfileRuntime) -> None:
    """Patience is a time: two seconds of somebody else's transaction cost a turn two seconds, and nothing else."""
    _, thread, viewer = await new_session(runtime)
    other = sqlite3.connect(runtime.home.database, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(2.0, other.execute, ("ROLLBACK",))
    timer.start()
    await say(thread, "/do say hello", "one")
    assert (await viewer.until("execution.finished"))["payload"]["outcome"] == "completed"
    timer.join()
    other.close()


async def test_store_04_a_session_that_could_not_be_stored_is_nowhere(tmp_path: Path) -> None:
    """The lock outlasts all patience: the request is refused, and no half of a session is left."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(opening, "BUSY_SECONDS", 0.1)
        database = await Database.open(
            tmp_path, tmp_path / "sessions.db", tmp_path / "lock", instance_id="i", profile="work"
        )
    other = sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    new = NewSession("ses-1", None, "default", "/", "api", OWNER, "digest")
    with pytest.raises(StorageUnavailable, match="locked"):
        await database.transact(lambda tx: sessions.create(tx, new))
    other.execute("ROLLBACK")
    other.close()
    assert await database.read(sessions.count) == 0
    assert await database.read(lambda c: c.execute("SELECT count(*) FROM thread").fetchone()) == (0,)
    await database.transact(lambda tx: sessions.create(tx, new))
    assert await database.read(sessions.count) == 1
    await database.close()


async def test_store_05_a_damaged_profile_says_so_and_the_other_works(house: House) -> None:
    """Not "no sessions": a refusal that names the file, again and again, until somebody puts a copy back."""
    house.home("second")
    async with house.served():
        for name in ("default", "second"):
            _, thread, viewer = await new_session(await house.runtime(name))
            await say(thread, "/do say hello", "one")
            await viewer.until("execution.finished")
    file = house.root / "second" / "state" / "sessions.db"
    connection = sqlite3.connect(file)
    connection.execute("UPDATE meta SET value = 0 WHERE key = 'clean'")
    connection.commit()
    connection.close()
    content = bytearray(file.read_bytes())
    content[4096:40960] = b"\xa5" * 36864
    file.write_bytes(content)
    async with house.served() as host:
        for _ in range(2):
            with pytest.raises(StorageUnavailable, match=r"sessions\.db"):
                await house.runtime("second")
        assert {row.name: row.state for row in host.listing()}["second"] in ("failed", "closed")
        healthy = await house.runtime("default")
        assert len((await healthy.sessions.list(ListParams())).sessions) == 1
    assert file.read_bytes() == bytes(content)


async def test_store_07_a_store_that_takes_nothing_is_shown_as_such(house: House) -> None:
    """In the list of profiles and in the profile's own description, and no longer when it takes something again."""
    async with house.served() as host:
        runtime = await house.runtime()

        def refuse(tx: Transaction) -> None:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

        with pytest.raises(StorageUnavailable):
            await runtime.journal.transact(refuse)
        assert [row.state for row in host.listing()] == ["read_only"]
        assert any(problem.startswith("read-only") for problem in runtime.problems)
        await runtime.reaper.look()
        assert [row.state for row in host.listing()] == ["open"]
        assert not any(problem.startswith("read-only") for problem in runtime.problems)


async def test_store_08_what_was_deleted_stays_deleted_after_a_kill(tmp_path: Path) -> None:
    """The owner ends without closing anything; its -wal and -shm are there when the next one opens."""
    first = await Database.open(tmp_path, tmp_path / "sessions.db", tmp_path / "lock", instance_id="i", profile="work")
    for number in range(3):
        new = NewSession(f"ses-{number}", None, "default", "/", "api", OWNER, "digest")
        await first.transact(lambda tx, new=new: sessions.create(tx, new))
    assert await first.remove_session("ses-1", lambda keys: None)
    copy = tmp_path / "after-the-kill"
    copy.mkdir()
    for name in ("sessions.db", "sessions.db-wal"):
        (copy / name).write_bytes((tmp_path / name).read_bytes())
    again = await Database.open(copy, copy / "sessions.db", copy / "lock", instance_id="i", profile="work")
    assert again.recovered
    found = await again.read(lambda c: c.execute("SELECT session_id FROM session ORDER BY 1").fetchall())
    assert found == [("ses-0",), ("ses-2",)]
    await again.close()
    await first.close()
