"""A terminal that is elsewhere: on another machine, or in a container. A client program speaks to a shell over there.

What is to be done is said to that shell on its standard input: no secret and no path stands in an argument, where a
list of processes would show it, on neither side. When the client ends, what it runs over there ends as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Protocol, final

import trio

from hermes_ws.contract import errors
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session import remote_scripts as scripts
from hermes_ws.session.ports import Granted
from hermes_ws.warden.grants import Command, FileRead, FileWritten, Finished, Found, Listed, Looking, Size
from hermes_ws.warden.output import HeadAndTail
from hermes_ws.warden.running import Running

FILE_DEADLINE_S = 60.0
"""Seconds for one file operation over there; connecting takes some of them."""

END_WITHIN_S = 10.0
"""Seconds to end a program over there whose client has gone: it has one of them to end by itself."""

FILE_BYTES = 8 * 1024 * 1024
"""The most that one operation reads or writes: it goes over a line."""

TOLD_BYTES = 4 * 1024 * 1024
"""The most that a listing or a search answers with."""


class Client(Protocol):
    """The program that speaks to the other side."""

    @property
    def cwd(self) -> Path:
        """Where the client itself runs."""
        ...

    async def granted(self) -> Granted:
        """A warden that may run it and nothing else, with the other side ready. Raises `WardenFailed`."""
        ...

    def argv(self, words: Sequence[str], *, terminal: bool) -> tuple[str, ...]:
        """What has the other side run `words`; none of them is a secret."""
        ...

    def environment(self) -> Mapping[str, str]:
        """The client's own environment."""
        ...

    def failure(self, finished: Finished) -> str | None:
        """What kept the client from doing its work; nothing when the work was done, well or not."""
        ...

    @property
    def watches(self) -> bool:
        """Whether a program over there has a parent that goes when the client does. If not, it is ended by number."""
        ...

    def standing(self) -> Granted | None:
        """The warden, while the other side is ready; nothing is started for it."""
        ...


@final
class Remote:
    """The backend whose place is behind a client."""

    def __init__(self, scope: ProfileScope, cwd: Path, client: Client) -> None:
        self._scope = scope
        self._cwd = cwd
        self._client = client

    def place(self, path: Path) -> Path:
        """The path over there. `~` is the home over there."""
        return path if path.parts[:1] == ("~",) else self._cwd / path

    def directory(self, cwd: Path | None) -> Path:
        """Any: what may be touched over there is for that machine to say."""
        return self._cwd if cwd is None else self.place(cwd)

    async def run(
        self, command: str, directory: Path, deadline_s: float, on_output: Callable[[bytes], None], said: bytes = b""
    ) -> tuple[Finished, str | None]:
        """Run it in a shell over there. Raises `NotFound` for a directory that is not there."""
        script = scripts.command(command, directory, self._secrets(), lines=said.count(b"\n"))
        kept = HeadAndTail(self._scope.terminal.output_bytes, on_output)
        finished = await self._say(script, said, deadline_s, kept)
        if finished.exit_code == scripts.NO_DIRECTORY:
            raise scripts.problem(finished.exit_code, directory)
        return finished, None

    async def open(
        self,
        argv: Sequence[str],
        directory: Path,
        *,
        env: Mapping[str, str] | None = None,
        terminal: Size | None = None,
        problems_apart: bool = False,
    ) -> Running:
        """Start it over there; a terminal here is joined to one over there by the client."""
        followed = terminal is None and self._client.watches
        mark = None if self._client.watches else f"/tmp/.{token_hex(8)}"
        script = scripts.program(argv, directory, {**self._secrets(), **(env or {})}, followed=followed, mark=mark)
        running = await self._become(script, terminal, problems_apart=problems_apart)
        if mark is not None:
            running.afterwards = lambda: self._end_by_number(mark)
        return running

    async def _become(self, script: str, terminal: Size | None, *, problems_apart: bool) -> Running:
        if terminal is None:
            running = await self._open(("/bin/sh", "-c", scripts.READER), None, problems_apart=problems_apart)
            try:
                await running.send(scripts.spoken(script))
            except BaseException:
                await running.aclose()
                raise
            return running
        kept = HeadAndTail(scripts.HEAD_BYTES)
        finished = await self._say(scripts.kept(script), b"", FILE_DEADLINE_S, kept)
        if finished.exit_code != 0 or not finished.output.startswith(b"/"):
            raise errors.WardenFailed("A terminal could not be prepared over there.")
        return await self._open(("/bin/sh", finished.output.decode(errors="replace")), terminal)

    def shell(self, command: str) -> tuple[str, ...]:
        """The shell that every machine has."""
        return ("/bin/sh", "-c", command) if command else ("/bin/sh", "-l")

    # --- files -------------------------------------------------------------------------------------------------------

    async def read(self, path: Path, offset: int, limit: int) -> FileRead:
        """A piece of a file."""
        limit = min(limit, FILE_BYTES)
        told = await self._file(scripts.read(self.place(path), offset, limit), path, limit)
        head, _, data = told.partition(b"\n")
        if not head.isdigit() or len(head) > 20:
            raise errors.FileFailed(f"{path} was answered with nonsense.")
        return FileRead(data, int(head))

    async def write(self, path: Path, data: bytes) -> FileWritten:
        """A whole file: beside it first, then renamed."""
        if len(data) > FILE_BYTES:
            raise errors.InvalidParams(f"At most {FILE_BYTES} bytes are written at once.")
        told = await self._file(scripts.write(self.place(path), len(data)), path, 0, data)
        return FileWritten(len(data), told.strip() == b"created")

    async def list_files(self, path: Path, *, depth: int, limit: int, hidden: bool, pattern: str | None) -> Listed:
        """What is below a directory."""
        told = await self._file(scripts.listing(self.place(path), depth, hidden=hidden), path, TOLD_BYTES)
        return scripts.read_listing(told, limit, pattern)

    async def search_files(self, path: Path, what: Looking) -> Found:
        """Where something stands."""
        told = await self._file(scripts.search(self.place(path), what), path, TOLD_BYTES)
        return scripts.read_search(told, what)

    # --- within ------------------------------------------------------------------------------------------------------

    async def _file(self, script: str, path: Path, limit: int, data: bytes = b"") -> bytes:
        finished = await self._say(script, data, FILE_DEADLINE_S, HeadAndTail(2 * (limit + scripts.HEAD_BYTES)))
        if finished.timed_out:
            raise errors.FileFailed(f"{path} took longer than {FILE_DEADLINE_S:.0f} s.")
        if finished.exit_code != 0:
            raise scripts.problem(finished.exit_code, path)
        return finished.output

    async def _open(self, words: Sequence[str], terminal: Size | None, *, problems_apart: bool = False) -> Running:
        granted = await self._client.granted()
        argv = self._client.argv(words, terminal=terminal is not None)
        order = Command(argv, self._client.cwd, self._client.environment())
        return await granted.warden.open(order, terminal=terminal, problems_apart=problems_apart)

    async def _end_by_number(self, mark: str) -> None:
        """End what a client started and left behind, unless all of the other side is gone."""
        granted = self._client.standing()
        if granted is None:
            return
        argv = self._client.argv(("/bin/sh", "-c", scripts.ENDING, "sh", mark), terminal=False)
        order = Command(argv, self._client.cwd, self._client.environment(), deadline_s=END_WITHIN_S)
        with suppress(errors.HermesError):
            await granted.warden.run(order)

    async def _say(self, script: str, data: bytes, deadline_s: float, kept: HeadAndTail) -> Finished:
        """Have a script run to its end. Its input stays open until then: its end is the sign to end over there."""
        began = trio.current_time()
        async with await self._open(("/bin/sh", "-c", scripts.READER), None) as running:
            with trio.move_on_after(deadline_s) as clock:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_feed, running, scripts.spoken(script) + data)
                    while piece := await running.receive():
                        kept.feed(piece)
                    nursery.cancel_scope.cancel()
            ended = None if clock.cancelled_caught else await running.wait()
        finished = Finished(
            exit_code=None if ended is None else ended.exit_code,
            signal=None if ended is None else ended.signal,
            timed_out=ended is None,
            truncated=kept.over,
            output=kept.result(),
            duration_ms=round((trio.current_time() - began) * 1000),
        )
        failure = self._client.failure(finished)
        if failure is not None:
            raise errors.WardenFailed(failure)
        return finished

    def _secrets(self) -> dict[str, str]:
        """What the policy gives to commands; the names were checked when it was loaded."""
        revealed = {name: self._scope.secrets.get(name) for name in self._scope.terminal.env}
        return {name: value for name, value in revealed.items() if value is not None}


async def _feed(running: Running, data: bytes) -> None:
    try:
        await running.send(data)
    except errors.NotFound:
        return  # It ended before it had heard all; its exit code says why.
