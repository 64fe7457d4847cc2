"""One line, edited on the terminal with a text to begin with: what was taken back, to be said again otherwise.

Ordinary lines are edited by the terminal itself, which cannot begin with a text. For this one line a process of its own
uses readline on the same terminal, so that the conversation goes on hearing its server meanwhile, and nothing of it
waits in a thread that cannot be ended.
"""

from __future__ import annotations

import socket
import sys
import termios
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final, final

import anyio

from hermes_ws.cli import one_line

PROGRAM: Final = Path(one_line.__file__)

READ_BYTES: Final = 65536


@final
class Ended(Exception):
    """The person ended their input instead of a line."""


def can_edit() -> bool:
    """Whether this Python has readline; some are built without."""
    return find_spec("readline") is not None


async def edited(text: str, prompt: str, terminal: int) -> str | None:
    """What the person made of `text`; None when they gave the line up (Ctrl-C). Raises Ended.

    The terminal is as it was before when this is over, also when it is cancelled.
    """
    kept = termios.tcgetattr(terminal)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = await anyio.open_process(
            [sys.executable, "-I", "-X", "utf8", str(PROGRAM), str(theirs.fileno()), prompt],
            stdin=None,
            stdout=None,
            stderr=None,
            pass_fds=(theirs.fileno(),),
        )
        theirs.close()
        ours.setblocking(False)
        try:
            await _give(ours, text.encode("utf-8", "replace"))
            said = await _take(ours)
            status = await process.wait()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            with anyio.CancelScope(shield=True):
                await process.aclose()
            with suppress(termios.error):
                termios.tcsetattr(terminal, termios.TCSADRAIN, kept)
    if status == one_line.ENDED:
        raise Ended
    return said.decode("utf-8", "replace") if status == 0 else None


async def _give(ours: socket.socket, data: bytes) -> None:
    with suppress(OSError):  # it ended before it had read all: its status tells
        while data:
            await anyio.wait_writable(ours)
            data = data[ours.send(data) :]
        ours.shutdown(socket.SHUT_WR)


async def _take(ours: socket.socket) -> bytes:
    said = b""
    with suppress(OSError):
        while True:
            await anyio.wait_readable(ours)
            piece = ours.recv(READ_BYTES)
            if not piece:
                break
            said += piece
    return said
