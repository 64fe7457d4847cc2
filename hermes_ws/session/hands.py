"""How a turn acts on the machine: through the profile's warden, within what the policy grants.

What comes back is text: decoded, and with the profile's secrets replaced. A path is taken from the session's directory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import final

from hermes_ws.agent.deeds import Background, FoundLine, FoundLines, ListedEntry, Listing, Ran, ReadFile, Written
from hermes_ws.contract.errors import InvalidParams, NotFound, PermissionDenied
from hermes_ws.journal.address import ThreadKey
from hermes_ws.scope.environment import child_environment
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.backends import backend_for
from hermes_ws.session.elevating import PASSWORD_SHOWN, with_password
from hermes_ws.session.ports import Runtime
from hermes_ws.session.slash_workers import Place
from hermes_ws.session.text_stream import TextStream
from hermes_ws.warden.denied import explain_denied
from hermes_ws.warden.grants import Command, Looking
from hermes_ws.warden.output import HeadAndTail
from hermes_ws.warden.running import Running

BINARY_SAMPLE = 8192
"""Bytes that are looked at to tell text from data, as grep and git do."""

EDIT_BYTES = 16 * 1024 * 1024
"""The largest file that is edited: it is in memory, more than once."""

COMPLETIONS = 200
"""Paths that one completion offers: more than anybody reads."""


@final
class SessionHands:
    """The `Hands` of one execution: the scope that it began with, and its session's directory.

    What it starts in the background belongs to the session; `thread` is told when it ends.
    """

    def __init__(self, runtime: Runtime, scope: ProfileScope, cwd: Path, thread: ThreadKey | None = None) -> None:
        self._runtime = runtime
        self._scope = scope
        self._thread = thread
        self._backend = backend_for(runtime, scope, cwd, None if thread is None else thread.session_id)
        self.cwd = cwd

    @property
    def here(self) -> bool:
        """Paths of another machine and of a container are not this machine's."""
        return self._scope.terminal.backend == "local"

    @property
    def gains_rights(self) -> bool:
        """On another machine and in a container, and here where nothing is confined."""
        return self._scope.terminal.backend != "local" or self._scope.terminal.confine == "off"

    async def run(
        self,
        command: str,
        *,
        cwd: Path | None,
        deadline_s: float,
        on_output: Callable[[str], None],
        password: str | None = None,
    ) -> Ran:
        """Run a command line in a shell. Cancelling ends it and all that it started before this returns.

        Raises `DirectoryRefused` for a directory outside of the grants, `WardenFailed`, `ConfinementUnavailable`.
        """
        directory = self._backend.directory(cwd)
        secrets, said = self._scope.secrets, b""
        if password is not None:
            command, said = with_password(command), password.encode() + b"\n"
            secrets = secrets.hiding({PASSWORD_SHOWN: password})
        stream = TextStream(secrets.redactor(), on_output)
        deadline = min(deadline_s, self._scope.terminal.deadline_s)
        finished, explanation = await self._backend.run(command, directory, deadline, stream.feed, said)
        stream.flush()
        return Ran(
            exit_code=finished.exit_code,
            signal=finished.signal,
            timed_out=finished.timed_out,
            truncated=finished.truncated,
            output=secrets.redact(finished.output.decode(errors="replace")),
            duration_ms=finished.duration_ms,
            explanation=explanation,
        )

    async def slash(self, command: str, *, deadline_s: float) -> Ran:
        """Run a command line that was typed behind a slash: in the session's slash worker, where the terminal is here.

        A terminal that is elsewhere has none: there it runs as `run` would. Raises what `run` does.
        """
        if self._scope.terminal.backend != "local":
            return await self.run(command, cwd=None, deadline_s=deadline_s, on_output=lambda piece: None)
        policy, secrets = self._scope.terminal, self._scope.secrets
        place = Place(self._key.session_id, self._scope, self.cwd)
        finished = await self._runtime.ongoing.slash.run(
            place,
            lambda argv: self._backend.open(argv, self.cwd),
            self._backend.shell(command),
            min(deadline_s, policy.deadline_s),
            HeadAndTail(policy.output_bytes),
        )
        granted = await self._runtime.warden_for(self._scope, self.cwd)
        hidden = granted.warden.confinement.bubblewrap
        return Ran(
            exit_code=finished.exit_code,
            signal=finished.signal,
            timed_out=finished.timed_out,
            truncated=finished.truncated,
            output=secrets.redact(finished.output.decode(errors="replace")),
            duration_ms=finished.duration_ms,
            explanation=explain_denied(finished, granted.grants, command=command, hidden=hidden),
        )

    # --- files -------------------------------------------------------------------------------------------------------

    async def read(self, path: Path, *, offset: int = 0, limit: int) -> ReadFile:
        """Read a part of a file. Raises `NotFound`, `PermissionDenied`, `WardenFailed`."""
        read = await self._backend.read(path, offset, limit)
        text = None if _is_binary(read.data) else self._scope.secrets.redact(read.data.decode(errors="replace"))
        return ReadFile(text=text, size=read.size)

    async def write(self, path: Path, text: str) -> Written:
        """Write a whole file; it is replaced at once or not at all. Raises `PermissionDenied`, `WardenFailed`."""
        written = await self._backend.write(path, text.encode(errors="replace"))
        return Written(size=written.size, created=written.created)

    async def edit(self, path: Path, change: Callable[[str], str]) -> Written:
        """Give a text file a new content, made of the present one, which is not redacted: it stays on this side."""
        read = await self._backend.read(path, 0, EDIT_BYTES)
        if read.size > EDIT_BYTES:
            raise InvalidParams(f"{path} has {read.size} bytes; at most {EDIT_BYTES} are edited.")
        if _is_binary(read.data):
            raise InvalidParams(f"{path} is no text.")
        changed = change(read.data.decode("utf-8", "surrogateescape"))
        written = await self._backend.write(path, changed.encode("utf-8", "surrogateescape"))
        return Written(size=written.size, created=written.created)

    async def list_files(
        self, path: Path, *, depth: int, limit: int, hidden: bool = False, pattern: str | None = None
    ) -> Listing:
        """What is below a directory. Raises `NotFound`, `PermissionDenied`."""
        listed = await self._backend.list_files(path, depth=depth, limit=limit, hidden=hidden, pattern=pattern)
        entries = [ListedEntry(entry.name, entry.kind, entry.size) for entry in listed.entries]
        return Listing(entries, listed.more)

    async def search_files(
        self,
        path: Path,
        expression: str,
        *,
        literal: bool = False,
        ignore_case: bool = False,
        pattern: str | None = None,
        limit: int = 200,
    ) -> FoundLines:
        """Where something stands. Raises `NotFound`, `PermissionDenied`, `InvalidParams`."""
        looking = Looking(expression, literal, ignore_case, pattern, limit)
        found = await self._backend.search_files(path, looking)
        redact = self._scope.secrets.redact
        matches = [FoundLine(match.name, match.line, redact(match.text)) for match in found.matches]
        return FoundLines(matches, found.more)

    async def complete(self, text: str) -> tuple[str, ...]:
        """The paths that begin with what was typed, directories with a slash at their end. None is no error.

        The place is the terminal's own: with a remote backend nothing looks at this machine (TERM-09).
        """
        head, slash, tail = text.rpartition("/")
        directory = Path(head or "/") if slash else self.cwd
        try:
            listed = await self._backend.list_files(
                directory, depth=1, limit=COMPLETIONS, hidden=tail.startswith("."), pattern=f"{_literal(tail)}*"
            )
        except (NotFound, PermissionDenied, InvalidParams):
            return ()
        return tuple(f"{head}{slash}{entry.name}{'/' if entry.kind == 'directory' else ''}" for entry in listed.entries)

    # --- what goes on ------------------------------------------------------------------------------------------------

    async def start(self, command: str, *, cwd: Path | None) -> Background:
        """Start a command line in the background: it outlives the turn, and neither its session nor its policy."""
        directory = self._backend.directory(cwd)
        running = await self._backend.open(self._backend.shell(command), directory)
        return await self._runtime.ongoing.processes.add(self._scope, self._key, command, running)

    def processes(self) -> Sequence[Background]:
        """Those of this session, oldest first."""
        return self._runtime.ongoing.processes.of(self._key.session_id)

    async def process_output(self, process_id: str, *, limit: int) -> str:
        """The last of what it wrote, redacted. Raises `NotFound`."""
        return self._runtime.ongoing.processes.output(self._key.session_id, process_id).text[-limit:]

    async def process_write(self, process_id: str, text: str) -> None:
        """Write to its input. Raises `NotFound`."""
        await self._runtime.ongoing.processes.write(self._key.session_id, process_id, text)

    async def process_kill(self, process_id: str) -> Background:
        """End it and all that it started. Raises `NotFound`."""
        return await self._runtime.ongoing.processes.kill(self._key.session_id, process_id)

    async def open_pipe(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Running:
        """Start a program of the profile's settings, with pipes to it; whoever opens it ends it.

        It runs beside the server also when the terminal is elsewhere: it belongs to the profile, not to the project.
        """
        local = self._scope.terminal.backend == "local"
        directory = self.cwd if local else self._scope.home.user
        granted = await self._runtime.warden_for(self._scope, directory)
        # Its own secrets and no others: what the terminal is given is for the terminal.
        usual = child_environment(self._runtime.base_environment, scope=self._scope, secrets=())
        return await granted.warden.open(Command(tuple(argv), directory, {**usual, **env}), problems_apart=True)

    @property
    def _key(self) -> ThreadKey:
        assert self._thread is not None, "hands without a thread start nothing that goes on; give them its key"
        return self._thread


def _is_binary(data: bytes) -> bool:
    return b"\0" in data[:BINARY_SAMPLE]


def _literal(text: str) -> str:
    """The text as a shell's pattern that fits it alone."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)
