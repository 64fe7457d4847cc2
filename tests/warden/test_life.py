"""How wardens end: with their socket, with their owner, by force; and that nothing below outlives them.

What ends whole processes is tried in a process of its own, which is killed for real.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from hermes_ws.contract import errors
from hermes_ws.warden import descendants, leftovers
from hermes_ws.warden.bubblewrap import Choice, find
from hermes_ws.warden.descendants import Seen
from hermes_ws.warden.grants import Grants, Limits
from hermes_ws.warden.hands import Warden

if TYPE_CHECKING:
    from tests.warden.conftest import Place

ROOT = Path(__file__).parents[2]

DAEMON = "setsid bash -c 'echo $$ > daemon; exec sleep 1000' & while [ ! -s daemon ]; do sleep 0.01; done; echo up"

SERVER = """
import signal, sys, trio
from pathlib import Path
from hermes_ws.warden.grants import Command, Grants
from hermes_ws.warden.hands import Warden
from hermes_ws.warden.subreaper import become_subreaper
from hermes_ws.contract import errors

directory, daemon = Path(sys.argv[1]), sys.argv[2]

def command(script):
    return Command(("bash", "-c", script), directory, {"PATH": "/usr/bin:/bin"}, 1000, 1000)

async def wait_then_fail(warden):
    try:
        await warden.run(command("echo $$ > waiting; sleep 1000 & wait"))
    except errors.WardenFailed:
        print("failed", flush=True)

async def main():
    subreaper = become_subreaper()
    first = await Warden.start(Grants(write=(directory,)), subreaper=subreaper, namespaces=sys.argv[3] or None)
    second = await Warden.start(Grants(write=(directory,)), subreaper=subreaper, namespaces=sys.argv[3] or None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(first.serve)
        nursery.start_soon(second.serve)
        await first.run(command(daemon))
        nursery.start_soon(wait_then_fail, first)
        while not (directory / "waiting").exists() or not (directory / "waiting").read_text().strip():
            await trio.sleep(0.01)
        print("ready", first.statistics().pid, second.statistics().pid, flush=True)
        while first.alive:
            await trio.sleep(0.01)
        done = await second.run(command("echo second lives"))
        print(done.output.decode().strip(), flush=True)
        await trio.to_thread.run_sync(sys.stdin.read)
        nursery.cancel_scope.cancel()

trio.run(main)
"""


def seen(pid: int) -> Seen:
    found = descendants.look(pid)
    assert found is not None
    return found


def pid_in(path: Path) -> int:
    return int(path.read_text())


def below(warden: Seen) -> list[Seen]:
    """What a warden of the server has below itself: a daemon in its own session, and a command with its sleeper."""
    deadline = time.monotonic() + 20
    while len(found := descendants.below(warden.pid)) < 3:
        assert time.monotonic() < deadline, found
        time.sleep(0.01)
    return found


async def gone(*processes: Seen) -> None:
    """Wait until none of them lives; a zombie of init's counts as gone only when it is reaped."""
    with trio.fail_after(20):
        while any((now := descendants.look(one.pid)) and now.started == one.started for one in processes):  # noqa: ASYNC110 - a process of its own has no event
            await trio.sleep(0.01)


@pytest.fixture
def server(tmp_path: Path, namespaces: Choice) -> Iterator[subprocess.Popen[str]]:
    """A server of its own; the test says in which mode by reading from it."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path), DAEMON, str(namespaces or "")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        yield process
        process.kill()


def ready(server: subprocess.Popen[str]) -> tuple[Seen, Seen]:
    assert server.stdout is not None
    word, first, second = server.stdout.readline().split()
    assert word == "ready"
    return seen(int(first)), seen(int(second))


async def test_nothing_survives_a_server_that_is_killed(server: subprocess.Popen[str], tmp_path: Path) -> None:
    """REAP-18: not the wardens, not a running command, not a daemon in a session of its own."""
    first, second = ready(server)
    children = below(first)
    server.kill()
    await gone(first, second, *children)


async def test_a_killed_warden_takes_its_children_along_and_no_other_warden(
    server: subprocess.Popen[str], tmp_path: Path
) -> None:
    first, second = ready(server)
    children = below(first)
    os.kill(first.pid, signal.SIGKILL)
    assert server.stdout is not None
    assert server.stdin is not None
    assert {server.stdout.readline(), server.stdout.readline()} == {"failed\n", "second lives\n"}
    await gone(first, *children)
    server.stdin.close()
    assert server.wait(20) == 0
    await gone(second)


async def test_a_warden_that_is_asked_by_a_signal_ends_everything_below(
    server: subprocess.Popen[str], tmp_path: Path
) -> None:
    first, _ = ready(server)
    children = below(first)
    os.kill(first.pid, signal.SIGTERM)
    await gone(first, *children)


async def test_closing_ends_daemons_and_running_commands(
    place: Place, nursery: trio.Nursery, namespaces: Choice
) -> None:
    warden = await Warden.start(place.grants, namespaces=namespaces)
    nursery.start_soon(warden.serve)
    await warden.run(place.command("bash", "-c", DAEMON))
    below_it = descendants.below(warden.statistics().pid)
    assert below_it
    failed = trio.Event()
    running = trio.Event()

    async def work() -> None:
        with pytest.raises(errors.WardenFailed):
            await warden.run(place.command("bash", "-c", "echo up; sleep 1000 & wait"), lambda _piece: running.set())
        failed.set()

    nursery.start_soon(work)
    await running.wait()
    await warden.close()
    assert not any(descendants.lives(one) for one in below_it)
    await failed.wait()
    assert not warden.alive
    with pytest.raises(errors.WardenFailed, match="has ended"):
        await warden.run(place.command("true"))
    await warden.close()


async def test_cancelling_the_owner_ends_the_warden_first(place: Place, namespaces: Choice) -> None:
    warden = await Warden.start(place.grants, namespaces=namespaces)
    process = seen(warden.statistics().pid)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        nursery.start_soon(
            warden.run,
            place.command("bash", "-c", "echo up; sleep 1000 & setsid sleep 1000 & wait"),
            lambda _piece: nursery.cancel_scope.cancel(),
        )
    assert descendants.look(process.pid) is None
    assert not [one for one in descendants.below(os.getpid()) if one.parent == process.pid]


async def test_a_start_given_up_at_any_moment_leaves_nothing(place: Place, namespaces: Choice) -> None:
    """Bubblewrap's child waits for it before it asks to end with it: killed too early, it would leave it for ever."""
    for tenths in range(120):
        with trio.move_on_after(tenths / 10_000):
            await (await Warden.start(place.grants, namespaces=namespaces)).close()
    with trio.fail_after(10):
        while holding(place.inside):  # noqa: ASYNC110
            await trio.sleep(0.01)


@pytest.mark.skipif(find() is None, reason="bubblewrap is not installed")
def test_what_a_server_killed_while_it_started_a_warden_has_left_is_ended_by_the_next(place: Place) -> None:
    program = find()
    assert program is not None
    told, tell = os.pipe()
    blocked, block = os.pipe()
    held = os.open(place.inside, os.O_PATH)
    room = str(ROOT / "hermes_ws" / "warden")
    options = ["--unshare-user", "--unshare-pid", "--info-fd", str(tell), "--userns-block-fd", str(blocked)]
    argv = [str(program), *options, "--ro-bind", "/", "/", "--as-pid-1", "--die-with-parent", "--", "/bin/sleep", room]
    bubblewrap = subprocess.Popen(argv, pass_fds=(tell, blocked, held))
    for descriptor in (tell, blocked, held):
        os.close(descriptor)
    assert b"child-pid" in os.read(told, 1000)
    assert len(holding(place.inside)) == 2
    assert leftovers.end() == 0
    bubblewrap.kill()
    bubblewrap.wait()
    assert len(holding(place.inside)) == 1
    assert leftovers.end() == 1
    deadline = time.monotonic() + 10
    while holding(place.inside) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not holding(place.inside)
    os.close(told)
    os.close(block)


def holding(directory: Path) -> list[int]:
    """The other processes that live and hold a descriptor of the directory."""
    found: list[int] = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and process.name != str(os.getpid()):
            with contextlib.suppress(OSError):
                if any(os.readlink(each) == str(directory) for each in (process / "fd").iterdir()):
                    found.append(int(process.name))
    return found


async def test_starting_can_be_cancelled_at_any_step(place: Place, namespaces: Choice) -> None:
    before = len(os.listdir("/proc/self/fd"))
    cancelled: list[bool] = []
    for steps in range(1, 20):
        with trio.CancelScope() as scope:
            task = trio.lowlevel.current_task()

            class Cancelling(trio.abc.Instrument):
                left = steps

                def before_task_step(self, running: trio.lowlevel.Task) -> None:
                    if running is task:  # noqa: B023
                        self.left -= 1
                        if self.left == 0:
                            scope.cancel()

            instrument = Cancelling()
            trio.lowlevel.add_instrument(instrument)
            try:
                await (await Warden.start(place.grants, namespaces=namespaces)).close()
            finally:
                trio.lowlevel.remove_instrument(instrument)
        assert descendants.below(os.getpid()) == []
        assert len(os.listdir("/proc/self/fd")) == before
        cancelled.append(scope.cancelled_caught)
        if not cancelled[-1]:
            break
    assert any(cancelled)
    assert not cancelled[-1]


async def test_idleness_is_counted_from_the_last_order(warden: Warden, place: Place) -> None:
    assert warden.idle_since <= trio.current_time()
    before = warden.idle_since
    await warden.run(place.command("true"))
    assert warden.idle_since > before
    assert warden.statistics().orders == 1


async def test_a_program_that_is_no_interpreter_is_a_failure_with_a_reason(place: Place) -> None:
    with pytest.raises(errors.WardenFailed, match="No such file"):
        await Warden.start(place.grants, python="/no/such/python", namespaces=None)
    with pytest.raises(errors.WardenFailed):
        await Warden.start(place.grants, python="/bin/true")
    assert descendants.below(os.getpid()) == []


@pytest.mark.parametrize("path", ["/\0", "relative", "/\ud800"])
async def test_a_grant_that_is_no_path_is_refused_before_anything_starts(path: str) -> None:
    with pytest.raises(errors.InvalidParams):
        await Warden.start(Grants(write=(Path(path),)))
    assert descendants.below(os.getpid()) == []


async def test_a_warden_that_cannot_confine_says_why(place: Place) -> None:
    with pytest.raises(errors.WardenFailed, match="open_files is not a number"):
        await Warden.start(Grants(write=(place.inside,), limits=Limits(open_files=-1)))
    assert descendants.below(os.getpid()) == []


NOBODY = """
import os, sys, trio
from pathlib import Path
from hermes_ws.warden import check
from hermes_ws.warden.grants import Command, Grants, Limits
from hermes_ws.warden.hands import Warden

FORKS = '''
import os, time
try:
    for _ in range(60):
        if not os.fork():
            time.sleep(1000)
except BlockingIOError:
    print("refused")
else:
    time.sleep(1000)
'''
inside, outside = Path(sys.argv[1]), Path(sys.argv[2])
for path in (inside, outside, outside / "secret"):
    os.chown(path, 65534, 65534)
    os.chmod(path, 0o700)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)

async def main():
    grants = Grants(write=(inside,), limits=Limits(processes=20))
    warden = await Warden.start(grants, python="/usr/bin/python3", namespaces=sys.argv[3] or None)
    print(warden.confinement.level, warden.confinement.seccomp, warden.confinement.dropped_capabilities)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        script = f"id -u; echo hi > file; cat file {outside}/secret; kill -0 {os.getpid()} || echo kept inside"
        done = await warden.run(Command(("bash", "-c", script), inside, {"PATH": "/usr/bin:/bin"}, 30, 1000))
        print(done.output.decode())
        done = await warden.run(Command(("/usr/bin/python3", "-c", FORKS), inside, {"PATH": "/usr/bin:/bin"}, 60, 1000))
        print(warden.confinement.processes, done.output.decode().strip() or done.signal)
        await warden.close()

trio.run(main)
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or not os.access("/usr/bin/python3", os.X_OK), reason="needs root and an interpreter for anybody"
)
def test_a_user_without_any_rights_is_confined_as_well(namespaces: Choice) -> None:
    # Not in tmp_path, whose parents only root may enter.
    inside, outside = (Path(tempfile.mkdtemp(prefix=name)) for name in ("inside-", "outside-"))
    try:
        (outside / "secret").write_text("canary-outside")
        done = subprocess.run(
            [sys.executable, "-c", NOBODY, str(inside), str(outside), str(namespaces or "")],
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=60,
        )
    finally:
        shutil.rmtree(inside, ignore_errors=True)
        shutil.rmtree(outside, ignore_errors=True)
    assert done.stdout.splitlines()[:3] == ["kernel True True", "65534", "hi"], done.stderr
    assert ("No such file" if namespaces else "Permission denied") in done.stdout
    assert "kept inside" in done.stdout
    counted = done.stdout.splitlines()[-1]
    if namespaces:
        assert counted == "kernel refused", "in a user namespace of one's own the kernel counts"
    else:
        assert counted.startswith("counted")
        assert "terminal.processes" in done.stdout
    assert "canary" not in done.stdout
