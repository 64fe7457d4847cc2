"""Two sides and twenty, one server each for all tests here."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.leak.world import World, make_world


@pytest.fixture(scope="session")
def base_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}


@pytest.fixture(scope="session", params=[2, 20], ids=["two homes", "twenty homes"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, base_environment: dict[str, str]
) -> Iterator[World]:
    made = make_world(tmp_path_factory.mktemp("leak"), base_environment, request.param)
    yield made
    assert made.server.stop() == 0
