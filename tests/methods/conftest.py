"""One server for all methods, a client of its owner, and a session."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.e2e.gateway_client import Client
from tests.e2e.process import Server, write_home

BASE = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}

COMMENTED = """\
# how I like it
model:
  provider: loopback   # free
  name: loopback

agent:
  # long runs
  max_turns: 30
"""


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("methods")
    for name in ("default", "second"):
        write_home(place / "homes" / name, env={"FIRST": f"first-of-{name}"}, config=COMMENTED)
    server = Server(place / "homes", place / "server.log", BASE)
    yield server
    assert server.stop() == 0


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.connect()
    yield client
    client.close()


@pytest.fixture
def session(client: Client) -> str:
    found: str = client.call("session.create")["session_id"]
    return found
