"""Which processes belong to a command: also those that left its group and whose parents are gone; and no others."""

from __future__ import annotations

import errno
import os
import signal
from typing import TYPE_CHECKING

import pytest
import trio

from hermes_ws.contract import errors
from hermes_ws.warden import descendants
from hermes_ws.warden.check import refuse_granted_homes
from hermes_ws.warden.descendants import Seen
from hermes_ws.warden.grants import Grants, Limits, Looking, Size
from hermes_ws.warden.hands import Warden
from hermes_ws.warden.places import SYSTEM

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_ws.warden.bubblewrap import Choice
    from tests.warden.conftest import Place


@pytest.mark.parametrize("descriptors", ["left", "used up"])
async def test_a_number_that_is_used_again_is_left_alone(descriptors: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """REAP-21: number and start time must agree; what is not known is not ended."""

    def refused(*_arguments: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    victim = await trio.lowlevel.open_process(["sleep", "1000"])
    try:
        seen = descendants.look(victim.pid)
        assert seen is not None
        # By number alone, another process could have it by then.
        monkeypatch.setattr(descendants.os, "kill" if descriptors == "left" else "pidfd_open", refused)
        descendants.send(Seen(seen.pid, seen.parent, seen.group, seen.started + 1), signal.SIGKILL)
        assert descendants.lives(seen)
        assert not descendants.lives(Seen(seen.pid, seen.parent, seen.group, seen.started + 1))
        descendants.send(seen, signal.SIGKILL)
        monkeypatch.undo()
        assert await victim.wait() == -signal.SIGKILL
    finally:
        monkeypatch.undo()
        victim.kill()
        await victim.wait()
    descendants.send(seen, signal.SIGKILL)


DAEMONS = (
    "(setsid sh -c '(setsid sleep 1111 &) ; setsid sleep 1112 & exit' &) </dev/null >/dev/null 2>&1;"
    " (nohup setsid sh -c 'trap \"\" TERM; echo up > up; while :; do sleep 0.1; done' &) </dev/null >/dev/null 2>&1;"
    " while [ ! -s up ]; do sleep 0.01; done; echo ready; sleep 1113"
)


@pytest.mark.parametrize("how", ["cancelled", "deadline"])
async def test_what_left_the_group_ends_with_a_command_that_is_ended(how: str, warden: Warden, place: Place) -> None:
    def below() -> int:
        own = 1 if warden.confinement.bubblewrap else 0
        return len(descendants.below(warden.statistics().pid)) - own

    with trio.CancelScope() as scope:
        done = await warden.run(
            place.command("bash", "-c", DAEMONS, deadline_s=1000 if how == "cancelled" else 1.5),
            lambda _piece: scope.cancel() if how == "cancelled" else None,
        )
        assert done.timed_out
    assert scope.cancelled_caught == (how == "cancelled")
    with trio.fail_after(30):
        while below():  # noqa: ASYNC110 - zombies are reaped in a moment
            await trio.sleep(0.01)
    assert warden.alive


async def test_one_command_that_is_ended_takes_nothing_of_another_along(warden: Warden, place: Place) -> None:
    async with await warden.open(place.command("bash", "-c", "setsid sleep 1000 & echo up; read x; echo $x")) as other:
        assert await other.receive() == b"up\n"
        done = await warden.run(place.command("bash", "-c", "setsid sleep 1000 & sleep 1000", deadline_s=0.5))
        assert done.timed_out
        await other.send(b"still here\n")
        assert await other.receive() == b"still here\n"


async def test_a_terminal_has_a_size_a_name_and_a_session(warden: Warden, place: Place) -> None:
    script = "tty; stty size; test -t 2 && echo three; ps -o sid= -p $$ >/dev/null; read x; echo got $x"
    async with await warden.open(place.command("bash", "-c", script), terminal=Size(7, 33)) as terminal:
        await terminal.resize(8, 44)
        await terminal.send(b"keys\n")
        shown = b""
        while piece := await terminal.receive():
            shown += piece
        assert (await terminal.wait()).exit_code == 0
    assert b"/dev/pts/" in shown
    assert b"33" in shown or b"44" in shown
    assert b"got keys" in shown


async def test_too_many_that_go_on_are_refused(warden: Warden, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from hermes_ws.warden import ordering

    monkeypatch.setattr(ordering, "RUNNING", 1)
    async with await warden.open(place.command("sleep", "1000")):
        with pytest.raises(errors.LimitReached):
            await warden.open(place.command("sleep", "1000"))
    async with await warden.open(place.command("no-such-program")) as missing:
        assert (await missing.wait()).stage == "exec"


async def test_directories_are_listed_and_searched_in_order_and_within_bounds(warden: Warden, place: Place) -> None:
    (place.inside / "d" / "deep").mkdir(parents=True)
    (place.inside / "d" / "deep" / "x.py").write_text("one\nneedle two\n")
    (place.inside / "d" / "a.txt").write_text("needle.*\n")
    (place.inside / ".hidden").write_text("needle")
    (place.inside / "data").write_bytes(b"\0needle")
    (place.inside / "link").symlink_to(place.outside)
    listed = await warden.list_files(place.inside, depth=3)
    assert [(entry.name, entry.kind) for entry in listed.entries] == [
        ("d", "directory"),
        ("d/a.txt", "file"),
        ("d/deep", "directory"),
        ("d/deep/x.py", "file"),
        ("data", "file"),
        ("link", "link"),
        ("secret", "file"),
    ]
    assert not listed.more
    assert [entry.name for entry in (await warden.list_files(place.inside, depth=3, pattern="*.py")).entries] == [
        "d/deep/x.py"
    ]
    few = await warden.list_files(place.inside, depth=3, limit=2)
    assert (len(few.entries), few.more) == (2, True)
    found = await warden.search_files(place.inside, Looking("needle", pattern="*.[pt]*"))
    assert [(match.name, match.line) for match in found.matches] == [("d/a.txt", 1), ("d/deep/x.py", 2)]
    assert len((await warden.search_files(place.inside, Looking("needle.*", literal=True))).matches) == 1
    assert (await warden.search_files(place.inside, Looking("needle", limit=1))).more
    with pytest.raises(errors.InvalidParams, match="cannot be searched"):
        await warden.search_files(place.inside, Looking("("))
    with pytest.raises(errors.NotFound):
        await warden.list_files(place.inside / "missing")
    with pytest.raises(errors.HermesError):
        await warden.search_files(place.outside, Looking("canary"))


async def test_the_disk_is_measured_and_what_holds_too_much_is_ended(place: Place, namespaces: Choice) -> None:
    limits = Limits(processes=100, memory_bytes=10**9)
    grants = Grants(write=(place.inside,), disk=(place.inside, 1_000_000), limits=limits)
    warden = await Warden.start(grants, namespaces=namespaces)
    for what in ("disk_bytes is measured", "memory_bytes holds for each process"):
        assert any(what in note for note in warden.confinement.notes), "a limit is reported as what it is"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        done = await warden.run(place.command("bash", "-c", "head -c 3000000 /dev/zero > big; sleep 1000"))
        assert b"terminal.disk_bytes" in done.output
        assert done.signal == signal.SIGKILL
        assert (await warden.run(place.command("rm", "big"))).exit_code == 0
        await warden.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
async def test_commands_run_as_another_user_where_that_is_asked_for(place: Place) -> None:
    from hermes_ws.warden import bubblewrap

    os.chown(place.inside, 65534, 65534)
    grants = Grants(write=(place.inside,), user=(65534, 65534))
    if bubblewrap.find() is None:
        with pytest.raises(errors.ConfinementUnavailable):
            await Warden.start(grants)
        return
    with pytest.raises(errors.ConfinementUnavailable, match="needs bubblewrap"):
        await Warden.start(grants, namespaces=None)
    warden = await Warden.start(grants)
    assert warden.confinement.dropped_capabilities
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        done = await warden.run(place.command("bash", "-c", "id -u; id -G; echo x > made; cat /etc/shadow; kill -9 1"))
        await warden.close()
    assert done.output.split(b"\n")[:2] == [b"65534", b"65534"]
    assert (place.inside / "made").stat().st_uid == 65534


@pytest.mark.parametrize("place", [*SYSTEM[:2], "/opt"])
def test_homes_where_every_child_may_read_are_refused(place: str, tmp_path: Path) -> None:
    from pathlib import Path as Real

    with pytest.raises(errors.ProfileUnusable, match="Homes cannot lie"):
        refuse_granted_homes([Real(os.path.realpath(place)) / "homes"])
    refuse_granted_homes([tmp_path])
