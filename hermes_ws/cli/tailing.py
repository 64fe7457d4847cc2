"""The ends of log files, and what is written to them from now on, also when they are rotated."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from pathlib import Path
from typing import BinaryIO, Final, final

from hermes_ws.cli import exits
from hermes_ws.cli.environment import Surroundings
from hermes_ws.client.ensure import places
from hermes_ws.contract.errors import HermesError
from hermes_ws.scope.home import HomesRoot, ProfileHome
from hermes_ws.scope.identity import ProfileName

TAIL_BYTES: Final = 1024 * 1024
"""How far back the last lines are looked for."""

LOOK_SECONDS: Final = 0.25
"""Between looks at a file that is followed; nobody reads faster."""


def tail(surroundings: Surroundings, profile: str | None, *, lines: int, follow: bool) -> int:
    """Print the ends; with `follow` go on until interrupted. Gives the exit status."""
    try:
        files = [_Followed(path) for path in _logs(surroundings.home, profile)]
    except (HermesError, ValueError) as error:
        sys.stderr.write(f"Error: {error}\n")
        return exits.FAILED
    there = [each for each in files if each.path.exists()]
    if not there and not follow:
        sys.stderr.write(f"There is no log yet: {', '.join(str(each.path) for each in files)}\n")
        return exits.FAILED
    try:
        for each in there:
            if len(there) > 1:
                _print(f"==> {each.path} <==\n".encode())
            _print(each.last(lines))
        while follow:
            for each in files:
                _print(each.more())
            time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        return exits.DONE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exits.DONE


def _logs(home: Path, profile: str | None) -> list[Path]:
    root = places(home)[0][0]
    if profile is not None:
        return [HomesRoot.classic(root).find(ProfileName.parse(profile)).logs / "profile.log"]
    return [ProfileHome(root).logs / "serve.log", ProfileHome(home.resolve()).logs / "profile.log"]


@final
class _Followed:
    """A file by its name, and how far it was read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None

    def last(self, lines: int) -> bytes:
        """Its last lines."""
        file = self._opened()
        if file is None:
            return b""
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        return b"".join(deque(file, maxlen=lines))

    def more(self) -> bytes:
        """What was written since."""
        file = self._opened()
        if file is None:
            return b""
        data = file.read()
        if self._replaced(file):
            file.close()
            self._file = None
        return data

    def _opened(self) -> BinaryIO | None:
        if self._file is None:
            try:
                self._file = self.path.open("rb")
            except OSError:
                return None
        return self._file

    def _replaced(self, file: BinaryIO) -> bool:
        try:
            return self.path.stat().st_ino != os.fstat(file.fileno()).st_ino
        except OSError:
            return False


def _print(data: bytes) -> None:
    if data:
        sys.stdout.write(data.decode("utf-8", "replace"))
        sys.stdout.flush()
