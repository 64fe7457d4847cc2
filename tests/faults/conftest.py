"""Homes, a server for models, and the borders at which faults strike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import trio

from hermes_ws.journal import opening
from hermes_ws.journal.database import Database
from tests.agent.chat_server import ChatServer
from tests.faults.plan import Plan, connecting
from tests.session.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    root = tmp_path / "homes"
    root.mkdir(mode=0o700)
    made = House(root)
    made.home("default")
    return made


@pytest.fixture
async def model() -> AsyncIterator[ChatServer]:
    server = ChatServer()
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server.port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, server.handle, [listener])
        yield server
        nursery.cancel_scope.cancel()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[Plan], Plan]:
    """Have what is opened from now on write through this plan."""

    def through(plan: Plan) -> Plan:
        monkeypatch.setattr(opening, "connect", connecting(plan))
        return plan

    return through


async def open_database(home: Path, clock: Callable[[], float] = lambda: 1000.0) -> Database:
    return await Database.open(
        home, home / "state" / "sessions.db", home / "run" / "owner.lock", instance_id="i", profile="work", clock=clock
    )
