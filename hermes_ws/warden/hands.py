"""The server's side of a warden: starting it, giving it orders, ending it.

A warden is treated as hostile. The server makes every pipe itself and hands the child's end down, bounds whatever it
reads, and believes an answer only when it fits an order that is open; one that does not is the end of the warden.

This is the one file of the server that starts a process, and it does so from the trio thread, without `preexec_fn` or
`user=`: both turn vfork off, and cost milliseconds that grow with the server.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self, final

import trio

from hermes_ws.contract import errors
from hermes_ws.scope import guard
from hermes_ws.warden import answers, orders
from hermes_ws.warden.channel import Channel, memfd
from hermes_ws.warden.check import checked_command, checked_path, require, wishes
from hermes_ws.warden.grants import (
    Command,
    Confinement,
    FileRead,
    FileWritten,
    Finished,
    Grants,
    Limits,
    WardenStatistics,
)
from hermes_ws.warden.output import Bounded, Discard, HeadAndTail, Sink
from hermes_ws.warden.pending import Pending
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

GRACE_S = 1.0
"""Seconds between SIGTERM and SIGKILL: enough to write a file down, short enough for a person who pressed a key."""

OBEY_WITHIN_S = 5.0
"""Seconds past the grace in which a warden has to report the end of a child. After that it is ended itself."""

LEAVE_WITHIN_S = 7.0
"""Seconds for a warden to end everything below itself; it gives up after five."""

KILLED_WITHIN_S = 5.0
"""Seconds for the kernel to take away a process after SIGKILL."""

ORDERS_IN_FLIGHT = 64
"""Orders that are open at once; more wait. Each costs the server a descriptor and the machine a process."""

FILE_DEADLINE_S = 30.0
"""Seconds for one file operation: a network file system that takes longer has gone away."""

READ_BYTES = 1024 * 1024
"""What one reading of a file returns unless asked otherwise."""

FILE_BYTES = 32 * 1024 * 1024
"""The most that one operation reads or writes: it is in memory on both sides."""

STDIN_BYTES = 16 * 1024 * 1024
"""The most standard input of a command: it is a memfd."""

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
    ) -> None:
        self.confinement = Confinement(0, False, False, False)
        self._process = process
        self._pidfd = os.pidfd_open(process.pid)
        self._channel = Channel(control)
        self._subreaper = subreaper
        self._pending: dict[int, Pending] = {}
        self._slots = trio.Semaphore(ORDERS_IN_FLIGHT)
        self._orders = 0
        self._idle_since = trio.current_time()
        self._leaving = False
        self._gone = trio.Event()

    @classmethod
    async def start(
        cls,
        grants: Grants,
        *,
        python: str = sys.executable,
        probed: Confinement | None = None,
        subreaper: Subreaper | None = None,
    ) -> Self:
        """Start a warden and wait until it has confined itself.

        Never call it from a worker thread; a process that became a subreaper hands its `Subreaper` to every start, or
        the warden is taken for an orphan. With `probed` no more is used than what an earlier probe found. Raises
        `WardenFailed`, and `ConfinementUnavailable` when confinement is required and Landlock is missing. When it is
        cancelled, nothing is left.
        """
        if grants.confine == "required" and probed is not None:
            require(probed)
        order = wishes(grants, probed)
        warden = cls(*_spawn(python, subreaper), subreaper)
        try:
            with trio.fail_after(START_WITHIN_S):
                await warden._channel.send(order, ())
                warden.confinement = answers.confinement(await warden._channel.receive())
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
        return trio.current_time() if self._pending else self._idle_since

    def statistics(self) -> WardenStatistics:
        """What it is doing and has done."""
        return WardenStatistics(self._process.pid, len(self._pending), self._orders, self.alive)

    async def serve(self) -> None:
        """Take the answers until the warden is gone, then fail what is still open with `WardenFailed`.

        Cancelling ends the warden and everything below it before this returns.
        """
        trusted = False
        try:
            while data := await self._channel.receive():
                ended = answers.ended(data)
                pending = self._pending.get(ended.number)
                if pending is None:
                    break
                pending.settle(ended)
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
                    self._kill()
                await self._gone.wait()
                return
            self._leaving = True
            self._channel.close()
            try:
                if not kill:
                    await self._left_within(LEAVE_WITHIN_S)
                if self._process.poll() is None:
                    self._kill()
                    await self._left_within(KILLED_WITHIN_S)
                reaped = self._process.poll() is not None
                if self._subreaper is not None:
                    if reaped:
                        self._subreaper.forget(self._process.pid)
                    await self._subreaper.end_orphans()
            finally:
                os.close(self._pidfd)
                for pending in self._pending.values():
                    pending.lose()
                self._gone.set()

    async def _left_within(self, seconds: float) -> None:
        with trio.move_on_after(seconds):
            await trio.lowlevel.wait_readable(self._pidfd)

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    # --- orders -----------------------------------------------------------------------------------------------------

    async def run(self, command: Command, on_output: Callable[[bytes], None] | None = None) -> Finished:
        """Run to the end, or to the deadline; `on_output` is called in this task with each piece as it comes.

        Cancelling, an exception from `on_output` and the deadline end the whole process group, and what left it while
        its parent lived, before this returns: SIGTERM, `GRACE_S`, SIGKILL. When a command ends by itself, whoever is
        left in its group is killed. Raises `InvalidParams` for what no program can be given, `NotFound` and
        `PermissionDenied` for the working directory, `WardenFailed`.
        """
        order = checked_command(command, stdin_bytes=STDIN_BYTES)
        kept = HeadAndTail(command.output_bytes, on_output)
        started = trio.current_time()
        contents = (command.stdin,) if command.stdin else ()
        ended, timed_out = await self._perform(order, contents, kept, command.deadline_s)
        exit_code = ended.exit_code
        if ended.stage == "exec":
            exit_code = 127 if ended.errno == 2 else 126
            kept.note(f"{command.argv[0]} could not be started: {os.strerror(ended.errno)}")
        elif ended.stage is not None:
            raise answers.not_started(ended, command.cwd)
        if ended.over:
            kept.note("Ended: more processes than terminal.processes allows.")
        return Finished(
            exit_code=exit_code,
            signal=ended.signal,
            timed_out=timed_out,
            truncated=kept.over,
            output=kept.result(),
            duration_ms=round((trio.current_time() - started) * 1000),
        )

    async def read_file(self, path: Path, *, offset: int = 0, limit: int = READ_BYTES) -> FileRead:
        """At most `limit` bytes of a regular file.

        Raises `NotFound`, `PermissionDenied`, `InvalidParams`, `FileFailed`, `WardenFailed`.
        """
        place = checked_path(path)
        if not 0 <= limit <= FILE_BYTES or offset < 0:
            raise errors.InvalidParams(f"A file is read from 0 on, at most {FILE_BYTES} bytes at once.")
        order: dict[str, object] = {"op": orders.READ, "path": place, "offset": offset, "limit": limit}
        header, data = await self._operate(order, (), path, limit)
        return FileRead(data, _size(header))

    async def write_file(self, path: Path, data: bytes) -> FileWritten:
        """Replace a file, or make it and its parents; whoever reads it sees the old or the new content, whole.

        When this returns the content is on the disk. When it is cancelled or fails, the file is the old one or the new
        one. Raises `PermissionDenied`, `InvalidParams`, `StorageFull`, `FileFailed`.
        """
        place = checked_path(path)
        if len(data) > FILE_BYTES:
            raise errors.InvalidParams(f"At most {FILE_BYTES} bytes are written at once.")
        header, _ = await self._operate({"op": orders.WRITE, "path": place}, (data,), path, 0)
        return FileWritten(_size(header), header.get("created") is True)

    async def _operate(
        self, order: dict[str, object], contents: Sequence[bytes], path: Path, limit: int
    ) -> tuple[answers.Header, bytes]:
        kept = Bounded(limit + orders.HEADER_BYTES)
        ended, timed_out = await self._perform(order, contents, kept, FILE_DEADLINE_S)
        if timed_out:
            raise errors.FileFailed(f"{path} took longer than {FILE_DEADLINE_S:.0f} s.")
        if ended.stage is not None:
            raise answers.not_started(ended, path)
        return answers.file_header(kept.result(), path)

    async def _perform(
        self, order: dict[str, object], contents: Sequence[bytes], sink: Sink, deadline_s: float
    ) -> tuple[answers.Ended, bool]:
        """Give one order and see it through: to its answer, its deadline, or the end of the caller's patience."""
        async with self._slots:
            if self._leaving:
                raise errors.WardenFailed("The warden has ended.")
            self._orders += 1
            number = self._orders
            given: list[int] = []
            source: int | None = None
            pending = Pending()
            self._pending[number] = pending
            timed_out = False
            try:
                try:
                    source, child_end = os.pipe2(os.O_CLOEXEC)
                    given.append(child_end)
                    os.set_blocking(source, False)
                    given += [memfd(content) for content in contents]
                    await self._channel.send({**order, "id": number}, given)
                except OSError as error:
                    raise errors.LimitReached(f"No order can be given: {error.strerror}.") from error
                finally:
                    for descriptor in given:
                        os.close(descriptor)
                try:
                    with trio.move_on_after(deadline_s) as clock:
                        await pending.drain(source, sink)
                    timed_out = clock.cancelled_caught and not pending.settled
                finally:
                    if not pending.settled:
                        sink.mute()
                        await self._end(number, pending, source, sink if timed_out else Discard())
                pending.take_rest(source, sink)
            finally:
                del self._pending[number]
                self._idle_since = trio.current_time()
                if source is not None:
                    os.close(source)
        if pending.ended is None:
            raise errors.WardenFailed("The warden ended before the order did.")
        return pending.ended, timed_out

    async def _end(self, number: int, pending: Pending, source: int, sink: Sink) -> None:
        """End a child and wait for it, whatever happens to the caller."""
        with trio.CancelScope(shield=True):
            with trio.move_on_after(GRACE_S + OBEY_WITHIN_S), suppress(errors.WardenFailed):
                await self._channel.send({"op": orders.END, "id": number, "grace_ms": math.ceil(GRACE_S * 1000)}, ())
                await pending.drain(source, sink)
            if not pending.settled:
                await self._leave(kill=True)


async def probe(*, python: str = sys.executable) -> Confinement:
    """What this machine can confine, found out by a warden that is started for nothing else."""
    warden = await Warden.start(Grants(), python=python)
    try:
        return warden.confinement
    finally:
        await warden.close()


def _spawn(python: str, subreaper: Subreaper | None) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with guard.permit_process():
            process = subprocess.Popen(
                [python, "-I", "-S", "-X", "utf8", _ROOM, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={},
                cwd="/",
                start_new_session=True,
            )
    except OSError as error:
        ours.close()
        raise errors.WardenFailed(f"The warden could not be started: {error.strerror}.") from error
    finally:
        theirs.close()
    if subreaper is not None:
        subreaper.adopt(process.pid)
    return process, ours


def _size(header: answers.Header) -> int:
    try:
        return orders.integer(header, "size")
    except orders.Malformed as error:
        raise errors.WardenFailed("The warden answered with nonsense.") from error
