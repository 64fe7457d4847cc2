"""The command on a terminal, as a person has it: keys go in, a screen comes out."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pexpect

from tests.e2e.gateway_client import PATIENCE

COMMAND: Final = (sys.executable, "-m", "hermes_ws.cli.main")

CONTROL_C: Final = "\x03"
CONTROL_D: Final = "\x04"
CONTROL_U: Final = "\x15"

ESCAPE: Final = "\x1b"

PROMPT: Final = r"\n> $"


class Terminal:
    """One run of the command on a terminal of its own. `text` is all that was on it, with plain line ends."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *arguments: str,
        columns: int = 80,
        cwd: Path | None = None,
        program: tuple[str, ...] = COMMAND,
    ) -> None:
        self._text: list[str] = []
        self.child: pexpect.spawn[str] = pexpect.spawn(
            program[0],
            [*program[1:], *arguments],
            env={"TERM": "xterm-256color", **environment},
            cwd=None if cwd is None else str(cwd),
            dimensions=(24, columns),
            encoding="utf-8",
            codec_errors="replace",
            timeout=PATIENCE,
        )

    @property
    def text(self) -> str:
        """What was seen so far."""
        return "".join(self._text)

    @property
    def pid(self) -> int:
        """The process on this terminal."""
        return self.child.pid

    def type(self, line: str) -> None:
        """Type a line and press Enter."""
        self.child.sendline(line)

    def press(self, key: str) -> None:
        """Press one key."""
        self.child.send(key)

    def see(self, pattern: str) -> re.Match[str]:
        """Wait until the pattern is on the screen; a new line in it is written `\\n`."""
        self.child.expect(pattern.replace(r"\n", "\r\n"))
        found = self.child.match
        assert isinstance(found, re.Match)
        self._keep()
        return found

    def ready(self) -> None:
        """Wait until something may be typed."""
        self.see(r"(?:^|\n)> $")

    def session(self) -> str:
        """The id that it prints at its beginning."""
        return str(self.see(r"Session: (\S+)\n").group(1))

    def end(self) -> int:
        """Wait until it ends by itself; its exit status, negative for a signal."""
        self.child.expect(pexpect.EOF)
        self._keep()
        self.child.close()
        if self.child.signalstatus is not None:
            return -self.child.signalstatus
        assert self.child.exitstatus is not None
        return self.child.exitstatus

    def hang_up(self) -> None:
        """Close the window: the kernel tells those on the terminal (SIGHUP)."""
        self.child.close(force=False)

    def close(self) -> None:
        """End what still runs."""
        self.child.close(force=True)

    def _keep(self) -> None:
        after = self.child.after if isinstance(self.child.after, str) else ""
        self._text.append(f"{self.child.before or ''}{after}".replace("\r\n", "\n"))
