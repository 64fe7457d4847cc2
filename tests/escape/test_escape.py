"""Ways out of a tool's shell that were tried elsewhere, each against a real profile: refused, and nothing harmed."""

from __future__ import annotations

import os
import socket
import stat
import sys
from pathlib import Path

import pytest
import trio

from hermes_ws.contract import errors
from hermes_ws.session.hands import SessionHands
from hermes_ws.warden import descendants
from tests.escape.conftest import CANARY, Cell
from tests.session.house import eventually, new_session

WAYS = (
    "ln -s {other}/.env soft; cat soft",
    "ln -s {other} door; cat door/SOUL.md; ls door/",
    "ln {other}/SOUL.md hard; cat hard",
    "cat ../../../work/.env; cat {other}/SOUL.md",
    "cp -r {other} copy; cat copy/SOUL.md",
    "mv {other} mine; cat mine/SOUL.md",
    "cat {root}/default/.env ../../.env ../../config.yaml; ls ../..",
    "tar c {other} | tar x -O",
    "cd {other} && cat SOUL.md",
    "head -c 1000 {other}/state/sessions.db",
    "rm -rf {other}; echo x > {other}/SOUL.md; chmod 777 {other}; touch {other}/new",
    "mkdir m; mount --bind {other} m; cat m/SOUL.md",
    "unshare -Urm sh -c 'mkdir -p m; mount --bind {other} m && cat m/SOUL.md'",
    "nsenter -t {server} -m cat {other}/SOUL.md",
    "chroot / cat {other}/SOUL.md; cat /proc/1/root{other}/SOUL.md; cat /proc/{server}/root{other}/SOUL.md",
    "cat /proc/{server}/cwd/SOUL.md /proc/{server}/environ /proc/{server}/maps; ls -l /proc/{server}/fd/",
    "for f in /proc/[0-9]*/environ; do cat $f; done; for f in /proc/[0-9]*/fd/*; do timeout 0.1 head -c 1000 $f; done",
    "kill -9 {server}; kill -STOP {server}; kill -9 -1; kill -9 1; kill -9 $PPID",
    "mknod d b 8 0; cat /dev/mem /dev/kmsg /dev/sda /dev/vda",
    "echo c > /proc/sysrq-trigger; echo 0 > /proc/sys/kernel/randomize_va_space",
    "sudo -n true; su -c true; passwd -d root; echo x >> /etc/passwd",
)
"""Each a line of a shell; `{other}` is the other home, `{root}` the root of homes, `{server}` the server's process."""


async def test_a_way_out_is_none(cell: Cell) -> None:
    words = {"other": cell.other, "root": cell.house.root, "server": os.getpid()}
    before = sorted(path.name for path in cell.other.iterdir())
    for number, script in enumerate(WAYS):
        place = f"mkdir try{number} && cd try{number} &&"
        ran = await cell.run(f"{place} ({script.format(**words)}) 2>&1 </dev/null | head -c 60000")
        assert CANARY not in ran.output, script
        assert (cell.other / "SOUL.md").read_text() == CANARY, script
        assert sorted(path.name for path in cell.other.iterdir()) == before, script
    assert (await cell.run("echo alive")).output == "alive\n"


async def test_neither_the_warden_nor_a_sibling_can_be_traced_or_read(cell: Cell) -> None:
    """A tool server's key in the environment of a sibling stays its own (ENV-09)."""
    key = "key-of-a-tool-server-9999"
    server = await cell.hands.open_pipe(
        ["/bin/sh", "-c", "echo $$; exec sleep 1000"], env={"SERVER_KEY": key, "PATH": "/usr/bin:/bin"}
    )
    try:
        pid = (await server.receive()).decode().strip()
        granted = await cell.runtime.warden_for(cell.runtime.scope, cell.home)
        warden = 1 if cell.namespaces else granted.warden.statistics().pid
        ran = await cell.run(
            f"""{sys.executable} - <<'END'
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for pid in ({pid}, {warden}):
    for name in ("environ", "mem", "maps", "auxv", "stack", "syscall"):
        try: print(name, len(open(f"/proc/{{pid}}/{{name}}", "rb").read(100)))
        except OSError as error: print(name, "refused")
    for request in (16, 0x4206):
        print("ptrace", libc.ptrace(request, pid, 0, 0))
    print("readv", libc.process_vm_readv(pid, 0, 0, 0, 0, 0))
END
strings -a /proc/{pid}/environ; cat /proc/{pid}/environ; true"""
        )
        assert key not in ran.output
        lines = ran.output.split("\n")
        assert [line for line in lines if line.startswith("ptrace")] == ["ptrace -1"] * 4
        assert not [
            line for line in lines if line.split(" ")[0] in ("environ", "mem", "maps") and "refused" not in line
        ]
        assert not server.ended
    finally:
        await server.aclose()


async def test_signals_from_inside_reach_neither_siblings_nor_the_server(cell: Cell) -> None:
    sleeper = await cell.hands.start("echo $$; exec sleep 1000", cwd=None)
    with trio.fail_after(30):
        while not (pid := (await cell.hands.process_output(sleeper.process_id, limit=20)).strip()):  # noqa: ASYNC110
            await trio.sleep(0.01)
    ran = await cell.run(f"kill -9 {pid} || echo refused; kill -9 {os.getpid()} || echo refused too")
    assert ran.output.count("refused") == 3 or "refused too" in ran.output
    assert cell.hands.processes()[0].running


SOCKETS = """
import socket, sys
for place in sys.argv[1:]:
    kind, _, name = place.partition(":")
    try:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect("\\0" + name if kind == "abstract" else name)
        print(kind, "reached")
    except OSError as error:
        print(kind, "refused")
"""


async def test_no_socket_outside_is_reached(cell: Cell, tmp_path: Path) -> None:
    """The server's own, tmux's, a session bus's: each 0600, of the same user, with a path or an abstract name."""
    outside = tmp_path / "outside"
    outside.mkdir()
    named = {"tmux": outside / "tmux", "bus": outside / "bus", "server": cell.other / "run" / "gateway.sock"}
    listeners: list[socket.socket] = []
    try:
        for path in named.values():
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(path))
            path.chmod(stat.S_IRUSR | stat.S_IWUSR)
            listener.listen()
            listeners.append(listener)
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind(f"\0hermes-escape-{os.getpid()}")
        abstract.listen()
        listeners.append(abstract)
        words = [f"{kind}:{path}" for kind, path in named.items()] + [f"abstract:hermes-escape-{os.getpid()}"]
        ran = await cell.run(f"{sys.executable} -c '{SOCKETS}' {' '.join(words)}")
    finally:
        for listener in listeners:
            listener.close()
    assert ran.output.splitlines() == ["tmux refused", "bus refused", "server refused", "abstract refused"]


async def test_a_session_directory_that_contains_the_homes_is_refused(cell: Cell, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(cell.house.root)
    for directory in (cell.house.root, cell.house.root.parent, Path("/"), cell.other, cell.other / "home", link):
        with pytest.raises(errors.DirectoryRefused):
            await new_session(cell.runtime, cwd=str(directory))


async def test_a_directory_that_becomes_a_link_to_another_home_opens_nothing(cell: Cell, tmp_path: Path) -> None:
    """Checked, then swapped by a child, then used: the kernel is given what was opened, not what is named."""
    place = tmp_path / "project"
    place.mkdir()
    session, _, _ = await new_session(cell.runtime, cwd=str(place))
    del session
    place.rmdir()
    place.symlink_to(cell.other)
    hands = SessionHands(cell.runtime, cell.runtime.scope, place)
    try:
        ran = await hands.run(f"cat {place}/SOUL.md SOUL.md", cwd=None, deadline_s=30, on_output=lambda _text: None)
    except errors.HermesError:
        return
    assert CANARY not in ran.output


async def test_a_daemon_that_left_everything_ends_with_the_command_that_is_cancelled(cell: Cell) -> None:
    script = (
        "setsid sh -c 'setsid sh -c \"setsid sleep 4321 & echo up > up; sleep 4321\" & exit'"
        " </dev/null >/dev/null 2>&1 &"
        " while [ ! -s up ]; do sleep 0.01; done; echo ready; sleep 4321"
    )
    with trio.CancelScope() as scope:
        await cell.hands.run(script, cwd=None, deadline_s=60, on_output=lambda _text: scope.cancel())
    assert scope.cancelled_caught
    granted = await cell.runtime.warden_for(cell.runtime.scope, cell.home)
    assert granted.warden.alive
    await eventually(lambda: not _sleepers(granted.warden.statistics().pid, b"4321"))


async def test_a_daemon_whose_command_ended_by_itself_goes_with_its_warden(cell: Cell) -> None:
    script = "setsid sh -c 'echo up > up; exec sleep 5432' </dev/null >/dev/null 2>&1 &"
    await cell.run(f"{script} while [ ! -s up ]; do sleep 0.01; done")
    granted = await cell.runtime.warden_for(cell.runtime.scope, cell.home)
    left = _sleepers(granted.warden.statistics().pid, b"5432")
    assert len(left) == 1
    await granted.warden.close()
    assert not descendants.lives(left[0])


class TestStorms:
    @pytest.fixture
    def config(self) -> str:
        return "  processes: 40\n  disk_bytes: 3000000\n  open_files: 64\n  memory_bytes: 300000000\n"

    async def test_a_fork_storm_ends_and_the_server_goes_on(self, cell: Cell) -> None:
        ran = await cell.run(":(){ :|:& };:; sleep 5; echo survived", deadline_s=20)
        assert ran.exit_code != 0 or "survived" in ran.output
        granted = await cell.runtime.warden_for(cell.runtime.scope, cell.home)
        await eventually(lambda: len(descendants.below(granted.warden.statistics().pid)) <= 45)
        with trio.fail_after(30):
            while (await cell.run("echo alive")).output != "alive\n":  # noqa: ASYNC110 - the storm abates by itself
                await trio.sleep(0.1)

    async def test_filling_the_disk_quota_ends_the_command_and_says_so(self, cell: Cell) -> None:
        ran = await cell.run("dd if=/dev/zero of=big bs=100000 count=100 2>/dev/null; sleep 60", deadline_s=50)
        assert not ran.timed_out
        assert "terminal.disk_bytes" in ran.output
        assert (await cell.run("rm big && echo freed")).output == "freed\n"
        assert (await cell.run("sleep 1.5; echo alive")).output == "alive\n"

    async def test_memory_and_descriptors_are_bounded(self, cell: Cell) -> None:
        ran = await cell.run(f"{sys.executable} -c 'bytearray(800_000_000)' 2>&1 | tail -1; ulimit -n")
        assert ran.output.splitlines() == ["MemoryError", "64"]


async def test_a_child_has_no_descriptor_that_was_left_open(cell: Cell) -> None:
    with open(cell.other / "SOUL.md") as left_open:  # noqa: ASYNC230
        os.set_inheritable(left_open.fileno(), True)
        ran = await cell.run(
            f"{sys.executable} -c 'import os, stat\nfor fd in range(3, 256):\n"
            "    try: state = os.fstat(fd)\n    except OSError: continue\n"
            "    print(fd, stat.S_IFMT(state.st_mode))'"
        )
    assert ran.output == ""


STEERING = ("LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "Path", "BASH_ENV", "PYTHONPATH", "IFS", "GIT_SSH_COMMAND")


async def test_a_secret_cannot_be_called_like_something_that_steers_programs(cell: Cell) -> None:
    lines = "".join(f"{name}=/evil/value/1234\n" for name in STEERING)
    home = cell.house.home("steered", config="terminal:\n  env: [OK]\n", env=f"{lines}OK=fine-value\n")
    runtime = await cell.house.runtime("steered")
    hands = SessionHands(runtime, runtime.scope, runtime.home.user)
    ran = await hands.run("env; echo $OK | wc -c", cwd=None, deadline_s=30, on_output=lambda _text: None)
    assert "/evil/value" not in ran.output
    assert ran.output.splitlines()[-1] == "11"
    for name in STEERING:
        (home / "config.yaml").write_text(f"terminal:\n  env: [{name}]\n")
        with pytest.raises(errors.ProfileUnusable, match=name):
            await runtime.reload()


def _sleepers(pid: int, word: bytes) -> list[descendants.Seen]:
    found: list[descendants.Seen] = []
    for seen in descendants.below(pid):
        try:
            line = Path(f"/proc/{seen.pid}/cmdline").read_bytes()
        except OSError:
            continue
        if word in line and line.startswith(b"sleep"):
            found.append(seen)
    return found
