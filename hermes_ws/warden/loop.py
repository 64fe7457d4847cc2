"""The warden's loop: one thread, one poll, every child on a list.

What becomes of a child:

    running   forked; its leader lives
    ending    the server asked for its end: SIGTERM went out, SIGKILL follows after the grace
    settling  the leader is reaped; its group was killed, or has until the end of the grace
    (gone)    nobody is left in the group: the server is told

A daemon outlives a command that ends by itself, not one that is ended, and never the warden: the end of the control
socket is the end of everything below.
"""

from __future__ import annotations

import array
import contextlib
import errno
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Final, final

from hermes_ws.warden import descendants, file_orders, limits, orders, spawn, terminal
from hermes_ws.warden.child import Child
from hermes_ws.warden.confine import Confined, Wishes
from hermes_ws.warden.counting import Counting
from hermes_ws.warden.descendants import Seen
from hermes_ws.warden.disk import Measuring

_SETTLE_S: Final = 1.0
"""Seconds for a killed group to vanish. The kernel needs a millisecond; longer means that a process hangs in it."""

_LOOK_S: Final = 0.05
"""Seconds between two looks at a group that is about to vanish; its last member may have another parent than us."""

_LAST_S: Final = 5.0
"""Seconds to end what is left when the server is gone. A process that hangs in the kernel is not waited for."""


@final
class Loop:
    """Takes orders from the control socket until it ends."""

    def __init__(self, control: socket.socket, wishes: Wishes, confined: Confined) -> None:
        self._control = control
        self._wishes = wishes
        self._confined = confined
        self._plan = limits.plan(wishes.limits, kernel_counted=confined.counts_processes)
        self._measuring = None if wishes.disk is None else Measuring(*wishes.disk, self._measure)
        self._children: dict[int, Child] = {}
        self._null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self._ending = False
        processes = None if confined.counts_processes else wishes.limits.processes
        self._counting = None if processes is None else Counting(processes)
        self._alone = True
        self._woken, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def run(self) -> None:
        """Work until the server is gone or a signal asks for the end; then end everything below."""
        spawn.reset_signals()
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda _number, _frame: self._stop())
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        try:
            while not self._ending:
                for descriptor, _ in poll.poll(self._patience()):
                    if descriptor == self._woken:
                        with contextlib.suppress(BlockingIOError):
                            os.read(self._woken, 512)
                    else:
                        self._take()
                self._reap()
                self._count()
                self._weigh()
                self._advance()
        finally:
            self._end_everything()

    def _stop(self) -> None:
        self._ending = True

    def _patience(self) -> float | None:
        """Milliseconds until something is due."""
        due: list[float] = []
        for child in self._children.values():
            if child.code is not None:
                due.append(time.monotonic() + _LOOK_S)
            if child.kill_at is not None:
                due.append(child.kill_at)
        if not self._alone and self._counting is not None:
            due.append(self._counting.due)
        if self._children and self._measuring is not None:
            # While one runs its end wakes the loop, as the end of any child does.
            due += [at for at in (self._measuring.due(time.monotonic()),) if at is not None]
        return max(0.0, min(due) - time.monotonic()) * 1000 + 1 if due else None

    # --- orders -----------------------------------------------------------------------------------------------------

    def _take(self) -> None:
        order, given = receive(self._control)
        if order is None:
            self._ending = True
            return
        try:
            self._obey(order, given)
        finally:
            for descriptor in given:
                os.close(descriptor)

    def _obey(self, order: dict[str, object], given: list[int]) -> None:
        kind = orders.text(order, "op")
        number = orders.integer(order, "id")
        if kind == orders.END:
            self._end(number, orders.integer(order, "grace_ms") / 1000)
            return
        if kind == orders.RESIZE:
            self._resize(number, order)
            return
        try:
            child = self._command(number, order, given) if kind == orders.RUN else self._file(number, order, given)
        except OSError as error:
            # No more processes or descriptors: this order fails, the next may not.
            self._say({"id": number, "stage": "fork", "errno": error.errno or errno.EAGAIN})
            return
        self._children[child.pid] = child

    def _command(self, number: int, order: dict[str, object], given: list[int]) -> Child:
        command = spawn.CommandOrder.parse(order)
        sink = given[0]
        source = given[1] if len(given) > 1 else self._null
        if order.get("tty") is None:
            errors = given[2] if len(given) > 2 else sink
            pid, status = spawn.command(command, self._plan, self._confined, (source, sink, errors))
            return Child(number, pid, status)
        size = orders.section(order, "tty")
        master, slave = terminal.opened(*_size(size))
        try:
            pid, status = spawn.command(command, self._plan, self._confined, slave)
            os.close(slave)
            slave = -1
            keep = (master, source, sink)
            relay = spawn.file_operation(lambda: terminal.carry(*keep), keep, self._confined)
        except BaseException:
            os.close(master)
            raise
        finally:
            if slave >= 0:
                os.close(slave)
        return Child(number, pid, status, master=master, relay=relay)

    def _resize(self, number: int, order: dict[str, object]) -> None:
        for child in self._children.values():
            if child.number == number and child.master is not None:
                with contextlib.suppress(OSError):
                    terminal.resize(child.master, *_size(order))

    def _file(self, number: int, order: dict[str, object], given: list[int]) -> Child:
        operation = file_orders.operation(order, given, self._wishes, self._confined)
        return Child(number, spawn.file_operation(operation, tuple(given), self._confined), None)

    def _measure(self, work: Callable[[], None], answer: int) -> int:
        return spawn.file_operation(work, (answer,), self._confined)

    def _end(self, number: int, grace_s: float) -> None:
        for child in self._children.values():
            if child.number == number:
                child.kill_at = time.monotonic() + grace_s
                child.end()

    # --- ends -------------------------------------------------------------------------------------------------------

    def _reap(self) -> None:
        """Reap whatever has ended, our own children and orphans that came to us."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                self._alone = True
                return
            if ended is None:
                self._alone = False
                return
            child = self._children.get(ended.si_pid)
            if child is not None and child.kill_at is None:
                # Before the leader is reaped its number cannot belong to anybody else.
                child.signal(signal.SIGKILL)
            _, status = os.waitpid(ended.si_pid, 0)
            if child is not None:
                child.code = os.waitstatus_to_exitcode(status)
                child.give_up_at = time.monotonic() + _SETTLE_S

    def _advance(self) -> None:
        now = time.monotonic()
        for child in tuple(self._children.values()):
            if child.kill_at is not None and child.code is not None:
                child.look()
            if child.kill_at is not None and now >= child.kill_at:
                child.kill_at = None
                child.give_up_at = now + _SETTLE_S
                child.kill()
            if child.code is None:
                continue
            late = child.kill_at is None and child.give_up_at is not None and now >= child.give_up_at
            if late or child.is_gone():
                del self._children[child.pid]
                self._tell(child)

    def _tell(self, child: Child) -> None:
        answer: dict[str, object] = {"id": child.number, "over": child.over}
        if child.status is not None:
            with contextlib.suppress(OSError, orders.Malformed):
                failure = os.read(child.status, orders.HEADER_BYTES)
                if failure:
                    answer.update(orders.decode(failure))
        child.forget()
        if child.code is not None and child.code < 0:
            answer["signal"] = -child.code
        else:
            answer["exit"] = child.code
        self._say(answer)

    def _say(self, answer: dict[str, object]) -> None:
        try:
            self._control.send(orders.encode(answer), socket.MSG_NOSIGNAL)
        except OSError:
            self._ending = True

    def _count(self) -> None:
        """End every command when there are more processes than the limit: whose they are cannot be told for orphans."""
        if self._counting is not None and not self._alone and (found := self._counting.over()):
            self._end_all(orders.PROCESSES_OVER, found)

    def _weigh(self) -> None:
        """End every command when the disk holds more than it may. What frees it again has until the next look."""
        if self._measuring is None or not self._children:
            return
        now = time.monotonic()
        if self._measuring.take(now):
            self._end_all(orders.DISK_OVER, descendants.below(os.getpid()))
        self._measuring.begin(now)

    def _end_all(self, why: str, found: list[Seen]) -> None:
        for child in self._children.values():
            child.over = why
        self._kill_all(found)

    def _kill_all(self, found: list[Seen]) -> None:
        if self._confined.signals_scoped or self._confined.namespaces:
            # "All that I may signal" is all below: seen to be refused outside when this warden confined itself.
            # It is also the only way to catch something that forks faster than it can be listed.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(-1, signal.SIGKILL)
            return
        for seen in found:
            descendants.send(seen, signal.SIGSTOP)
        for seen in (*found, *descendants.below(os.getpid())):
            descendants.send(seen, signal.SIGKILL)

    def _end_everything(self) -> None:
        give_up_at = time.monotonic() + _LAST_S
        while time.monotonic() < give_up_at:
            self._kill_all(descendants.below(os.getpid()))
            try:
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass
            except ChildProcessError:
                return
            time.sleep(0.002)


def _size(order: dict[str, object]) -> tuple[int, int]:
    return (
        orders.integer(order, "rows", low=1, high=terminal.LARGEST),
        orders.integer(order, "columns", low=1, high=terminal.LARGEST),
    )


def receive(control: socket.socket) -> tuple[dict[str, object] | None, list[int]]:
    """The next order and its descriptors; no order when the server is gone or speaks nonsense."""
    try:
        data, ancillary, flags, _ = control.recvmsg(
            orders.INLINE_BYTES,
            socket.CMSG_SPACE(4 * orders.ORDER_DESCRIPTORS),
            socket.MSG_CMSG_CLOEXEC,
        )
    except OSError:
        return None, []
    given = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            given.frombytes(content[: len(content) - len(content) % given.itemsize])
    descriptors = list(given)
    if not data or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        return None, descriptors
    try:
        order = orders.decode(data)
        if "large" in order and descriptors:
            content = descriptors.pop(0)
            try:
                order = orders.decode(os.pread(content, orders.integer(order, "large", high=orders.ORDER_BYTES), 0))
            finally:
                os.close(content)
    except orders.Malformed:
        return None, descriptors
    return order, descriptors
