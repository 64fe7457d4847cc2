"""Real servers, killed: at every named point, at random, with a tool running, in a migration. The next one goes on."""

from __future__ import annotations

import contextlib
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from hermes_ws.contract.content import Message
from hermes_ws.journal import messages, schema, threads
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.database import Database, Transaction
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.identity import ProfileName, mint_identity
from hermes_ws.session import identifiers
from tests.crash.record import DIED, Record, compare, events
from tests.e2e.conftest import base_environment
from tests.e2e.gateway_client import Client
from tests.e2e.process import SERVE, Server, all_gone, children, write_home

__all__ = ["base_environment"]

DYING = (sys.executable, str(Path(__file__).with_name("dying_server.py")))
POINTS = ("before-commit", "after-commit", "before-delivery", "after-delivery", "before-reply")

LIVES = 2
"""Random kills in one test: each costs a start of the server."""

INPUTS = (
    "/do say one {n}",
    "/do say two {n}\n/do stream 5 20",
    "/do think about {n}\n/do say three",
    "/do stream 30 5",
)

Serve = Callable[..., Server]


@pytest.fixture
def homes(tmp_path: Path) -> Path:
    write_home(tmp_path / "homes" / "default", env={}, config="approvals:\n  mode: auto\n")
    return tmp_path / "homes"


@pytest.fixture
def serve(homes: Path, tmp_path: Path, base_environment: dict[str, str]) -> Iterator[Serve]:
    started: list[Server] = []

    def start(*point: str) -> Server:
        program = (*DYING, *point, "serve") if point else SERVE
        server = Server(homes, tmp_path / "server.log", base_environment, program=program)
        started.append(server)
        return server

    yield start
    for server in started:
        if server.process.poll() is None:
            server.stop()
        elif server.process.stdout is not None:
            server.process.stdout.close()


def database(homes: Path) -> Path:
    return homes / "default" / "state" / "sessions.db"


def work_until_it_dies(server: Server, record: Record, number: int = 0) -> None:
    """Submit one input after another, until the server is no more; and keep what came."""
    client: Client | None = None
    try:
        with contextlib.suppress(*DIED):
            client = server.connect()
            client.call("session.resume", session_id=record.session_id)
            for at in range(200):
                text = INPUTS[at % len(INPUTS)].format(n=at)
                record.submit(client, f"input-{number}-{at}", text)
                if at % 3 == 2:
                    admitted = record.acknowledged[f"input-{number}-{at}"]["admission_id"]
                    client.finished(admitted)
    finally:
        if client is not None:
            record.keep(client)
    assert server.process.wait(30) == -signal.SIGKILL


def see(server: Server, record: Record) -> None:
    """Compare what was told with what this server knows."""
    client = server.connect()
    compare(client, record)
    client.close()


def begin(server: Server) -> Record:
    client = server.connect()
    record = Record(client.call("session.create", subscribe=False)["session_id"])
    client.close()
    return record


@pytest.mark.parametrize(("count", "points"), [(1, POINTS), (6, POINTS[:3])], ids=["at once", "later"])
def test_killed_at_every_point_it_loses_repeats_and_takes_back_nothing(
    serve: Serve, tmp_path: Path, count: int, points: tuple[str, ...]
) -> None:
    record: Record | None = None
    for life, point in enumerate(points):
        armed = tmp_path / point
        server = serve(point, str(count), str(armed))
        if record is None:
            record = begin(server)
        else:
            see(server, record)
        before = children(server.pid)
        armed.touch()
        work_until_it_dies(server, record, life)
        assert all_gone(before)
    assert record is not None
    see(serve(), record)


def test_killed_at_random_again_and_again_it_goes_on_where_it_was(serve: Serve) -> None:
    chance = random.Random(20240807)
    record: Record | None = None
    for life in range(LIVES):
        server = serve()
        if record is None:
            record = begin(server)
        timer = threading.Timer(chance.uniform(0.1, 0.8), server.process.kill)
        timer.start()
        work_until_it_dies(server, record, life)
        timer.join()
    assert record is not None
    see(serve(), record)


def test_killed_while_a_journal_is_replaced_it_is_the_old_or_the_new_one(serve: Serve, tmp_path: Path) -> None:
    armed = tmp_path / "armed"
    server = serve("in-rebase", "1", str(armed))
    record = begin(server)
    client = server.connect()
    client.call("session.resume", session_id=record.session_id)
    record.submit(client, "one", "/do say one")
    client.finished(record.acknowledged["one"]["admission_id"])
    before = client.call("thread.state", session_id=record.session_id)
    request = {"session_id": record.session_id, "request_id": "again", "expected_revision": 1, "operation": "reset"}
    armed.touch()
    with pytest.raises(DIED):
        client.call("session.mutate", **request)
    record.keep(client)
    server.process.wait(30)
    client = serve().connect()
    after = client.call("thread.state", session_id=record.session_id)
    assert (after["generation"], after["cursor"], after["revision"]) == (1, before["cursor"], 1)
    compare(client, record)
    done = client.call("session.mutate", **request)
    assert client.call("session.mutate", **request) == done
    assert client.call("thread.state", session_id=record.session_id)["generation"] == 2
    client.close()


def test_killed_with_a_tool_running_it_leaves_no_child_and_repeats_no_call(serve: Serve, tmp_path: Path) -> None:
    server = serve()
    record = begin(server)
    client = server.connect()
    client.call("session.resume", session_id=record.session_id)
    record.submit(client, "one", "/do run echo begun; sleep 300")
    record.submit(client, "two", "/do say two")
    seen = 0
    while not any(event["type"] == "tool.progress" for event in client.events[seen:]):
        if client.questions:
            client.answer(client.questions.pop(), choice="once")
        client.pump()
    running = children(server.pid)
    assert running
    server.process.kill()
    record.keep(client)
    assert all_gone(running)
    server.process.wait(30)
    client = serve().connect()
    state = client.call("thread.state", session_id=record.session_id)
    assert [row["status"] for row in state["pending"]] == ["unknown", "queued"]
    compare(client, record)
    calls = [event for event in events(client, record.session_id) if event["type"] == "tool.start"]
    assert len(calls) == 1
    client.close()


def test_a_torn_write_at_the_end_of_the_log_is_not_taken_for_a_commit(serve: Serve, homes: Path) -> None:
    server = serve()
    record = begin(server)
    timer = threading.Timer(0.5, server.process.kill)
    timer.start()
    work_until_it_dies(server, record)
    timer.join()
    log = database(homes).with_name("sessions.db-wal")
    # Half a frame: a page was being written when the power went.
    with log.open("ab") as file:
        file.write(random.Random(1).randbytes(2000))
    see(serve(), record)


def test_killed_in_a_migration_the_home_is_as_it_was_and_the_next_owner_finishes_it(
    serve: Serve, homes: Path, tmp_path: Path, base_environment: dict[str, str]
) -> None:
    session_id = an_older_home(homes / "default")
    now = len(schema.STEPS)
    armed = tmp_path / "armed"
    armed.touch()
    arguments = ["serve", "--profiles-root", str(homes), "--port", "0", "--announce", "json"]
    with (tmp_path / "dying.log").open("wb") as log:
        died = subprocess.run(
            [*DYING, "in-migration", "4", str(armed), *arguments],
            env=base_environment,
            stdout=log,
            stderr=log,
            timeout=60,
            check=False,
        )
    assert died.returncode == -signal.SIGKILL
    assert look(homes, "PRAGMA user_version") == [(now,)]
    assert look(homes, "SELECT name FROM sqlite_master WHERE name = 'later'") == []
    armed.unlink()
    client = serve("in-migration", "4", str(armed)).connect()
    snapshot = client.call("session.resume", session_id=session_id)
    assert [message["text"] for message in snapshot["messages"]] == ["from before"]
    assert look(homes, "PRAGMA user_version") == [(now + 1,)]
    assert look(homes, "SELECT x FROM later") == [(1,)]
    record = Record(session_id)
    record.submit(client, "one", "/do say one")
    client.finished(record.acknowledged["one"]["admission_id"])
    client.close()


def look(homes: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(database(homes))
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def an_older_home(path: Path) -> str:
    """A home of the newest version that there is, with one session; its id."""
    home = ProfileHome(path.resolve())
    home.prepare()
    session_id = identifiers.session_id(mint_identity(home, ProfileName("default")).origin)

    def work(tx: Transaction) -> None:
        now = tx.now
        columns = "session_id, agent, cwd, source, launch, principal, digest, revision, created_at, updated_at"
        row = (session_id, "default", str(home.user), "api", "{}", "owner", "d", 1, now, now)
        tx.connection.execute(f"INSERT INTO session ({columns}) VALUES ({', '.join('?' * len(row))})", row)
        threads.ensure(tx, ThreadKey(session_id, "main"))
        messages.add(tx, ThreadKey(session_id, "main"), Message(message_id="msg-1", role="user", text="from before"))

    async def make() -> None:
        older = await Database.open(home.path, home.database, home.lock, instance_id="before", profile="default")
        await older.transact(work)
        await older.close()

    trio.run(make)
    return session_id
