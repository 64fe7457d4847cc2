"""The server's side of a warden: starting it, giving it orders, ending it.

A warden is treated as hostile. The server makes every pipe itself and hands the child's end down, bounds whatever it
reads, and believes an answer only when it fits an order that is open; one that does not is the end of the warden.

This is the one file of the server that starts a process, and it does so from the trio thread, without `preexec_fn` or
`user=`: both turn vfork off, and cost milliseconds that grow with the server.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Self, final

import trio

from hermes_ws.contract import errors
from hermes_ws.scope import guard
from hermes_ws.scope.current import in_thread
from hermes_ws.warden import answers, bubblewrap, cgroup, check, descendants, filing, orders
from hermes_ws.warden.channel import Channel, memfd
from hermes_ws.warden.check import require, wishes
from hermes_ws.warden.grants import (
    Command,
    Confinement,
    FileRead,
    FileWritten,
    Finished,
    Found,
    Grants,
    Limits,
    Listed,
    Looking,
    Size,
    WardenStatistics,
)
from hermes_ws.warden.ordering import Ordering
from hermes_ws.warden.running import Running
from hermes_ws.warden.subreaper import Subreaper

__all__ = (
    "Command",
    "Confinement",
    "FileRead",
    "FileWritten",
    "Finished",
    "Grants",
    "Limits",
    "Warden",
    "WardenStatistics",
    "probe",
)

START_WITHIN_S = 15.0
"""Seconds until a warden must be ready. It takes 0.05; a machine that swaps takes a while."""

LEAVE_WITHIN_S = 7.0
"""Seconds for a warden to end everything below itself; it gives up after five."""

KILLED_WITHIN_S = 5.0
"""Seconds for the kernel to take away a process after SIGKILL."""

STOPPED_WITHIN_S = 1.0
"""Seconds for a process to stop. One that hangs in the kernel is killed as it is."""

_LOOK_S = 0.001
"""Seconds between two looks: stopping takes less, where the machine is not busy."""

_ROOM = str(Path(__file__).parent)


@final
class Warden:
    """A confined child process that runs commands and touches files for one profile.

    Made by `start`; then somebody awaits `serve` in their nursery, and from there on orders are answered. When
    `serve` ends, for whatever reason, the warden and everything below it have ended before.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        control: socket.socket,
        subreaper: Subreaper | None,
        *,
        namespaces: bool,
    ) -> None:
        self.confinement = Confinement(0, False, False, False)
        self._process = process
        self._namespaces = namespaces
        self._pidfd = os.pidfd_open(process.pid)
        self._channel = Channel(control)
        self._subreaper = subreaper
        self._ordering = Ordering(self._channel, lambda: self._leave(kill=True))
        self._filing = filing.Filing(self._ordering.perform)
        self._leaving = False
        self._gone = trio.Event()
        self._group: Path | None = None

    @classmethod
    async def start(
        cls,
        grants: Grants,
        *,
        python: str = sys.executable,
        probed: Confinement | None = None,
        subreaper: Subreaper | None = None,
        namespaces: bubblewrap.Choice = "auto",
    ) -> Self:
        """Start a warden and wait until it has confined itself, in namespaces of its own where that is to be had.

        Never call it from a worker thread; a process that became a subreaper hands its `Subreaper` to every start, or
        the warden is taken for an orphan. With `probed` no more is used than what an earlier probe found. Raises
        `WardenFailed`, and `ConfinementUnavailable` when confinement is required and Landlock is missing. When it is
        cancelled, nothing is left.
        """
        if grants.confine == "required" and probed is not None:
            require(probed)
        usable = grants.confine != "off" and (probed is None or probed.bubblewrap)
        program = bubblewrap.chosen(namespaces) if usable else None
        check.user(grants, program)
        order = wishes(grants, probed, namespaces=program is not None)
        mounts = (
            []
            if program is None
            else await in_thread(trio.CapacityLimiter(1), bubblewrap.open_mounts, grants.read, grants.write)
        )
        try:
            spawned = _spawn(_argv(python, program, grants, mounts), mounts, subreaper)
            warden = cls(*spawned, subreaper, namespaces=program is not None)
        finally:
            for mount in mounts:
                os.close(mount.descriptor)
        try:
            if warden._enter_group(grants.limits):
                # The group holds both for all children together; what holds each by itself would only be in the way.
                free = replace(grants, limits=replace(grants.limits, memory_bytes=None, processes=None))
                order = wishes(free, probed, namespaces=program is not None)
            with trio.fail_after(START_WITHIN_S):
                await warden._channel.send(order, ())
                said = await warden._channel.receive()
                found = answers.confinement(said, bubblewrap=program is not None)
                grouped = warden._group is not None
                warden.confinement = replace(found, processes="cgroup", memory="cgroup") if grouped else found
            if grants.confine == "required":
                require(warden.confinement)
        except BaseException as error:
            await warden._leave(kill=True)
            if isinstance(error, trio.TooSlowError):
                raise errors.WardenFailed(f"The warden was not ready after {START_WITHIN_S:.0f} s.") from error
            if isinstance(error, orders.Malformed):
                raise errors.WardenFailed("The warden answered with nonsense.") from error
            raise
        return warden

    # --- life -------------------------------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        """Whether it takes orders."""
        return not self._leaving

    @property
    def idle_since(self) -> float:
        """The trio time at which the last order ended; now, while there is one."""
        return self._ordering.idle_since

    def statistics(self) -> WardenStatistics:
        """What it is doing and has done."""
        return WardenStatistics(self._process.pid, self._ordering.open_orders, self._ordering.given, self.alive)

    async def serve(self) -> None:
        """Take the answers until the warden is gone, then fail what is still open with `WardenFailed`.

        Cancelling ends the warden and everything below it before this returns.
        """
        trusted = False
        try:
            while data := await self._channel.receive():
                if not self._ordering.answered(answers.ended(data)):
                    break
            else:
                trusted = True
        except errors.WardenFailed:
            trusted = True
        except orders.Malformed:
            pass
        except trio.Cancelled:
            trusted = True
            raise
        finally:
            await self._leave(kill=not trusted)

    async def close(self) -> None:
        """End the warden and everything below it. Open orders fail; a second call waits for the first."""
        await self._leave(kill=False)

    async def _leave(self, *, kill: bool) -> None:
        """The one way out. The end of the control socket tells the warden; SIGKILL does when that is not enough."""
        with trio.CancelScope(shield=True):
            if self._leaving:
                if kill and not self._gone.is_set():
                    await self._kill()
                await self._gone.wait()
                return
            self._leaving = True
            self._ordering.close()
            self._channel.close()
            try:
                if not kill:
                    await self._left_within(LEAVE_WITHIN_S)
                if self._process.poll() is None:
                    await self._kill()
                    await self._left_within(KILLED_WITHIN_S)
                reaped = self._process.poll() is not None
                if self._subreaper is not None:
                    if reaped:
                        self._subreaper.forget(self._process.pid)
                    await self._subreaper.end_orphans()
            finally:
                os.close(self._pidfd)
                if self._group is not None:
                    cgroup.leave(self._group)
                self._ordering.lose()
                self._gone.set()

    def _enter_group(self, limits: Limits) -> bool:
        """Put the warden into a control group of its own, where there is one to divide; before it is told anything."""
        delegated = None if self._subreaper is None else self._subreaper.delegated
        if delegated is None:
            return False
        group = delegated.group(f"warden-{self._process.pid}", limits)
        if group is None or not cgroup.enter(group, self._process.pid):
            return False
        self._group = group
        return True

    async def _left_within(self, seconds: float) -> None:
        with trio.move_on_after(seconds):
            await trio.lowlevel.wait_readable(self._pidfd)

    async def _kill(self) -> None:
        """SIGKILL, also for what bubblewrap has forked: that waits for it, and would do so for ever."""
        with suppress(ProcessLookupError):
            if not self._namespaces:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
                return
            # Stopped first, so that nothing is forked behind the look.
            signal.pidfd_send_signal(self._pidfd, signal.SIGSTOP)
            with trio.move_on_after(STOPPED_WITHIN_S):
                while not descendants.rests(self._process.pid):  # noqa: ASYNC110
                    await trio.sleep(_LOOK_S)
            below = descendants.below(self._process.pid)
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            for seen in below:
                descendants.send(seen, signal.SIGKILL)

    # --- orders -----------------------------------------------------------------------------------------------------

    async def run(self, command: Command, on_output: Callable[[bytes], None] | None = None) -> Finished:
        """Run to the end, or to the deadline; `on_output` is called in this task with each piece as it comes.

        Cancelling, an exception from `on_output` and the deadline end the command and all that it started, also what
        left its process group, before this returns: SIGTERM, `GRACE_S`, SIGKILL. When a command ends by itself, whoever
        is left in its group is killed. Raises `InvalidParams` for what no program can be given, `NotFound` and
        `PermissionDenied` for the working directory, `WardenFailed`.
        """
        return await self._ordering.run(command, on_output)

    async def open(self, command: Command, *, terminal: Size | None = None, problems_apart: bool = False) -> Running:
        """Start a program that goes on, with pipes to it, or in a terminal of that size. The caller ends it.

        With `problems_apart` standard error has a pipe of its own. Raises what `run` does, but for what keeps a program
        from being started: its end tells that. `LimitReached` when too many go on already.
        """
        return await self._ordering.open(command, terminal, problems_apart=problems_apart)

    async def read_file(self, path: Path, *, offset: int = 0, limit: int = filing.READ_BYTES) -> FileRead:
        """At most `limit` bytes of a regular file.

        Raises `NotFound`, `PermissionDenied`, `InvalidParams`, `FileFailed`, `WardenFailed`.
        """
        return await self._filing.read(path, offset, limit)

    async def write_file(self, path: Path, data: bytes) -> FileWritten:
        """Replace a file, or make it and its parents; whoever reads it sees the old or the new content, whole.

        When this returns the content is on the disk. When it is cancelled or fails, the file is the old one or the new
        one. Raises `PermissionDenied`, `InvalidParams`, `StorageFull`, `FileFailed`.
        """
        return await self._filing.write(path, data)

    async def list_files(
        self, path: Path, *, depth: int = 1, limit: int = 1000, hidden: bool = False, pattern: str | None = None
    ) -> Listed:
        """The entries below a directory, sorted, at most `limit`. What the deadline cuts off counts as more.

        Raises what `read_file` does.
        """
        return await self._filing.list(path, depth=depth, limit=limit, hidden=hidden, pattern=pattern)

    async def search_files(self, path: Path, what: Looking) -> Found:
        """The lines below a directory, or in a file, in which something is found. Raises what `read_file` does."""
        return await self._filing.search(path, what)


async def probe(
    *, python: str = sys.executable, subreaper: Subreaper | None = None, namespaces: bubblewrap.Choice = "auto"
) -> Confinement:
    """What this machine can confine, found out by a warden that is started for nothing else.

    Where bubblewrap is installed and makes no namespaces, as in many containers, the rest is tried without it, and a
    note says so. Raises `WardenFailed` when nothing can be started at all.
    """
    grants = Grants(limits=Limits(processes=512))
    try:
        warden = await Warden.start(grants, python=python, subreaper=subreaper, namespaces=namespaces)
    except errors.WardenFailed:
        if bubblewrap.chosen(namespaces) is None:
            raise
        warden = await Warden.start(grants, python=python, subreaper=subreaper, namespaces=None)
        note = "bubblewrap is installed and may make no namespaces here."
        warden.confinement = replace(warden.confinement, notes=(note, *warden.confinement.notes))
    try:
        return warden.confinement
    finally:
        await warden.close()


def _argv(
    python: str, program: Path | None, grants: Grants, mounts: Sequence[bubblewrap.Mount]
) -> tuple[list[str], bytes]:
    """What to start, and what bubblewrap reads from a descriptor of its own."""
    child = [python, "-I", "-S", "-X", "utf8", _ROOM]
    if program is None:
        return child, b""
    wanted = bubblewrap.Wanted(mounts, check.prefixes(), Path(_ROOM), grants.network, own_user=grants.user is None)
    return [str(program), *child], bubblewrap.arguments(wanted)


def _spawn(
    what: tuple[list[str], bytes], mounts: Sequence[bubblewrap.Mount], subreaper: Subreaper | None
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    argv, told = what
    given = [mount.descriptor for mount in mounts]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    arguments: int | None = None
    try:
        if told:
            arguments = memfd(told)
            given = [*given, arguments]
            argv = [argv[0], "--args", str(arguments), "--", *argv[1:]]
        with guard.permit_process():
            process = subprocess.Popen(
                [*argv, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), *given),
                env={},
                cwd="/",
                start_new_session=True,
            )
    except OSError as error:
        ours.close()
        raise errors.WardenFailed(f"The warden could not be started: {error.strerror}.") from error
    finally:
        theirs.close()
        if arguments is not None:
            os.close(arguments)
    if subreaper is not None:
        subreaper.adopt(process.pid)
    return process, ours
