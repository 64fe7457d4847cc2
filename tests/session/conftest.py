"""Homes that are really served, for each test its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes_ws.hosting.runtime import ProfileRuntime
from tests.session.house import House, People


@pytest.fixture
def people() -> People:
    return People()


@pytest.fixture
def house(tmp_path: Path, people: People) -> House:
    root = tmp_path / "homes"
    root.mkdir(mode=0o700)
    made = House(root, people)
    made.home("default")
    return made


@pytest.fixture
async def runtime(house: House) -> AsyncIterator[ProfileRuntime]:
    """The launch profile, open; everything is shut down in order at the end."""
    async with house.served():
        yield await house.runtime()
