"""Two homes on disk, and the house that serves them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.session.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    root = tmp_path / "homes"
    root.mkdir(mode=0o700)
    made = House(root)
    made.home("default")
    made.home("work")
    return made
