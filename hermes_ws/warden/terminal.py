"""A pseudo-terminal for a child: opened here, where it has a name, and joined to the server by two pipes.

The server never holds an end of it. Whoever has the other end of a terminal can make reading it block, and pipes that
the server made itself cannot be touched so. A small child of its own carries the bytes: it sleeps until there are some.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios
from typing import Final

_PIECE: Final = 16 * 1024
"""What is carried at once; a terminal's own buffer has 4 KiB."""

LARGEST: Final = 4096
"""Rows and columns of the largest terminal that anybody has."""


def opened(rows: int, columns: int) -> tuple[int, int]:
    """Both ends of a new terminal of this size. Raises `OSError` when there is none to be had."""
    master, slave = os.openpty()
    resize(master, rows, columns)
    return master, slave


def resize(master: int, rows: int, columns: int) -> None:
    """Tell the program its new size; the kernel sends SIGWINCH."""
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def control(slave: int) -> None:
    """Make it the controlling terminal of this session, and descriptors 0, 1 and 2."""
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for descriptor in (0, 1, 2):
        os.dup2(slave, descriptor)


def carry(master: int, keys: int, screen: int) -> None:
    """Carry bytes both ways until nobody has the terminal open any more, or the server has closed the screen.

    What is typed waits while the program does not read, and what is printed while the server does not; neither is lost.
    """
    os.set_blocking(master, False)
    os.set_blocking(screen, True)
    typed = b""
    typing = True
    while True:
        poll = select.poll()
        poll.register(master, select.POLLIN | (select.POLLOUT if typed else 0))
        poll.register(screen, 0)
        if typing and not typed:
            poll.register(keys, select.POLLIN)
        for descriptor, event in poll.poll():
            if descriptor == screen:
                return
            if descriptor == keys:
                typed = os.read(keys, _PIECE)
                typing = bool(typed)
                continue
            if event & select.POLLOUT and typed:
                typed = _typed(master, typed)
            if event & (select.POLLIN | select.POLLHUP | select.POLLERR) and not _shown(master, screen):
                return


def _typed(master: int, typed: bytes) -> bytes:
    try:
        return typed[os.write(master, typed) :]
    except BlockingIOError:
        return typed
    except OSError:
        return b""


def _shown(master: int, screen: int) -> bool:
    """Carry a piece to the server; false when the terminal or the server is gone."""
    try:
        piece = os.read(master, _PIECE)
        view = memoryview(piece)
        while view:
            view = view[os.write(screen, view) :]
    except BlockingIOError:
        return True
    except OSError:
        return False
    return bool(piece)
