"""The slash worker: a child of a warden that runs the command lines of one session, one after the other.

It is started as `python -I -S -c <this text>`, so it stands on the standard library alone and nothing of this package
has to be readable to it. Orders come on standard input, one JSON list of words per line; what it tells goes to standard
output, each message with a line in front:

    begun                the program of the order is being started; nothing was done for it before
    out <n>              and n bytes of what it wrote
    end <code> <left>    how it ended (as `waitstatus_to_exitcode`), and whether something it started is left

The programs share the worker's process group, so that whatever the warden does to the worker it does to them. When
something is left after one, the worker ends by itself, and the warden clears up behind it as behind any command.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
from types import FrameType
from typing import Final, NoReturn, cast

PIECE_BYTES: Final = 65_536
"""What a pipe holds, and the most that one message carries."""

ASKING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
"""Signals that a program may send to its whole group (`kill 0`), and that are not for the worker then."""


def main() -> int:
    """Serve until standard input ends, or something is left behind."""
    woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _nothing)
    null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    for line in sys.stdin.buffer:
        if _run(cast("list[str]", json.loads(line)), null, woken):
            return 0
    return 0


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """A signal that is only to wake the poll, or to be outlived."""


def _run(words: list[str], null: int, woken: int) -> bool:
    """Run one program to its end; true when something of it is left."""
    for number in ASKING:
        signal.signal(number, _nothing)
    _tell(b"begun\n")
    output, sink = os.pipe()
    os.set_blocking(output, False)
    pid = os.fork()
    if pid == 0:
        _become(words, null, sink)
    os.close(sink)
    code = _follow(pid, output, woken)
    os.close(output)
    left = _others()
    _tell(b"end %d %d\n" % (code, left))
    for number in ASKING:
        signal.signal(number, signal.SIG_DFL)
    return left


def _become(words: list[str], null: int, sink: int) -> NoReturn:
    try:
        for number in (*ASKING, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(null, 0)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        os.execv(words[0], words)
    finally:
        os._exit(127)


def _follow(pid: int, output: int, woken: int) -> int:
    """Hand on what is written until the program has ended. A daemon that keeps the pipe open is not waited for."""
    poll = select.poll()
    poll.register(output, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == woken:
                with contextlib.suppress(BlockingIOError):
                    os.read(woken, 512)
            elif not _hand_on(output):
                poll.unregister(output)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            while _hand_on(output):
                pass
            return os.waitstatus_to_exitcode(status)


def _hand_on(output: int) -> bool:
    """One piece of output; false when there is none now, or none any more."""
    try:
        piece = os.read(output, PIECE_BYTES)
    except BlockingIOError:
        return False
    if piece:
        _tell(b"out %d\n" % len(piece))
        _tell(piece)
    return bool(piece)


def _others() -> bool:
    """Whether anything lives that the program started: orphans have come here, dead ones are reaped."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
        return True
    return False


def _tell(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


if __name__ == "__main__":
    sys.exit(main())
