"""Reading and writing through the warden: the same rules as for a command, whole or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from hermes_ws.contract import errors
from hermes_ws.warden import filing
from hermes_ws.warden.grants import FileRead, FileWritten
from hermes_ws.warden.hands import Warden

if TYPE_CHECKING:
    from tests.warden.conftest import Place


async def test_what_is_written_is_read_back(warden: Warden, place: Place) -> None:
    path = place.inside / "a/b/c.txt"
    assert await warden.write_file(path, "grüß".encode()) == FileWritten(6, created=True)
    assert await warden.write_file(path, b"shorter") == FileWritten(7, created=False)
    assert await warden.read_file(path) == FileRead(b"shorter", 7)
    assert path.read_bytes() == b"shorter"


async def test_any_bytes_pass_in_both_directions(warden: Warden, place: Place) -> None:
    data = os.urandom(3_000_000)
    await warden.write_file(place.inside / "blob", data)
    assert (await warden.read_file(place.inside / "blob", limit=4_000_000)).data == data


async def test_a_piece_of_a_file_is_read_by_offset_and_limit(warden: Warden, place: Place) -> None:
    (place.inside / "digits").write_bytes(b"0123456789")
    assert await warden.read_file(place.inside / "digits", offset=3, limit=4) == FileRead(b"3456", 10)
    assert await warden.read_file(place.inside / "digits", offset=50) == FileRead(b"", 10)
    assert await warden.read_file(place.inside / "digits", limit=0) == FileRead(b"", 10)


async def test_a_name_of_any_bytes_can_be_used(warden: Warden, place: Place) -> None:
    path = place.inside / os.fsdecode(b"\xff name\n")
    await warden.write_file(path, b"x")
    assert (await warden.read_file(path)).data == b"x"


async def test_a_missing_file_is_not_found(warden: Warden, place: Place) -> None:
    with pytest.raises(errors.NotFound, match="nothing does not exist"):
        await warden.read_file(place.inside / "nothing")
    with pytest.raises(errors.NotFound):
        await warden.read_file(place.inside / "secret/below")


async def test_an_unencodable_name_in_an_error_can_still_be_sent(warden: Warden, place: Place) -> None:
    """A lone surrogate in an error's text would end the socket that it is sent on."""
    with pytest.raises(errors.NotFound) as caught:
        await warden.read_file(place.inside / os.fsdecode(b"\xff"))
    caught.value.message.encode()


@pytest.mark.parametrize("name", ["outside", "link", "dots"])
async def test_another_directory_is_refused_however_it_is_named(name: str, warden: Warden, place: Place) -> None:
    (place.inside / "door").symlink_to(place.outside)
    directory = {
        "outside": place.outside,
        "link": place.inside / "door",
        "dots": place.inside / ".." / "outside",
    }[name]
    if warden.confinement.bubblewrap:
        # The directories of this test lie in /tmp, and the warden has one of its own, in which they are not.
        with pytest.raises(errors.NotFound):
            await warden.read_file(directory / "secret")
        for path in (directory / "secret", directory / "new/file"):
            with suppress(errors.PermissionDenied, errors.NotFound):
                await warden.write_file(path, b"x")
    else:
        with pytest.raises(errors.PermissionDenied) as caught:
            await warden.read_file(directory / "secret")
        assert "terminal.read" in caught.value.hint
        for path in (directory / "secret", directory / "new/file"):
            with pytest.raises(errors.PermissionDenied):
                await warden.write_file(path, b"x")
    assert [path.name for path in place.outside.iterdir()] == ["secret"]
    assert (place.outside / "secret").read_text() == "canary-outside"


@pytest.mark.parametrize("path", ["/root/.bashrc", "/var/lib/dpkg/status", "/nowhere/at/all"])
async def test_what_is_not_granted_is_refused_with_the_remedy_also_where_it_is_not_there(
    path: str, warden: Warden
) -> None:
    with pytest.raises(errors.HermesError) as caught:
        await warden.read_file(Path(path))
    if warden.confinement.bubblewrap or not path.startswith("/nowhere"):
        assert "terminal.read" in caught.value.hint


async def test_what_is_granted_for_reading_is_not_written(warden: Warden, place: Place) -> None:
    assert (await warden.read_file(place.shelf / "secret")).data == b"canary-shelf"
    with pytest.raises(errors.PermissionDenied):
        await warden.write_file(place.shelf / "secret", b"x")


async def test_the_server_s_own_files_in_proc_are_refused(warden: Warden) -> None:
    with pytest.raises(errors.PermissionDenied):
        await warden.read_file(Path(f"/proc/{os.getpid()}/environ"))


async def test_pipes_devices_and_directories_are_no_files_and_nobody_waits(warden: Warden, place: Place) -> None:
    os.mkfifo(place.inside / "pipe")
    for path in (place.inside / "pipe", Path("/dev/zero")):
        with pytest.raises(errors.InvalidParams, match="no regular file"):
            await warden.read_file(path)
    for path in (place.inside, place.inside / "pipe"):
        with pytest.raises(errors.InvalidParams):
            await warden.write_file(path, b"x")
    with pytest.raises(errors.InvalidParams, match="is a directory"):
        await warden.read_file(place.inside)
    assert stat.S_ISFIFO((place.inside / "pipe").stat().st_mode)


async def test_the_mode_of_a_replaced_file_and_a_link_to_it_stay(warden: Warden, place: Place) -> None:
    script = place.inside / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    (place.inside / "link").symlink_to(script)
    await warden.write_file(place.inside / "link", b"new")
    assert (place.inside / "link").is_symlink()
    assert script.read_bytes() == b"new"
    assert stat.S_IMODE(script.stat().st_mode) == 0o750


async def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(warden: Warden, place: Place) -> None:
    (place.inside / "d").mkdir()
    with pytest.raises(errors.InvalidParams):
        await warden.write_file(place.inside / "d", b"x")
    assert sorted(path.name for path in place.inside.iterdir()) == ["d", "secret"]


@pytest.mark.parametrize(("offset", "limit"), [(-1, 10), (0, -1), (0, filing.FILE_BYTES + 1)])
async def test_bounds_are_checked_before_anything_is_asked(
    offset: int, limit: int, warden: Warden, place: Place
) -> None:
    with pytest.raises(errors.InvalidParams):
        await warden.read_file(place.inside / "secret", offset=offset, limit=limit)
    with pytest.raises(errors.InvalidParams):
        await warden.write_file(place.inside / "big", bytes(filing.FILE_BYTES + 1))
    with pytest.raises(errors.InvalidParams):
        await warden.read_file(Path("relative"))
    with pytest.raises(errors.InvalidParams):
        await warden.read_file(Path("/a\0b"))


async def test_a_busy_command_holds_up_no_file(warden: Warden, place: Place, nursery: trio.Nursery) -> None:
    nursery.start_soon(warden.run, place.command("sleep", "1000"))
    with trio.fail_after(20):
        assert (await warden.read_file(place.inside / "secret")).data == b"canary-inside"


async def test_many_operations_at_once_do_not_mix(warden: Warden, place: Place) -> None:
    async with trio.open_nursery() as group:
        for number in range(40):
            group.start_soon(warden.write_file, place.inside / f"{number}", str(number).encode() * 1000)
    for number in range(40):
        assert (await warden.read_file(place.inside / f"{number}")).data == str(number).encode() * 1000
