"""The process that edits one line on its terminal. Standard library only; `editor.py` starts it.

It is given a socket and a prompt: the text to begin with comes through the socket, and what was made of it goes back.
"""

from __future__ import annotations

import socket
import sys

ENDED = 4
"""Its exit status when the input was ended."""

GIVEN_UP = 130
"""Its exit status when the line was given up."""

READ_BYTES = 65536


def edit(descriptor: int, prompt: str) -> int:
    """Let the person edit; the exit status."""
    import readline

    with socket.socket(fileno=descriptor) as line:
        pieces = iter(lambda: line.recv(READ_BYTES), b"")
        text = b"".join(pieces).decode("utf-8", "replace")
        readline.set_startup_hook(lambda: readline.insert_text(text))
        try:
            said = input(prompt)
        except EOFError:
            return ENDED
        except KeyboardInterrupt:
            return GIVEN_UP
        line.sendall(said.encode("utf-8", "replace"))
    return 0


if __name__ == "__main__":
    sys.exit(edit(int(sys.argv[1]), sys.argv[2]))
