"""Where a profile's terminal is: on this machine, or somewhere that a client program speaks to. See `remote.py`.

Whatever the place, tools act on it alike; with a remote one nothing ever looks at the server's own files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, final

from hermes_ws.contract.errors import DirectoryRefused
from hermes_ws.scope.environment import child_environment
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session import ripgrep
from hermes_ws.session.ports import Granted, Runtime
from hermes_ws.warden.denied import explain_denied
from hermes_ws.warden.grants import Command, FileRead, FileWritten, Finished, Found, Listed, Looking, Size
from hermes_ws.warden.running import Running

BASH = "/bin/bash"
SHELL = "/bin/sh"
RIPGREP = "/usr/bin/rg"

SEARCH_DEADLINE_S = 30.0
"""Seconds for one search; what was found until then is told."""

SEARCH_BYTES = 4 * 1024 * 1024
"""What a search may print: thousands of lines."""


class Backend(Protocol):
    """What can be done at the place. Errors are those of `Warden`; paths are absolute there, or begin with `~`."""

    def place(self, path: Path) -> Path:
        """The path as the session means it, without looking at any disk."""
        ...

    def directory(self, cwd: Path | None) -> Path:
        """Where a command is to run. Raises `DirectoryRefused` for a directory outside of what is granted."""
        ...

    async def run(
        self, command: str, directory: Path, deadline_s: float, on_output: Callable[[bytes], None], said: bytes = b""
    ) -> tuple[Finished, str | None]:
        """Run a command line to its end or deadline; and what a refusal means, when it ended with one. `said` is its
        input."""
        ...

    async def open(
        self,
        argv: Sequence[str],
        directory: Path,
        *,
        env: Mapping[str, str] | None = None,
        terminal: Size | None = None,
        problems_apart: bool = False,
    ) -> Running:
        """Start a program that goes on. `env` is added to the usual environment."""
        ...

    def shell(self, command: str) -> tuple[str, ...]:
        """The words that run a command line; without one, those of a shell for a person."""
        ...

    async def read(self, path: Path, offset: int, limit: int) -> FileRead: ...

    async def write(self, path: Path, data: bytes) -> FileWritten: ...

    async def list_files(self, path: Path, *, depth: int, limit: int, hidden: bool, pattern: str | None) -> Listed: ...

    async def search_files(self, path: Path, what: Looking) -> Found: ...


@final
class Local:
    """This machine, through the profile's warden. The kernel enforces the grants; the checks here say so in words."""

    def __init__(self, runtime: Runtime, scope: ProfileScope, cwd: Path) -> None:
        self._runtime = runtime
        self._scope = scope
        self._cwd = cwd

    def place(self, path: Path) -> Path:
        """The absolute path; links are the kernel's to judge."""
        if path.parts[:1] == ("~",):
            path = self._scope.home.user.joinpath(*path.parts[1:])
        return Path(os.path.normpath(self._cwd / path))

    def directory(self, cwd: Path | None) -> Path:
        """The session's directory, or one that is granted besides it."""
        if cwd is None:
            return self._cwd
        directory = self.place(cwd)
        policy = self._scope.terminal
        for root in (self._cwd, self._scope.home.user, *policy.write, *policy.read):
            if directory.is_relative_to(root):
                return directory
        raise DirectoryRefused(
            f"{directory} cannot be used as a working directory: this session is granted {self._cwd}.",
            hint="Start a session in that directory, or add it to terminal.read or terminal.write in config.yaml.",
            directory=str(directory),
        )

    async def run(
        self, command: str, directory: Path, deadline_s: float, on_output: Callable[[bytes], None], said: bytes = b""
    ) -> tuple[Finished, str | None]:
        """In a shell of its own."""
        granted = await self._granted()
        order = Command(
            argv=self.shell(command),
            cwd=directory,
            env=self._environment(None),
            deadline_s=deadline_s,
            output_bytes=self._scope.terminal.output_bytes,
            stdin=said,
        )
        finished = await granted.warden.run(order, on_output)
        hidden = granted.warden.confinement.bubblewrap
        return finished, explain_denied(finished, granted.grants, command=command, hidden=hidden)

    async def open(
        self,
        argv: Sequence[str],
        directory: Path,
        *,
        env: Mapping[str, str] | None = None,
        terminal: Size | None = None,
        problems_apart: bool = False,
    ) -> Running:
        """Below the warden, for as long as that lives."""
        granted = await self._granted()
        order = Command(tuple(argv), directory, self._environment(env))
        return await granted.warden.open(order, terminal=terminal, problems_apart=problems_apart)

    def shell(self, command: str) -> tuple[str, ...]:
        """bash where there is one."""
        program = BASH if os.access(BASH, os.X_OK) else SHELL
        return (program, "-c", command) if command else (program, "-l")

    async def read(self, path: Path, offset: int, limit: int) -> FileRead:
        """A piece of a file."""
        return await (await self._granted()).warden.read_file(self.place(path), offset=offset, limit=limit)

    async def write(self, path: Path, data: bytes) -> FileWritten:
        """A whole file, at once or not at all."""
        return await (await self._granted()).warden.write_file(self.place(path), data)

    async def list_files(self, path: Path, *, depth: int, limit: int, hidden: bool, pattern: str | None) -> Listed:
        """What is below a directory."""
        warden = (await self._granted()).warden
        return await warden.list_files(self.place(path), depth=depth, limit=limit, hidden=hidden, pattern=pattern)

    async def search_files(self, path: Path, what: Looking) -> Found:
        """Where something stands: found by ripgrep where it is installed, else, and when it fails, by the warden."""
        warden = (await self._granted()).warden
        place = self.place(path)
        if os.access(RIPGREP, os.X_OK):
            words = ripgrep.words(RIPGREP, place, what)
            order = Command(words, self._cwd, self._environment(None), SEARCH_DEADLINE_S, SEARCH_BYTES)
            finished = await warden.run(order)
            if finished.exit_code in (0, 1) or finished.timed_out:
                return ripgrep.read(finished, place, what)
        return await warden.search_files(place, what)

    async def _granted(self) -> Granted:
        return await self._runtime.warden_for(self._scope, self._cwd)

    def _environment(self, env: Mapping[str, str] | None) -> dict[str, str]:
        usual = child_environment(self._runtime.base_environment, scope=self._scope)
        return {**usual, **(env or {})}
