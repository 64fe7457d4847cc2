"""A peer to speak with, and both backends to speak under."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.client.peer import Peer, peer_at


@pytest.fixture
def peer() -> Iterator[Peer]:
    """A server of the tests, on loopback."""
    with peer_at() as running:
        yield running


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """The name of the backend to run under."""
    return str(request.param)
