"""What a confined command cannot do, tried with real commands against real files, processes and sockets."""

from __future__ import annotations

import errno
import os
import re
import resource
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from hermes_ws.contract import errors
from hermes_ws.warden.bubblewrap import Choice, find
from hermes_ws.warden.grants import Confinement, Grants
from hermes_ws.warden.hands import Warden, probe
from hermes_ws.warden.landlock import kernel_abi

if TYPE_CHECKING:
    from tests.warden.conftest import Place, Shell

pytestmark = pytest.mark.skipif(kernel_abi() < 6, reason="needs Landlock with scopes, ABI 6")


async def test_the_probe_reports_what_it_tried(namespaces: Choice) -> None:
    found = await probe(namespaces=namespaces)
    assert found.level == "kernel"
    assert found.landlock_abi >= 6
    assert found.seccomp
    assert found.dropped_capabilities
    assert found.bubblewrap == (namespaces is not None)
    assert any("Modes, owners and times" in note for note in found.notes) == (namespaces is None)
    assert found.processes in ("kernel", "counted")


async def test_work_in_the_granted_directory_is_possible(shell: Shell, place: Place) -> None:
    done = await shell("mkdir -p a/b && echo hi > a/b/c && mv a/b/c d && cat d && rm -r a && cat ../shelf/secret")
    assert (done.exit_code, done.output) == (0, b"hi\ncanary-shelf")


@pytest.mark.parametrize(
    "script",
    [
        "cat {outside}/secret",
        "ls {outside}",
        "echo x > {outside}/new",
        "echo x >> {outside}/secret",
        "rm {outside}/secret",
        "mv secret {outside}/moved",
        "mv {outside}/secret moved",
        "ln {outside}/secret hard && cat hard",
        "ln -s {outside}/secret soft && cat soft",
        "ln -s {outside} door && echo x > door/new",
        "truncate -s 0 {outside}/secret",
        "echo x > {shelf}/new",
        "mkdir {outside}/d",
        "mkfifo {outside}/f",
        "mknod device c 1 3",
        "ls /",
        "ls {outside}/..",
        "cat /etc/shadow",
        "ls /root",
        "cat /proc/{server}/environ",
        "cat /proc/{server}/cmdline",
        "cat /proc/{warden}/environ",
        "ls /proc/{server}/fd",
        "kill -0 {server}",
        "kill -0 {warden}",
        "kill -0 1",
        "mount -t tmpfs none .",
        "chown 1 secret",
        "> /dev/tcp/127.0.0.1/1 ; false",
    ],
)
async def test_a_command_cannot(script: str, shell: Shell, place: Place, warden: Warden) -> None:
    words = {"server": os.getpid(), "warden": warden.statistics().pid}
    done = await shell(script.format(outside=place.outside, shelf=place.shelf, **words))
    assert done.exit_code != 0
    assert b"canary-outside" not in done.output
    assert sorted(path.name for path in place.outside.iterdir()) == ["secret"]
    assert (place.outside / "secret").read_text() == "canary-outside"
    assert (place.shelf / "secret").read_text() == "canary-shelf"


async def test_the_named_files_of_proc_and_the_devices_are_there(shell: Shell) -> None:
    done = await shell("cat /proc/meminfo /proc/cpuinfo /etc/passwd >/dev/null && head -c 8 /dev/urandom | wc -c")
    assert (done.exit_code, done.output) == (0, b"8\n")


async def test_siblings_cannot_read_trace_or_signal_each_other(
    warden: Warden, place: Place, python: Shell, nursery: trio.Nursery
) -> None:
    """ENV-09: a key in the environment of one child is not read by the next."""
    said: list[bytes] = []
    told = trio.Event()

    def listen(piece: bytes) -> None:
        said.append(piece)
        told.set()

    sleeper = place.command(
        "bash", "-c", "echo $$; exec sleep 1000", env={"PATH": "/usr/bin:/bin", "KEY": "canary-key"}
    )
    nursery.start_soon(warden.run, sleeper, listen)
    await told.wait()
    pid = int(b"".join(said))
    # In a namespace it has a number of its own there, by which both know it; what may be looked at is a command line.
    done = await python(
        "import ctypes, os, sys\n"
        "pid = int(sys.argv[1])\n"
        "for name in ('environ', 'cmdline', 'maps', 'mem'):\n"
        "    try: print(name, open(f'/proc/{pid}/{name}', 'rb').read(100))\n"
        "    except OSError as error: print(name, error.errno)\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print('ptrace', libc.ptrace(16, pid, 0, 0), ctypes.get_errno())\n"
        "try: os.kill(pid, 9); print('killed')\n"
        "except OSError as error: print('kill', error.errno)\n",
        str(pid),
    )
    told = done.output.decode().splitlines()
    assert told.pop(1) == ("cmdline b'sleep\\x001000\\x00'" if warden.confinement.bubblewrap else "cmdline 13")
    assert told == [
        "environ 13",
        "maps 13",
        "mem 13",
        "ptrace -1 1",
        "kill 1",
    ]


SOCKETS = """
import socket, sys
def attempt(name, work):
    try: work(); print(name, "worked")
    except OSError as error: print(name, error.errno)
path, abstract = sys.argv[1], chr(0) + sys.argv[2]
attempt("path", lambda: socket.socket(socket.AF_UNIX).connect(path))
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect(abstract))
attempt("pair", lambda: socket.socketpair())
def sideways():
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"x", path + ".dgram")
attempt("datagram", sideways)
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", int(sys.argv[3]))))
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
attempt("six", lambda: socket.socket(socket.AF_INET6))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM).close())
attempt("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
"""


async def _try_sockets(grants: Grants, place: Place, namespaces: Choice) -> dict[str, str]:
    path, abstract = str(place.inside / "s"), f"hermes-ws-test-{os.getpid()}"
    with (
        socket.socket(socket.AF_UNIX) as on_path,
        socket.socket(socket.AF_UNIX) as on_name,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
        socket.create_server(("127.0.0.1", 0)) as tcp,
    ):
        on_path.bind(path)
        on_path.listen()
        on_name.bind("\0" + abstract)
        on_name.listen()
        datagrams.bind(path + ".dgram")
        words = (sys.executable, "-c", SOCKETS, path, abstract, str(tcp.getsockname()[1]))
        warden = await Warden.start(grants, namespaces=namespaces)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(warden.serve)
            done = await warden.run(place.command(*words))
            await warden.close()
    return dict(line.split(" ", 1) for line in done.output.decode().splitlines())


async def test_unix_sockets_lead_nowhere_and_pairs_of_streams_stay(place: Place) -> None:
    tried = await _try_sockets(place.grants, place, None)
    refused = str(errno.EAFNOSUPPORT)
    assert [tried[name] for name in ("path", "abstract", "datagram")] == [refused] * 3
    assert [tried[name] for name in ("pair", "tcp", "udp")] == ["worked"] * 3


async def test_in_namespaces_the_own_sockets_work_and_abstract_ones_are_refused(place: Place) -> None:
    """What is outside has no path in there; what is in a granted directory was granted."""
    if find() is None:
        pytest.skip("bubblewrap is not installed")
    tried = await _try_sockets(place.grants, place, "auto")
    assert tried["abstract"] == str(errno.EPERM)
    assert [tried[name] for name in ("path", "pair", "tcp", "udp")] == ["worked"] * 4


async def test_a_denied_network_leaves_no_family_that_leads_out(place: Place, namespaces: Choice) -> None:
    tried = await _try_sockets(Grants(write=(place.inside,), network="deny"), place, namespaces)
    assert [tried[name] for name in ("tcp", "udp", "six", "vsock")] == ["97"] * 4
    assert (tried["path"] == "worked") == (namespaces is not None)
    assert tried["abstract"] != "worked"
    assert [tried[name] for name in ("pair", "netlink")] == ["worked"] * 2


async def test_allowed_unix_sockets_still_do_not_reach_abstract_names(place: Place, namespaces: Choice) -> None:
    tried = await _try_sockets(Grants(write=(place.inside,), unix_sockets="allow"), place, namespaces)
    assert [tried[name] for name in ("path", "datagram", "pair")] == ["worked"] * 3
    assert tried["abstract"] == "1"


async def test_the_kernel_s_side_doors_are_shut(python: Shell, namespaces: Choice) -> None:
    # Another process of the same user, whose limits and order could otherwise be set from in here.
    victim = await trio.lowlevel.open_process(["sleep", "1000"])
    before = resource.prlimit(victim.pid, resource.RLIMIT_NOFILE), os.getpriority(os.PRIO_PROCESS, victim.pid)
    done = await python(
        "import ctypes, os, resource, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def call(name, *words):\n"
        "    print(name, libc.syscall(*words), ctypes.get_errno())\n"
        "call('io_uring', 425, 0, 0)\n"
        "x86 = os.uname().machine == 'x86_64'\n"
        "call('keyctl', 250 if x86 else 219, 0, 0)\n"
        "call('add_key', 248 if x86 else 217, 0, 0, 0, 0, 0)\n"
        "for name, work in (('limits', lambda: resource.prlimit(int(sys.argv[1]), resource.RLIMIT_NOFILE, (3, 3))),\n"
        "                   ('nice', lambda: os.setpriority(os.PRIO_PROCESS, int(sys.argv[1]), 19)),\n"
        "                   ('all nice', lambda: os.setpriority(os.PRIO_USER, 0, 19)),\n"
        "                   ('own', lambda: resource.prlimit(0, resource.RLIMIT_NOFILE)),\n"
        "                   ('own nice', lambda: os.setpriority(os.PRIO_PROCESS, 0, 1))):\n"
        "    try: work(); print(name, 'worked')\n"
        "    except OSError as error: print(name, error.errno)\n"
        "print('bounding', sum(libc.prctl(23, cap) for cap in range(30)))\n",
        str(victim.pid),
    )
    after = resource.prlimit(victim.pid, resource.RLIMIT_NOFILE), os.getpriority(os.PRIO_PROCESS, victim.pid)
    victim.kill()
    await victim.wait()
    *said, bounding = done.output.decode().splitlines()
    assert said == [
        "io_uring -1 1",
        "keyctl -1 1",
        "add_key -1 1",
        "limits 1",
        "nice 1",
        "all nice 1",
        "own worked",
        "own nice worked",
    ]
    # Without a user namespace only root may give these up; nobody else gets any of them, since no program grants more.
    if os.getuid() == 0 or namespaces is not None:
        assert bounding == "bounding 0"
    assert after == before


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="needs the second instruction set of x86")
async def test_a_foreign_architecture_ends_the_process(python: Shell) -> None:
    done = await python(
        "import ctypes, mmap\n"
        "page = mmap.mmap(-1, 4096, prot=7)\n"
        "page.write(bytes.fromhex('b814000000cd80c3'))\n"
        "entry = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))\n"
        "print('called', entry())\n"
    )
    assert done.signal is not None
    assert b"called" not in done.output


async def test_git_pipelines_and_virtual_environments_work_inside(shell: Shell, python: Shell, place: Place) -> None:
    done = await shell(
        "set -o pipefail; git init -q . && git config user.name A && git config user.email a@b && git add . &&"
        " git commit -q -m first && git log --format=%s | tr a-z A-Z && diff <(echo a) <(echo a) && cat <<<done"
    )
    assert (done.exit_code, done.output) == (0, b"FIRST\ndone\n")
    made = await python("import venv; venv.create('env', with_pip=False)")
    assert (made.exit_code, made.output) == (0, b"")
    used = await shell("env/bin/python -c 'import sys, ssl, multiprocessing; print(sys.prefix)'")
    assert used.output.decode().strip() == str(place.inside / "env")


@pytest.mark.parametrize("abi", range(1, 8))
async def test_an_older_kernel_s_landlock_still_keeps_files_apart(abi: int, place: Place, namespaces: Choice) -> None:
    warden = await Warden.start(place.grants, probed=Confinement(abi, True, namespaces is not None, True))
    assert warden.confinement.landlock_abi == min(abi, kernel_abi())
    assert any("Signals" in note for note in warden.confinement.notes) == (abi < 6 and namespaces is None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        done = await warden.run(place.command("bash", "-c", f"cat secret; echo x > y; cat {place.outside}/secret"))
        assert done.output.startswith(b"canary-inside")
        assert re.search(rb"secret: (Permission denied|No such file)", done.output)
        await warden.close()


async def test_required_is_refused_where_there_is_no_landlock(place: Place) -> None:
    none = Confinement(0, True, False, True)
    with pytest.raises(errors.ConfinementUnavailable, match="no Landlock"):
        await Warden.start(Grants(write=(place.inside,), confine="required"), probed=none)


async def test_auto_says_aloud_that_there_is_no_landlock_and_checks_files_itself(place: Place) -> None:
    warden = await Warden.start(place.grants, probed=Confinement(0, False, False, True))
    assert warden.confinement.level == "process"
    assert any("no Landlock" in note for note in warden.confinement.notes)
    assert any("No seccomp" in note for note in warden.confinement.notes)
    (place.inside / "door").symlink_to(place.outside)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        assert (await warden.read_file(place.shelf / "secret")).data == b"canary-shelf"
        for path in (place.outside / "secret", place.inside / "door/secret", place.inside / "../outside/secret"):
            with pytest.raises(errors.PermissionDenied):
                await warden.read_file(path)
            with pytest.raises(errors.PermissionDenied):
                await warden.write_file(path, b"x")
        await warden.close()


async def test_off_runs_commands_as_the_user_runs_them(place: Place) -> None:
    warden = await Warden.start(Grants(write=(place.inside,), confine="off"))
    assert warden.confinement.level == "process"
    assert not warden.confinement.seccomp
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        done = await warden.run(place.command("cat", str(place.outside / "secret")))
        assert done.output == b"canary-outside"
        assert (await warden.read_file(place.outside / "secret")).data == b"canary-outside"
        await warden.close()


async def test_a_grant_that_is_not_there_is_said_and_harms_nothing(place: Place, namespaces: Choice) -> None:
    grants = Grants(write=(place.inside,), read=(Path("/nowhere/at/all"),))
    warden = await Warden.start(grants, namespaces=namespaces)
    await warden.close()
    assert "/nowhere/at/all is not granted: No such file or directory." in warden.confinement.notes


async def test_a_grant_that_became_a_link_since_it_was_checked_opens_nothing(place: Place, namespaces: Choice) -> None:
    (place.inside / "door").symlink_to(place.outside)
    (place.inside / "deep").symlink_to(place.outside.parent)
    swapped = (place.inside / "door", place.inside / "deep" / "outside")
    warden = await Warden.start(Grants(write=(place.inside, *swapped), read=swapped), namespaces=namespaces)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(warden.serve)
        done = await warden.run(place.command("cat", str(place.outside / "secret")))
        await warden.close()
    assert done.exit_code != 0
    assert b"canary-outside" not in done.output
    assert sum("is not granted" in note for note in warden.confinement.notes) == 4
