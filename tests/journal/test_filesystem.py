"""Where a database may lie."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.journal.filesystem import NETWORK, magic, refuse_network
from hermes_ws.scope.config import NetworkFileSystem

PROC = 0x9FA0


def test_the_magic_number_is_that_of_the_kernel() -> None:
    assert magic(Path("/proc/self")) == PROC


def test_a_directory_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="none") as caught:
        magic(tmp_path / "none")
    assert caught.value.errno == 2


def test_a_local_disk_is_taken(tmp_path: Path) -> None:
    refuse_network(tmp_path)


@pytest.mark.parametrize("number", NETWORK)
def test_a_network_file_system_is_refused_by_its_name(tmp_path: Path, number: int) -> None:
    with pytest.raises(ProfileUnusable, match=rf"\({NETWORK[number]}\)"):
        refuse_network(tmp_path, magic_of=lambda _: number)


def test_what_may_be_allowed_are_those_that_are_known() -> None:
    assert set(get_args(NetworkFileSystem)) == set(NETWORK.values())
