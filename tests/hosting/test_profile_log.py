"""The profile's own log: bounded, rotated, and without secrets."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import trio

from hermes_ws.hosting.profile_log import LOG_FILES, WAITING_LINES, ProfileLog


def log_at(path: Path, *, largest: int = 10_000) -> ProfileLog:
    return ProfileLog(path, lambda text: text.replace("hush", "***"), trio.CapacityLimiter(1), largest=largest)


async def test_lines_are_json_redacted_and_private(tmp_path: Path) -> None:
    path = tmp_path / "profile.log"
    log = log_at(path)
    log.write("info", "said", text="hush now", number=3, odd=float("inf"), nested=["hush"])
    await log.flush()
    line = json.loads(path.read_text())
    assert (line["text"], line["number"], line["odd"], line["nested"]) == ("*** now", 3, None, "list")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_it_rotates_and_keeps_only_the_last_files(tmp_path: Path) -> None:
    path = tmp_path / "profile.log"
    log = log_at(path, largest=200)
    for number in range(40):
        log.write("info", "line", number=number)
        await log.flush()
    files = sorted(os.listdir(tmp_path))
    assert files == ["profile.log", *(f"profile.log.{n}" for n in range(1, LOG_FILES))]
    assert json.loads(path.read_text().splitlines()[-1])["number"] == 39
    assert all(os.stat(tmp_path / file).st_size <= 200 for file in files)


async def test_what_cannot_be_written_in_time_is_dropped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "profile.log"
    log = log_at(path, largest=1_000_000)
    for number in range(WAITING_LINES + 5):
        log.write("info", "line", number=number)
    await log.flush()
    log.write("info", "after")
    await log.flush()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == WAITING_LINES + 1
    assert lines[-1]["dropped_before"] == 5


async def test_a_disk_that_refuses_stops_nothing(tmp_path: Path) -> None:
    log = log_at(tmp_path / "missing" / "profile.log")
    log.write("info", "line")
    await log.flush()


async def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    path = tmp_path / "profile.log"
    path.symlink_to(outside)
    log = log_at(path)
    log.write("info", "line")
    await log.flush()
    assert outside.read_text() == "mine"
