"""What an attacker tries who knows the kernel: run inside of a profile, against processes of another and the server.

Ways that have no path, or that go around one. It prints one line for each: `<way> refused` or `<way> reached`.
`python attacker.py <other home> <key of memory and messages outside> <queue outside> <process>…`
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable

X86 = os.uname().machine == "x86_64"
PIDFD_SEND_SIGNAL, PIDFD_OPEN, PIDFD_GETFD, PROCESS_MADVISE = 424, 434, 438, 440
OPEN_TREE, MOVE_MOUNT, OPENAT2, IO_URING_SETUP = 428, 429, 437, 425
KCMP, PERF_EVENT_OPEN, IOPRIO_SET, SCHED_SETATTR = (312, 298, 251, 314) if X86 else (272, 241, 30, 274)
MIGRATE_PAGES, MOVE_PAGES, GET_ROBUST_LIST, BPF = (256, 279, 274, 321) if X86 else (238, 239, 100, 280)
KEYCTL, ADD_KEY, REQUEST_KEY = (250, 248, 249) if X86 else (219, 217, 218)
F_SETSIG, O_PATH, TIOCSTI = 10, os.O_PATH, 0x5412
NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def call(number: int, *arguments: int | bytes | ctypes.Array[ctypes.c_char]) -> int:
    """A call of the kernel by number; raises OSError."""
    words = [ctypes.c_ulong(each & (2**64 - 1)) if isinstance(each, int) else each for each in arguments]
    return checked(int(libc.syscall(ctypes.c_long(number), *words)))


def checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(64)


def read_all(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def attempt(name: str, way: Callable[[], object]) -> None:
    try:
        reached = way()
    except OSError:
        reached = False
    print(name, "refused" if reached is False else "reached", flush=True)


def at_process(pid: int) -> None:
    """All that the kernel lets one process of a user do to another one, if nothing is in its way."""
    room = ctypes.create_string_buffer(64)
    vector = struct.pack("QQ", ctypes.addressof(room), 64)
    own = os.getpid()

    def through_pidfd(number: int, *arguments: int) -> int:
        return call(number, call(PIDFD_OPEN, pid, 0), *arguments)

    def owned() -> bool:
        """Have the kernel send the signal when something can be read; whether it did shows outside."""
        readable, writable = os.pipe()
        fcntl.fcntl(readable, fcntl.F_SETOWN, pid)
        fcntl.fcntl(readable, F_SETSIG, int(signal.SIGKILL))
        fcntl.fcntl(readable, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        os.write(writable, b"x")
        return False

    for name in ("environ", "mem", "maps", "cmdline", "fd/0", "root/etc/passwd", "task"):
        place = f"/proc/{pid}/{name}"
        attempt(f"{place}", lambda place=place: os.listdir(place) if place.endswith("task") else read(place))
    attempt("mem written", lambda: os.open(f"/proc/{pid}/mem", os.O_RDWR))
    attempt("fds listed", lambda: os.listdir(f"/proc/{pid}/fd"))
    for descriptor in (0, 3, 5):
        attempt("pidfd_getfd", lambda descriptor=descriptor: through_pidfd(PIDFD_GETFD, descriptor, 0))
    attempt("setns", lambda: checked(libc.setns(call(PIDFD_OPEN, pid, 0), NEW_USER | NEW_MOUNTS)))
    attempt("process_madvise", lambda: through_pidfd(PROCESS_MADVISE, 0, 0, 4, 0))
    attempt("pidfd_send_signal", lambda: through_pidfd(PIDFD_SEND_SIGNAL, int(signal.SIGTERM), 0, 0))
    attempt("kcmp", lambda: call(KCMP, pid, own, 0, 0, 0))
    attempt("process_vm_readv", lambda: checked(libc.process_vm_readv(pid, vector, 1, vector, 1, 0)))
    attempt("process_vm_writev", lambda: checked(libc.process_vm_writev(pid, vector, 1, vector, 1, 0)))
    attempt("ptrace attach", lambda: checked(libc.ptrace(16, pid, 0, 0)))
    attempt("ptrace seize", lambda: checked(libc.ptrace(0x4206, pid, 0, 0)))
    attempt("perf", lambda: call(PERF_EVENT_OPEN, struct.pack("II", 1, 128) + bytes(120), pid, -1, -1, 0))
    attempt("migrate_pages", lambda: call(MIGRATE_PAGES, pid, 64, struct.pack("Q", 1), struct.pack("Q", 1)))
    attempt("move_pages", lambda: call(MOVE_PAGES, pid, 0, 0, 0, 0, 0))
    attempt("robust list", lambda: call(GET_ROBUST_LIST, pid, bytes(8), bytes(8)))
    attempt("affinity", lambda: os.sched_setaffinity(pid, {0}))
    attempt("scheduler", lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)))
    attempt("sched_setattr", lambda: call(SCHED_SETATTR, pid, struct.pack("IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0), 0))
    attempt("ioprio", lambda: call(IOPRIO_SET, 1, pid, 3 << 13))
    attempt("nice", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
    attempt("limits", lambda: checked(libc.prlimit(pid, 7, struct.pack("QQ", 8, 8), 0)))
    attempt("kill", lambda: os.kill(pid, signal.SIGTERM))
    attempt("queued signal", lambda: checked(libc.sigqueue(pid, int(signal.SIGTERM), 0)))
    attempt("signal on input", owned)


def at_machine(other: str, key: int, queue: str) -> None:
    """What is shared by all processes of a machine, or named by something else than a path."""
    room = ctypes.create_string_buffer(512)
    attempt("shared memory", lambda: checked(libc.shmget(key, 0, 0)))
    attempt("semaphores", lambda: checked(libc.semget(key, 0, 0)))
    attempt("messages", lambda: checked(libc.msgget(key, 0)))
    # Without a key: numbers are guessed, beginning with the first.
    for number in range(32):
        attempt("memory by number", lambda number=number: checked(libc.shmctl(number, 2, room)))
        attempt("semaphores by number", lambda number=number: checked(libc.semctl(number, 0, 2, room)))
        attempt("messages by number", lambda number=number: checked(libc.msgctl(number, 2, room)))
    attempt("posix queue", lambda: checked(libc.mq_open(queue.encode(), os.O_RDWR)))
    attempt("posix queue removed", lambda: checked(libc.mq_unlink(queue.encode())))
    for number in (KEYCTL, ADD_KEY, REQUEST_KEY):
        attempt("keyring", lambda number=number: call(number, 0, -3, 0, 0, 0))
    attempt("io_uring", lambda: call(IO_URING_SETUP, 4, room))
    attempt("bpf", lambda: call(BPF, 5, struct.pack("II", 2, 1) + bytes(100), 48))
    attempt("everyone's priority", lambda: os.setpriority(os.PRIO_USER, os.getuid() + 1, 19))
    attempt("typing into a terminal", lambda: fcntl.ioctl(0, TIOCSTI, b"x"))
    attempt("control groups", lambda: os.mkdir("/sys/fs/cgroup/mine"))
    for place in ("/dev/shm", "/tmp", "/var/tmp"):
        # In namespaces there are two of these, and they are the warden's own.
        with contextlib.suppress(OSError):
            attempt(f"canary in {place}", lambda place=place: "hermes-canary" in os.listdir(place))
    for flags in (0, 0x08, 0x10):
        how = struct.pack("QQQ", os.O_RDONLY, 0, flags)
        attempt("openat2", lambda how=how: call(OPENAT2, -100, f"{other}/SOUL.md".encode(), how, len(how)))
    attempt("by a descriptor without rights", lambda: _reopened(other))
    attempt("a descriptor sent along", lambda: _sent(other))
    attempt("by a program that is no file", lambda: _from_memory(other))
    attempt("core", lambda: bool(os.path.exists("/proc/self")) and _dumps())


def in_own_namespaces(other: str) -> None:
    """As root of a user namespace: all capabilities, and nothing to use them on."""
    if os.fork():
        os.wait()
        return
    try:
        checked(libc.unshare(NEW_USER | NEW_MOUNTS))
    except OSError:
        os._exit(0)
    attempt("bind mount", lambda: checked(libc.mount(other.encode(), b"door", None, 4096, None)))
    attempt("remount", lambda: checked(libc.mount(None, b"/", None, 32 | 4096, None)))
    attempt("proc mounted", lambda: checked(libc.mount(b"proc", b"door", b"proc", 0, None)))
    attempt("tree opened", lambda: os.listdir(call(OPEN_TREE, -100, other.encode(), 1)))
    attempt("root moved", lambda: call(MOVE_MOUNT, call(OPEN_TREE, -100, b"/", 1), b"", -100, b"door", 4))
    attempt("read as root", lambda: read(f"{other}/SOUL.md"))
    attempt("read from another root", lambda: _from_another_root(other))
    os._exit(0)


def _from_another_root(other: str) -> object:
    """The old way out of a directory that was made the root: to stay outside of a second one, and go up."""
    os.chroot("door")
    for _ in range(40):
        os.chdir("..")
    os.chroot(".")
    return read(f"{other}/SOUL.md")


def _reopened(other: str) -> object:
    return read(f"/proc/self/fd/{os.open(other + '/SOUL.md', O_PATH)}")


def _sent(other: str) -> bool:
    """Through a socket to itself, which the kernel takes for another process that may have more rights."""
    here, there = socket.socketpair()
    with here, there:
        socket.send_fds(here, [b"x"], [os.open(other + "/SOUL.md", O_PATH)])
        _, [got], _, _ = socket.recv_fds(there, 1, 1)
        try:
            os.read(got, 1)
        except OSError:
            return bool(os.open("SOUL.md", os.O_RDONLY, dir_fd=os.open(other, O_PATH)))
    return True


def _from_memory(other: str) -> bool:
    """A copy of a program in memory has no path that a rule could name; it is as confined as who starts it."""
    program = os.memfd_create("cat", 0)
    os.write(program, read_all("/bin/cat"))
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        os.execve(program, ["cat", f"{other}/SOUL.md"], {})
    finally:
        os._exit(1)


def _dumps() -> bool:
    import resource

    return resource.getrlimit(resource.RLIMIT_CORE) != (1, 1)


if __name__ == "__main__":
    os.makedirs("door", exist_ok=True)
    for each in sys.argv[4:]:
        at_process(int(each))
    at_machine(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    in_own_namespaces(sys.argv[1])
    print("through", flush=True)
