"""Commands that go on in the background of a profile's sessions: they outlive the turn that started them.

They do not outlive what they were allowed: when the profile's terminal policy changes, those that were started under
the old one are ended. They end with their session when it is closed for good, and with the profile. What they write is
redacted as it comes, and its last part is kept. The thread that started one is told of its end, durably (PROC, OWNER).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, final

import trio

from hermes_ws.agent.deeds import Background
from hermes_ws.contract.errors import HermesError, LimitReached, NotFound
from hermes_ws.contract.methods.processes import ProcessOutput, ProcessRow
from hermes_ws.contract.running_events import ProcessEnded, ProcessExited
from hermes_ws.journal.address import Address, ThreadKey
from hermes_ws.journal.database import Database
from hermes_ws.journal.tail import ThreadTail
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.terminal import TerminalPolicy
from hermes_ws.session import identifiers
from hermes_ws.session.safe import emptied_policy
from hermes_ws.session.text_stream import TextStream
from hermes_ws.warden.running import Running
from hermes_ws.wire.frames import event_frame

RUNNING = 32
"""Background processes of one profile at once: each has pipes, a process and a task."""

ENDED_KEPT = 64
"""Those that ended and can still be asked about; the oldest is forgotten first."""

OUTPUT_CHARACTERS = 256 * 1024
"""Kept of what one wrote last: a long build's end, and some minutes of a talkative server."""

TOLD_CHARACTERS = 2000
"""What the event of its end carries of its output: the lines that say why."""


class Home(Protocol):
    """What the processes need of their profile."""

    @property
    def journal(self) -> Database: ...

    def start_soon(self, fn: Callable[[], Awaitable[object]], *, name: str) -> None: ...


@final
class Process:
    """One of them: running, then ended. `tail` is what those who follow it get."""

    def __init__(self, process_id: str, key: ThreadKey, command: str, scope: ProfileScope, running: Running) -> None:
        self.process_id = process_id
        self.key = key
        self.command = command
        self.policy = scope.terminal
        self.loaded = scope.loaded
        self.running = running
        self.started_at = time.time()
        self.exit_code: int | None = None
        self.signal: int | None = None
        self.gone = trio.Event()
        self.kept = ""
        self.total = 0
        self.redact = scope.secrets.redact
        self.tail = ThreadTail(Address(scope.profile.text, key.session_id, process_id))
        self.tail.live_begin("process.output", process_id)
        self._stream = TextStream(scope.secrets.redactor(), self._keep)

    def feed(self, data: bytes) -> None:
        """More of what it wrote."""
        self._stream.feed(data)

    def flush(self) -> None:
        """It writes nothing any more."""
        self._stream.flush()

    def farewell(self) -> None:
        """It has ended: those who follow it are told after what they have not read yet."""
        told = ProcessEnded(process_id=self.process_id, exit_code=self.exit_code, signal=self.signal)
        self.tail.farewell = event_frame(
            {
                "type": "process.ended",
                "profile": self.tail.address.profile,
                "session_id": self.key.session_id,
                "ts": time.time(),
                "payload": told.model_dump(mode="json"),
            }
        )
        self.tail.notify()

    def background(self) -> Background:
        """What a turn sees of it."""
        return Background(self.process_id, self.command, not self.gone.is_set(), self.exit_code, self.signal)

    def row(self) -> ProcessRow:
        """What a client sees of it."""
        return ProcessRow(
            process_id=self.process_id,
            session_id=self.key.session_id,
            thread_id=self.key.thread_id,
            command=self.redact(self.command),
            started_at=self.started_at,
            running=not self.gone.is_set(),
            exit_code=self.exit_code,
            signal=self.signal,
            characters=self.total,
        )

    def _keep(self, text: str) -> None:
        self.total += len(text)
        self.kept = (self.kept + text)[-OUTPUT_CHARACTERS:]
        self.tail.live_append("process.output", self.process_id, text)


@final
class Processes:
    """All background processes of one open profile. They end with its nursery."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._all: dict[str, Process] = {}

    @property
    def count(self) -> int:
        """How many run."""
        return sum(1 for process in self._all.values() if not process.gone.is_set())

    async def add(self, scope: ProfileScope, key: ThreadKey, command: str, running: Running) -> Background:
        """Take over what was started: from here on it is this profile's to end. Raises `LimitReached`."""
        if self.count >= RUNNING:
            await running.aclose()
            raise LimitReached(
                f"{RUNNING} processes run in the background of this profile already.",
                hint="End one of them first.",
            )
        process_id = identifiers.process_id(scope.identity.origin)
        process = Process(process_id, key, command, scope, running)
        self._all[process_id] = process
        try:
            self._home.start_soon(lambda: self._follow(process), name=f"process {process_id}")
        except BaseException:
            del self._all[process_id]
            await running.aclose()
            raise
        return process.background()

    def of(self, session_id: str | None) -> tuple[Background, ...]:
        """Those of a session, or all, oldest first."""
        return tuple(process.background() for process in self._of(session_id))

    def rows(self, session_id: str | None) -> list[ProcessRow]:
        """The same, for a client."""
        return [process.row() for process in self._of(session_id)]

    def output(self, session_id: str | None, process_id: str) -> ProcessOutput:
        """The last of what it wrote, redacted. Raises `NotFound`."""
        process = self._find(session_id, process_id)
        begin = process.total - len(process.kept)
        return ProcessOutput(process_id=process_id, offset=begin, text=process.kept, running=not process.gone.is_set())

    def tail(self, process_id: str) -> ThreadTail:
        """What to follow to get what it writes as it comes. Raises `NotFound`."""
        return self._find(None, process_id).tail

    async def write(self, session_id: str | None, process_id: str, text: str) -> None:
        """Write to its input. Raises `NotFound`, also when it has ended."""
        await self._find(session_id, process_id).running.send(text.encode(errors="replace"))

    async def kill(self, session_id: str | None, process_id: str) -> Background:
        """End it and all that it started, and return when that is so. Raises `NotFound`."""
        process = self._find(session_id, process_id)
        await process.running.aclose()
        await process.gone.wait()
        return process.background()

    async def end_session(self, session_id: str) -> None:
        """End those of a session that was closed or deleted."""
        for process in self._of(session_id):
            await process.running.aclose()

    async def end_other_policies(self, policy: TerminalPolicy) -> None:
        """End what was started under another policy than this: it may hold what is no longer granted."""
        for process in self._of(None):
            if process.policy not in (policy, emptied_policy(policy)):
                await process.running.aclose()

    def _of(self, session_id: str | None) -> tuple[Process, ...]:
        return tuple(each for each in self._all.values() if session_id in (None, each.key.session_id))

    def _find(self, session_id: str | None, process_id: str) -> Process:
        process = self._all.get(process_id)
        if process is None or session_id not in (None, process.key.session_id):
            raise NotFound(f"There is no background process {process_id}.")
        return process

    async def _follow(self, process: Process) -> None:
        """Read it to its end; then say how it ended, where it was started."""
        try:
            while piece := await process.running.receive():
                process.feed(piece)
            ended = await process.running.wait()
            process.exit_code, process.signal = ended.exit_code, ended.signal
        except HermesError:
            pass  # The warden went with it; there is no exit code to tell.
        finally:
            await process.running.aclose()
            process.flush()
            process.gone.set()
            process.farewell()
        self._forget()
        told = ProcessExited(
            process_id=process.process_id,
            exit_code=process.exit_code,
            signal=process.signal,
            command=process.redact(process.command),
            tail=process.kept[-TOLD_CHARACTERS:],
        )
        with contextlib.suppress(HermesError):
            # Its thread may be gone, or the disk take nothing; `process.list` still says that it ended.
            await self._home.journal.transact(lambda tx: tx.append(process.key, "process.exited", told))

    def _forget(self) -> None:
        ended = [each.process_id for each in self._all.values() if each.gone.is_set()]
        for process_id in ended[: max(0, len(ended) - ENDED_KEPT)]:
            del self._all[process_id]
