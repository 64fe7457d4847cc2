"""What is copied of a home, and what a command may have put in its place."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from hermes_ws.contract.errors import (
    LimitReached,
    ProfileUnusable,
)
from hermes_ws.hosting import profile_copy
from hermes_ws.scope.identity import ProfileName
from tests.session.house import House

WORK, NEW = ProfileName("work"), ProfileName("new")


async def test_links_that_lead_out_of_a_home_are_left_out_and_named(house: House, tmp_path: Path) -> None:
    """PLIFE-08."""
    secret = tmp_path / "outside"
    secret.write_text("outside")
    skills = house.home("work") / "skills"
    skills.mkdir()
    (skills / "real.md").write_text("real")
    (skills / "near.md").symlink_to("real.md")
    (skills / "dangling.md").symlink_to("nowhere")
    (skills / "far.md").symlink_to(secret)
    (skills / "up.md").symlink_to("../../../outside")
    os.mkfifo(skills / "pipe")
    async with house.served() as host:
        made = await host.life.clone(WORK, NEW, ["skills"])
    copied = house.root / "new" / "skills"
    assert sorted(os.listdir(copied)) == ["near.md", "real.md"]
    assert (copied / "near.md").read_text() == "real"
    assert sorted(Path(path).name for path in made.skipped) == ["dangling.md", "far.md", "pipe", "up.md"]


async def test_a_copy_that_fails_leaves_nothing_and_names_the_path(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PLIFE-09. The tests may run as root, whom no mode keeps out; so the refusal is planned."""
    closed = house.home("work") / "skills" / "closed"
    closed.mkdir(parents=True)
    real = os.open

    def refusing(path: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path) == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(profile_copy.os, "open", refusing)
    async with house.served() as host:
        before = house.names()
        with pytest.raises(ProfileUnusable, match="closed cannot be copied: Permission denied"):
            await host.life.clone(WORK, NEW, ["skills"])
        monkeypatch.undo()
        assert house.names() == before
        await host.life.clone(WORK, NEW, ["skills"])


@pytest.mark.parametrize("what", ["link to a file", "link to a directory", "pipe", "nothing"])
def test_what_a_command_puts_in_its_place_is_not_copied(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is not confined: what it looked at and what it opens is the same thing, or it opens nothing."""
    outside, home = tmp_path / "outside", tmp_path / "work" / "home"
    (outside / "deep").mkdir(parents=True)
    (outside / "secret").write_text("outside")
    (home / "swapped").mkdir(parents=True)
    (home / "swapped" / "secret").write_text("inside")
    (home / "still").write_text("there")
    if what != "link to a directory":
        (home / "swapped" / "secret").rename(home / "secret")
        (home / "swapped").rmdir()
        (home / "secret").rename(home / "swapped")
    real = os.stat

    def looked(path: str, **how: Any) -> os.stat_result:
        found = real(path, **how)
        if path == "swapped":
            (home / "swapped").rename(tmp_path / "aside")
            if what == "pipe":
                os.mkfifo(home / "swapped")
            elif what != "nothing":
                (home / "swapped").symlink_to(outside if "directory" in what else outside / "secret")
        return found

    monkeypatch.setattr(profile_copy.os, "stat", looked)
    copied = profile_copy.Copied()
    profile_copy.copy_tree(home, tmp_path / "copy", copied)
    monkeypatch.undo()
    assert [str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*")] == ["still"]
    assert copied.skipped == ([] if what == "nothing" else [str(home / "swapped")])


def test_a_tree_that_has_no_end_is_not_copied(tmp_path: Path) -> None:
    place = os.open(tmp_path, os.O_RDONLY)
    for _ in range(profile_copy.DEPTH + 2):
        os.mkdir("d", dir_fd=place)
        below = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    with pytest.raises(LimitReached, match="directories in each other"):
        profile_copy.copy_tree(tmp_path / "d", tmp_path / "copy", profile_copy.Copied())
    shutil.rmtree(tmp_path / "d")
    shutil.rmtree(tmp_path / "copy")
