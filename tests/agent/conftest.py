"""Settings of the agent's tests."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import trio

from hermes_ws.agent import calls
from hermes_ws.agent.models import endpoint as bounds
from hermes_ws.agent.reach import Place, look
from hermes_ws.agent.tools.tool import Subject
from tests.agent.chat_server import ChatServer
from tests.agent.protocols import PROTOCOLS, Protocol


@pytest.fixture
async def server(nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> ChatServer:
    """A chat server on a free port; its clients do not pause before they try again."""
    monkeypatch.setattr(bounds, "BACK_OFF_S", 0.001)
    running = ChatServer()
    listeners = await nursery.start(partial(trio.serve_tcp, running.handle, 0, host="127.0.0.1"))
    running.port = listeners[0].socket.getsockname()[1]
    return running


@pytest.fixture(params=PROTOCOLS, ids=lambda protocol: protocol.name)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """Each protocol that models are spoken with."""
    return request.param


@pytest.fixture
def no_threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that jumps does not wait for threads; only tests with files of their own look at the disk."""
    if "tmp_path" in request.fixturenames:
        return

    async def looked(subject: Subject, cwd: Path, threads: trio.CapacityLimiter, *, here: bool) -> Place:
        await trio.lowlevel.checkpoint()
        return look(subject, cwd, here=False)

    monkeypatch.setattr(calls, "place_of", looked)
