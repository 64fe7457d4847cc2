"""Files as they were before an agent wrote them: what is kept, what is put back, and what is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_ws.contract.errors import NotFound
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.session import checkpoints
from hermes_ws.session.checkpoints import Checkpoint, Files, Restored
from tests.session.house import House, new_session, say


class Desk:
    """A session with checkpoints, and the files below its directory."""

    def __init__(self, runtime: ProfileRuntime, home: Path) -> None:
        self.runtime = runtime
        self.place = home / "home"
        self.files = Files(runtime, runtime.scope, self.place)
        self.inputs = 0

    async def begin(self, **options: Any) -> None:
        _, self.thread, self.viewer = await new_session(self.runtime, **options)

    async def write(self, *pairs: tuple[str, str]) -> None:
        self.inputs += 1
        await say(self.thread, "\n".join(f"/do write {path} {text}" for path, text in pairs), f"in-{self.inputs}")
        await self.viewer.until("execution.finished")

    async def all(self) -> list[Checkpoint]:
        return await checkpoints.list_checkpoints(self.runtime.journal, self.thread.key)

    async def restore(self, hash: str) -> Restored:
        newer = await checkpoints.find(self.runtime.journal, self.thread.key, hash)
        return await checkpoints.restore(self.runtime.journal, self.files, checkpoints.originals(newer))


@pytest.fixture
async def desk(house: House, runtime: ProfileRuntime) -> Desk:
    made = Desk(runtime, house.root / "default")
    await made.begin(checkpoints=True)
    return made


async def test_each_execution_that_writes_is_a_checkpoint(desk: Desk) -> None:
    (desk.place / "a.txt").write_text("by hand")
    await desk.write(("a.txt", "one"), ("b.txt", "new"))
    await desk.write(("a.txt", "two"))
    newest, oldest = await desk.all()
    assert [kept.path.name for kept in oldest.files] == ["a.txt", "b.txt"]
    assert [kept.before is None for kept in oldest.files] == [False, True]
    assert newest.hash != oldest.hash
    await desk.restore(oldest.hash)
    assert (desk.place / "a.txt").read_text() == "by hand"
    assert (desk.place / "b.txt").read_text() == "", "a file that was made since is emptied"


async def test_a_file_written_twice_in_one_execution_goes_back_to_before_both(desk: Desk) -> None:
    (desk.place / "a.txt").write_text("by hand")
    await desk.write(("a.txt", "one"), ("a.txt", "two"))
    (only,) = await desk.all()
    assert len(only.files) == 1
    done = await desk.restore(only.hash)
    assert [Path(each).name for each in done.restored] == ["a.txt"]
    assert (desk.place / "a.txt").read_text() == "by hand"


async def test_what_somebody_changed_since_is_left_alone(desk: Desk) -> None:
    await desk.write(("a.txt", "one"), ("b.txt", "one"))
    (desk.place / "a.txt").write_text("my own work")
    done = await desk.restore((await desk.all())[0].hash)
    assert [Path(each).name for each in done.skipped_edits] == ["a.txt"]
    assert (desk.place / "a.txt").read_text() == "my own work"
    assert (desk.place / "b.txt").read_text() == ""


async def test_a_file_that_is_too_large_is_not_kept_and_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "FILE_BYTES", 100)
    (desk.place / "a.txt").write_text("x" * 200)
    await desk.write(("a.txt", "short"))
    (only,) = await desk.all()
    done = await desk.restore(only.hash)
    assert [Path(each).name for each in done.skipped_oversize] == ["a.txt"]
    stat, _ = await checkpoints.difference(desk.runtime.journal, desk.files, checkpoints.originals([only]))
    assert "too large" in stat


async def test_bytes_that_are_no_text_come_back_as_they_were(desk: Desk) -> None:
    (desk.place / "a.bin").write_bytes(b"\x00\xff\xfe")
    await desk.write(("a.bin", "text"))
    await desk.restore((await desk.all())[0].hash)
    assert (desk.place / "a.bin").read_bytes() == b"\x00\xff\xfe"


async def test_the_difference_is_that_to_now(desk: Desk) -> None:
    (desk.place / "a.txt").write_text("same\nold\n")
    await desk.write(("a.txt", "same"))
    (only,) = await desk.all()
    stat, diff = await checkpoints.difference(desk.runtime.journal, desk.files, checkpoints.originals([only]))
    assert stat.endswith("a.txt: +1 -2")
    assert "-old" in diff


async def test_without_the_option_nothing_is_kept(desk: Desk) -> None:
    await desk.begin()
    await desk.write(("a.txt", "one"))
    assert await desk.all() == []
    with pytest.raises(NotFound):
        await checkpoints.find(desk.runtime.journal, desk.thread.key, "cp-1")
