"""Control groups: used where the server was delegated one, told as what they are, and done without elsewhere.

The files of a group are plain ones here; that the kernel obeys them is the kernel's to prove.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from hermes_ws.warden import cgroup
from hermes_ws.warden.grants import Grants, Limits
from hermes_ws.warden.hands import Warden
from hermes_ws.warden.subreaper import Subreaper

if TYPE_CHECKING:
    from tests.warden.conftest import Place


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    group = tmp_path / "mount" / "user.slice" / "hermes"
    group.mkdir(parents=True)
    (group / "cgroup.controllers").write_text("cpu memory pids\n")
    for name in ("cgroup.procs", "cgroup.subtree_control"):
        (group / name).touch()
    return tmp_path / "mount"


def own(tmp_path: Path, line: str) -> Path:
    path = tmp_path / "own"
    path.write_text(f"1:name=systemd:/\n{line}\n")
    return path


async def test_a_warden_lives_in_a_group_with_its_limits(mount: Path, tmp_path: Path, place: Place) -> None:
    found = cgroup.delegated(own(tmp_path, "0::/user.slice/hermes"), mount)
    assert found is not None
    limits = Limits(memory_bytes=200_000_000, processes=50)
    warden = await Warden.start(Grants(write=(place.inside,), limits=limits), subreaper=Subreaper(found))
    group = mount / "user.slice" / "hermes"
    made = group / f"warden-{warden.statistics().pid}"
    assert (made / "pids.max").read_text() == "52"
    assert (made / "memory.max").read_text() == "200000000"
    assert (made / "cgroup.procs").read_text().isdigit()
    assert (group / "server" / "cgroup.procs").read_text() == str(os.getpid())
    assert (group / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert (warden.confinement.processes, warden.confinement.memory) == ("cgroup", "cgroup")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        assert (await warden.run(place.command("bash", "-c", "ulimit -d"))).output == b"unlimited\n"
        await warden.close()


@pytest.mark.parametrize("line", ["", "0::/", "0::/no/such/group", "5:memory:/user.slice/hermes"])
def test_without_a_group_of_ones_own_there_is_none(line: str, mount: Path, tmp_path: Path) -> None:
    assert cgroup.delegated(own(tmp_path, line), mount) is None


def test_a_group_without_the_controllers_is_no_help(mount: Path, tmp_path: Path) -> None:
    (mount / "user.slice" / "hermes" / "cgroup.controllers").write_text("cpu\n")
    assert cgroup.delegated(own(tmp_path, "0::/user.slice/hermes"), mount) is None


async def test_a_group_that_refuses_leaves_the_other_limits(mount: Path, tmp_path: Path, place: Place) -> None:
    found = cgroup.delegated(own(tmp_path, "0::/user.slice/hermes"), mount)
    assert found is not None
    (mount / "user.slice" / "hermes" / "server").write_text("in the way")
    grants = Grants(write=(place.inside,), limits=Limits(memory_bytes=200_000_000))
    warden = await Warden.start(grants, subreaper=Subreaper(found))
    assert warden.confinement.memory == "process"
    await warden.close()
