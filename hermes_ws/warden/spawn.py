"""Forking a child of the warden: its own session, limits, one more layer, then the work.

A child has the descriptors that are meant for it and no other, default signal handling, and dies with the warden
(PDEATHSIG is safe here, and here only: the warden has one thread, which lives as long as it does).
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, NoReturn, final

from hermes_ws.warden import landlock, libc, limits, orders, terminal
from hermes_ws.warden.confine import Confined

_DEFAULT: Final = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP, signal.SIGALRM),
)
"""What Python ignores, and what whoever started the server may have had ignored: `exec` would pass that on."""

_SIGKILL: Final = int(signal.SIGKILL)
_SIGTERM: Final = int(signal.SIGTERM)
_STATUS: Final = 3
_CLOSE_RANGE: Final = 436
_HIGHEST_DESCRIPTOR: Final = 0xFFFFFFFF


def reset_signals() -> None:
    """Give this process, and so its children, the handling and the mask that a program expects."""
    for number in _DEFAULT:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


Given = int | tuple[int, int, int]
"""A terminal for everything, or standard input, output and error."""


@final
class CommandOrder(NamedTuple):
    """A program to be started, as the server asked for it."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]

    @staticmethod
    def parse(order: Mapping[str, object]) -> CommandOrder:
        """The command in an order; raises `orders.Malformed`."""
        argv = orders.texts(order, "argv")
        if not argv:
            raise orders.Malformed("argv is empty")
        return CommandOrder(argv, orders.text(order, "cwd"), orders.pairs(order, "env"))


def command(order: CommandOrder, plan: limits.Plan, confined: Confined, given: Given) -> tuple[int, int]:
    """Start a program with what is `given` as its descriptors 0, 1 and 2.

    Returns its number and the read end of a pipe. What stands in the pipe when the child is gone says that the
    program was never started: the stage and the errno.
    """
    status, child_status = os.pipe2(os.O_CLOEXEC)

    def work() -> NoReturn:
        if isinstance(given, int):
            terminal.control(given)
        else:
            source, sink, errors = given
            os.dup2(source, 0)
            os.dup2(sink, 1)
            os.dup2(errors, 2)
        os.dup2(child_status, _STATUS, inheritable=False)
        _close_from(_STATUS + 1)
        stage = "cwd"
        try:
            libc.adopt_orphans()
            os.chdir(order.cwd)
            stage = "limits"
            limits.apply(plan)
            stage = "exec"
            _exec(order)
        except OSError as error:
            os.write(_STATUS, orders.encode({"stage": stage, "errno": error.errno or 0}))
        os._exit(127)

    try:
        pid = _fork(work, confined)
    except BaseException:
        os.close(status)
        raise
    finally:
        os.close(child_status)
    return pid, status


def file_operation(operation: Callable[[], None], keep: tuple[int, ...], confined: Confined) -> int:
    """Do one file operation in a child of its own, which has the descriptors `keep` and no other."""

    def work() -> NoReturn:
        # An end of the control socket in here would hide the warden's death from the server.
        last = 2
        for descriptor in sorted(keep):
            if descriptor - last > 1:
                _close(last + 1, descriptor - 1)
            last = descriptor
        _close_from(last + 1)
        operation()
        os._exit(0)

    return _fork(work, confined)


def _fork(work: Callable[[], NoReturn], confined: Confined) -> int:
    warden = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        # The loop's handler would take it for an order to the warden, and `exec` forget it.
        libc.default_signal(_SIGTERM)
        os.setsid()
        libc.die_with_parent(_SIGKILL)
        if os.getppid() != warden:
            os._exit(126)
        if confined.child_layer is not None:
            landlock.restrict(confined.child_layer)
        work()
    finally:
        # Whatever goes wrong in here must not return into the warden's loop.
        os._exit(126)


def _exec(order: CommandOrder) -> NoReturn:
    """Become the program, which is looked for in the PATH that it is given itself."""
    name = order.argv[0]
    if "/" in name:
        os.execve(name, order.argv, order.env)
    refused: OSError | None = None
    for directory in order.env.get("PATH", os.defpath).split(os.pathsep):
        if not directory:
            continue
        try:
            os.execve(f"{directory}/{name}", order.argv, order.env)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            refused = error
    raise refused or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _close_from(first: int) -> None:
    _close(first, _HIGHEST_DESCRIPTOR)


def _close(first: int, last: int) -> None:
    try:
        libc.quick(_CLOSE_RANGE, first, last)
    except OSError:
        os.closerange(first, min(last, os.sysconf("SC_OPEN_MAX")) + 1)
