"""How a warden confines itself, once and for all, and what it found out about it.

Two rulesets are made before the door closes: the warden's own, and the one that each child puts on top. They differ in
`/proc`: the warden reads it to find what its children left, a child reads seven files of it that name no process. The
second layer is also what keeps children from each other and from the warden (`/proc/<pid>/environ`, ptrace, signals).
Everything that is reported was tried.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
from collections.abc import Mapping
from typing import Final, NamedTuple, final

from hermes_ws.warden import capabilities, landlock, libc, limits, orders, places, seccomp
from hermes_ws.warden.landlock import Rule
from hermes_ws.warden.limits import ChildLimits

_OOM_SCORE: Final = 300
"""When memory runs out a command goes before the server does."""


@final
class Wishes(NamedTuple):
    """What the server asked for when it started this warden."""

    confine: str
    deny_network: bool
    deny_unix: bool
    read: tuple[str, ...]
    write: tuple[str, ...]
    prefixes: tuple[str, ...]
    abi_ceiling: int
    seccomp: bool
    limits: ChildLimits
    namespaces: bool
    user: tuple[int, int] | None
    disk: tuple[str, int] | None

    @staticmethod
    def parse(order: Mapping[str, object]) -> Wishes:
        """The wishes in the first order; raises `orders.Malformed`."""
        return Wishes(
            confine=orders.text(order, "confine"),
            deny_network=orders.text(order, "network") == "deny",
            deny_unix=orders.text(order, "unix_sockets") == "deny",
            read=orders.texts(order, "read"),
            write=orders.texts(order, "write"),
            prefixes=orders.texts(order, "prefixes"),
            abi_ceiling=orders.integer(order, "abi_ceiling"),
            seccomp=orders.flag(order, "seccomp"),
            limits=ChildLimits.parse(orders.section(order, "limits")),
            namespaces=orders.flag(order, "namespaces"),
            user=_user(order),
            disk=_disk(order),
        )


@final
class Confined(NamedTuple):
    """What became of the wishes, and what the warden needs of it for its children."""

    child_layer: int | None
    signals_scoped: bool
    landlock_abi: int
    seccomp: bool
    dropped_capabilities: bool
    notes: tuple[str, ...]
    namespaces: bool = False
    counts_processes: bool = False
    """Whether the kernel refuses to fork beyond the limit; if not, the warden counts."""

    def readable(self, wishes: Wishes) -> tuple[str, ...] | None:
        """Where files may be read, for the warden to check itself where the kernel does not."""
        if self.child_layer is not None or wishes.confine == "off":
            return None
        return (*places.SYSTEM, *wishes.prefixes, *wishes.read, *wishes.write)

    def writable(self, wishes: Wishes) -> tuple[str, ...] | None:
        """Where files may be written, likewise."""
        return None if self.child_layer is not None or wishes.confine == "off" else wishes.write

    def visible(self, wishes: Wishes) -> tuple[str, ...] | None:
        """What there is at all, in namespaces; nothing where everything can be seen, and is refused by the kernel."""
        if not self.namespaces:
            return None
        return (*places.SYSTEM, *wishes.prefixes, *wishes.read, *wishes.write, "/etc", "/dev", "/tmp")

    def report(self) -> dict[str, object]:
        """The part that the server is told."""
        return {
            "landlock_abi": self.landlock_abi,
            "seccomp": self.seccomp,
            "dropped_capabilities": self.dropped_capabilities,
            "namespaces": self.namespaces,
            "counts_processes": self.counts_processes,
            "notes": list(self.notes),
        }


def prepare() -> None:
    """Set what holds with and without confinement: orphans come here, nobody reads this memory, the OOM order."""
    with contextlib.suppress(OSError):
        # Without /proc, or where the number may only rise from a higher one, the kernel's own order stays.
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(score, str(_OOM_SCORE).encode())
        finally:
            os.close(score)
    libc.prctl(libc.PR_SET_CHILD_SUBREAPER, 1)
    libc.prctl(libc.PR_SET_DUMPABLE, 0)


def confine(wishes: Wishes) -> Confined:
    """Close the door as far as the machine can, and try it."""
    if wishes.confine == "off":
        if wishes.user is not None:
            _become(wishes.user)
        return Confined(None, False, 0, False, False, ("Confinement is switched off by terminal.confine.",))
    notes: list[str] = []
    libc.prctl(libc.PR_SET_NO_NEW_PRIVS, 1)
    abi = min(landlock.kernel_abi(), wishes.abi_ceiling)
    layer: int | None = None
    scoped = False
    if abi:
        layer, scoped = _restrict(abi, wishes, notes)
        if not _fenced(wishes):
            notes.append("Landlock was accepted by the kernel and refuses nothing.")
            abi, layer, scoped = 0, None, False
    else:
        notes.append("This kernel has no Landlock: files are protected by their permissions alone.")
    if not scoped and not wishes.namespaces:
        notes.append("Signals to other processes of the user are not kept inside.")
    if wishes.deny_network and 0 < abi < 4 and not wishes.seccomp and not wishes.namespaces:
        notes.append("The network cannot be denied.")
    if wishes.user is not None:
        _become(wishes.user)
    capabilities.drop()
    # Sockets outside are not there in namespaces; abstract ones belong to the network, and to Landlock's scopes.
    unix_refused = wishes.deny_unix and not (wishes.namespaces and abi >= landlock.SIGNAL_SCOPE_ABI)
    filtered = _filter(wishes, unix_refused, notes)
    if not wishes.namespaces:
        # The kernel asks neither layer about these; a mount namespace does.
        notes.append(
            "Modes, owners and times of files of the same user, stat, and watching where files change are not confined."
        )
        notes.append("Without namespaces there are no terminals inside of commands and no shared memory.")
    elif not wishes.deny_network:
        notes.append("The network is the machine's: its sockets are listed in /proc/net, also by name.")
    if wishes.disk is not None:
        notes.append("terminal.disk_bytes is measured now and then; what is deleted and still open is not counted.")
    if wishes.limits.memory_bytes is not None:
        notes.append("terminal.memory_bytes holds for each process by itself, and not for memory that it could share.")
    counted = wishes.limits.processes is not None and wishes.namespaces and limits.kernel_counts()
    return Confined(layer, scoped, abi, filtered, capabilities.dropped(), tuple(notes), wishes.namespaces, counted)


def _become(user: tuple[int, int]) -> None:
    """Be this user from now on. The kernel forgets two settings with the old identity."""
    uid, gid = user
    capabilities.bind()
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    capabilities.drop()
    libc.prctl(libc.PR_SET_DUMPABLE, 0)
    libc.die_with_parent(signal.SIGKILL)


def _user(order: Mapping[str, object]) -> tuple[int, int] | None:
    if order.get("user") is None:
        return None
    user = orders.section(order, "user")
    return orders.integer(user, "uid", low=1), orders.integer(user, "gid", low=1)


def _disk(order: Mapping[str, object]) -> tuple[str, int] | None:
    if order.get("disk") is None:
        return None
    disk = orders.section(order, "disk")
    return orders.text(disk, "path"), orders.integer(disk, "bytes")


def _restrict(abi: int, wishes: Wishes, notes: list[str]) -> tuple[int, bool]:
    """Put the warden's own layer on; the ruleset for its children, and whether signals were seen to stay inside."""
    rules = _rules(wishes)
    child_layer, absent = landlock.ruleset(abi, rules, deny_tcp=wishes.deny_network)
    notes.extend(sentence for sentence in absent if sentence.startswith((*wishes.read, *wishes.write)))
    # The warden looks for what its children left, and opens the terminals that they are given.
    own = [*rules, Rule("/proc", landlock.LOOK), Rule("/dev/pts", landlock.DEVICE | landlock.READ_DIR)]
    own_layer, _ = landlock.ruleset(abi, own, deny_tcp=wishes.deny_network)
    parent = os.getppid()
    reached = parent != 0 and _signal_errno(parent) == 0
    landlock.restrict(own_layer)
    os.close(own_layer)
    if wishes.namespaces:
        # Nobody outside has a number in here, so there is nobody to try it on.
        return child_layer, abi >= landlock.SIGNAL_SCOPE_ABI
    return child_layer, reached and _signal_errno(parent) == errno.EPERM


def _rules(wishes: Wishes) -> list[Rule]:
    """What a child may touch."""
    rules = [Rule(path, landlock.USE) for path in (*places.SYSTEM, *wishes.prefixes) if os.path.realpath(path) != "/"]
    rules += [Rule(f"/dev/{name}", landlock.DEVICE) for name in places.DEVICES]
    if wishes.namespaces:
        # All of it is the warden's own. Other children stay unreadable: each has a layer of its own.
        rules.append(Rule("/proc", landlock.LOOK))
        rules.append(Rule("/dev/pts", landlock.DEVICE | landlock.READ_DIR))
        rules += [Rule(path, landlock.CHANGE) for path in ("/tmp", "/dev/shm")]
    else:
        rules += [Rule(f"/proc/{name}", landlock.READ_FILE) for name in places.PROC_FILES]
    rules += [Rule(path, landlock.LOOK) for path in places.settings()]
    rules += [Rule(path, landlock.USE, straight=True) for path in wishes.read]
    rules += [Rule(path, landlock.CHANGE, straight=True) for path in wishes.write]
    return rules


def _signal_errno(pid: int) -> int:
    """What the kernel says to a signal for `pid`, without sending one."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return error.errno or errno.EPERM
    return 0


def _fenced(wishes: Wishes) -> bool:
    """Whether a place that nobody granted is refused."""
    if "/" in {*wishes.read, *wishes.write}:
        return True
    try:
        os.close(os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    except PermissionError:
        return True
    return False


def _filter(wishes: Wishes, unix_refused: bool, notes: list[str]) -> bool:
    numbers = seccomp.machine(os.uname().machine)
    if numbers is None or not wishes.seccomp:
        notes.append("No seccomp filter: sockets with a path reach what runs outside.")
        return False
    try:
        seccomp.install(
            numbers, deny_network=wishes.deny_network, deny_unix=unix_refused, own_processes=wishes.namespaces
        )
    except OSError as error:
        notes.append(f"The kernel takes no seccomp filter ({error.strerror}).")
        return False
    if not wishes.deny_unix:
        notes.append("Sockets with a path are allowed by terminal.unix_sockets.")
    return seccomp.holds() and (not unix_refused or _unix_refused())


def _unix_refused() -> bool:
    try:
        socket.socket(socket.AF_UNIX).close()
    except OSError as error:
        return error.errno == errno.EAFNOSUPPORT
    return False
