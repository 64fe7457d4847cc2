"""How a turn acts on the machine: through the profile's warden, within what the policy grants.

What comes back is text: decoded, and with the profile's secrets replaced. A path is taken from the session's directory.
The kernel enforces the grants; the check here says the same earlier, and in words.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from pathlib import Path
from typing import final

from hermes_ws.agent.ports import Ran, ReadFile, Written
from hermes_ws.contract.errors import DirectoryRefused
from hermes_ws.scope.environment import child_environment
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.redaction import Redactor
from hermes_ws.session.ports import Granted, Runtime
from hermes_ws.warden.denied import explain_denied
from hermes_ws.warden.grants import Command

BASH = "/bin/bash"
SHELL = "/bin/sh"

BINARY_SAMPLE = 8192
"""Bytes that are looked at to tell text from data, as grep and git do."""


@final
class SessionHands:
    """The `Hands` of one execution: the scope that it began with, and its session's directory."""

    def __init__(self, runtime: Runtime, scope: ProfileScope, cwd: Path) -> None:
        self._runtime = runtime
        self._scope = scope
        self.cwd = cwd

    async def run(self, command: str, *, cwd: Path | None, deadline_s: float, on_output: Callable[[str], None]) -> Ran:
        """Run a command line in a shell. Cancelling ends its whole process group before this returns.

        Raises `DirectoryRefused` for a directory outside of the grants, `WardenFailed`, `ConfinementUnavailable`.
        """
        directory = self._directory(cwd)
        granted = await self._granted()
        stream = OutputStream(self._scope.secrets.redactor(), on_output)
        finished = await granted.warden.run(
            Command(
                argv=(BASH if os.access(BASH, os.X_OK) else SHELL, "-c", command),
                cwd=directory,
                env=child_environment(self._runtime.base_environment, scope=self._scope),
                deadline_s=min(deadline_s, self._scope.terminal.deadline_s),
                output_bytes=self._scope.terminal.output_bytes,
            ),
            stream.feed,
        )
        stream.flush()
        return Ran(
            exit_code=finished.exit_code,
            signal=finished.signal,
            timed_out=finished.timed_out,
            truncated=finished.truncated,
            output=self._scope.secrets.redact(finished.output.decode(errors="replace")),
            duration_ms=finished.duration_ms,
            explanation=explain_denied(finished, granted.grants),
        )

    async def read(self, path: Path, *, offset: int = 0, limit: int) -> ReadFile:
        """Read a part of a file. Raises `NotFound`, `PermissionDenied`, `WardenFailed`."""
        granted = await self._granted()
        read = await granted.warden.read_file(self._place(path), offset=offset, limit=limit)
        binary = b"\0" in read.data[:BINARY_SAMPLE]
        text = None if binary else self._scope.secrets.redact(read.data.decode(errors="replace"))
        return ReadFile(text=text, size=read.size)

    async def write(self, path: Path, text: str) -> Written:
        """Write a whole file; it is replaced at once or not at all. Raises `PermissionDenied`, `WardenFailed`."""
        granted = await self._granted()
        written = await granted.warden.write_file(self._place(path), text.encode(errors="replace"))
        return Written(size=written.size, created=written.created)

    async def _granted(self) -> Granted:
        return await self._runtime.warden_for(self._scope, self.cwd)

    def _place(self, path: Path) -> Path:
        """The absolute path, without looking at the disk: links are the kernel's to judge."""
        return Path(os.path.normpath(self.cwd / path))

    def _directory(self, cwd: Path | None) -> Path:
        if cwd is None:
            return self.cwd
        directory = self._place(cwd)
        policy = self._scope.terminal
        for root in (self.cwd, self._scope.home.user, *policy.write, *policy.read):
            if directory.is_relative_to(root):
                return directory
        raise DirectoryRefused(
            f"{directory} cannot be used as a working directory: this session is granted {self.cwd}.",
            hint="Start a session in that directory, or add it to terminal.read or terminal.write in config.yaml.",
            directory=str(directory),
        )


@final
class OutputStream:
    """Bytes of a command as they come, told as text: no character is split and no secret is told in two halves."""

    def __init__(self, redactor: Redactor, tell: Callable[[str], None]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._redactor = redactor
        self._tell = tell

    def feed(self, data: bytes) -> None:
        """More output."""
        self._say(self._redactor.feed(self._decoder.decode(data)))

    def flush(self) -> None:
        """There is no more."""
        self._say(self._redactor.feed(self._decoder.decode(b"", final=True)) + self._redactor.flush())

    def _say(self, text: str) -> None:
        if text:
            self._tell(text)
