"""Terminals that people open in a profile: each is one program, shown to whoever looks, and gone when it ends.

What a terminal shows is a text that grows, as that of a running tool: kept up to a bound, given to each viewer from
where it stands, and never in anybody's way. It is neither redacted nor stored: a person typed into it. Terminals end
with the profile, and when its policy changes; without a viewer they go on, as a terminal that is out of sight does.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol, final

import trio

from hermes_ws.contract.errors import HermesError, LimitReached, NotFound
from hermes_ws.contract.methods.terminals import TerminalRow
from hermes_ws.contract.running_events import TerminalExited, TerminalResized
from hermes_ws.journal.address import Address
from hermes_ws.journal.tail import ThreadTail
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.terminal import TerminalPolicy
from hermes_ws.session import identifiers
from hermes_ws.session.safe import emptied_policy
from hermes_ws.session.text_stream import TextStream
from hermes_ws.warden.grants import Size
from hermes_ws.warden.running import Running
from hermes_ws.wire.frames import event_frame

OPEN = 16
"""Terminals of one profile at once: more than anybody has windows."""


ROOMS_KEPT = 64
"""Viewers of a terminal whose room is remembered; of more, those that came first have to say it again."""


class Home(Protocol):
    """What the terminals need of their profile."""

    def start_soon(self, fn: Callable[[], Awaitable[object]], *, name: str) -> None: ...


@final
class Terminal:
    """One terminal. `tail` is what viewers follow."""

    def __init__(
        self,
        terminal_id: str,
        scope: ProfileScope,
        session_id: str | None,
        command: Sequence[str],
        cwd: Path,
        size: Size,
        running: Running,
    ) -> None:
        self.terminal_id = terminal_id
        self.policy = scope.terminal
        self.session_id = session_id
        self.command = tuple(command)
        self.cwd = cwd
        self.size = size
        self.rooms: dict[str, Size] = {}
        """How much room each viewer has for it, by the viewer's connection."""
        self.works: str | None = None
        """The viewer who last typed or said to work in it, who decides the size."""
        self._sizing = trio.Lock()
        self.running = running
        self.started_at = time.time()
        self.gone = trio.Event()
        self.tail = ThreadTail(Address(scope.profile.text, session_id or "", terminal_id))
        self.tail.live_begin("terminal.output", terminal_id)
        self._stream = TextStream(None, self._show)

    def feed(self, data: bytes) -> None:
        """More of what it shows."""
        self._stream.feed(data)

    async def room(self, viewer: str, size: Size, *, working: bool) -> None:
        """A viewer has so much room. It becomes the size when that viewer works in it, or nobody else looks."""
        self.rooms.pop(viewer, None)
        self.rooms[viewer] = size
        if len(self.rooms) > ROOMS_KEPT:
            del self.rooms[next(iter(self.rooms))]
        if working or self.works in (None, viewer) or self.tail.statistics().listeners <= 1:
            await self.works_in(viewer)

    async def works_in(self, viewer: str) -> None:
        """From now on this viewer decides the size."""
        self.works = viewer
        async with self._sizing:
            # Whoever works by now: one who was overtaken while this waited changes nothing.
            size = self.rooms.get(self.works)
            if size is None or size == self.size:
                return
            await self.running.resize(size.rows, size.columns)
            self.size = size
            told = TerminalResized(terminal_id=self.terminal_id, rows=size.rows, columns=size.columns)
            self.tail.tell("terminal.resized", told)

    def farewell(self, exit_code: int | None, signal: int | None) -> None:
        """It has ended: viewers are told after what they have not seen yet."""
        self._stream.flush()
        told = TerminalExited(terminal_id=self.terminal_id, exit_code=exit_code, signal=signal)
        self.tail.farewell = event_frame(
            {
                "type": "terminal.exited",
                "profile": self.tail.address.profile,
                "session_id": self.session_id,
                "ts": time.time(),
                "payload": told.model_dump(mode="json"),
            }
        )
        self.tail.notify()
        self.gone.set()

    def row(self) -> TerminalRow:
        """What a client sees of it in a list."""
        return TerminalRow(
            terminal_id=self.terminal_id,
            session_id=self.session_id,
            command=list(self.command),
            cwd=str(self.cwd),
            started_at=self.started_at,
            rows=self.size.rows,
            columns=self.size.columns,
            viewers=self.tail.statistics().listeners,
        )

    def _show(self, text: str) -> None:
        self.tail.live_append("terminal.output", self.terminal_id, text)


@final
class Terminals:
    """All terminals of one open profile. They end with its nursery."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._open: dict[str, Terminal] = {}

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._open)

    def check_room(self) -> None:
        """Raise `LimitReached` when no more may be opened."""
        if len(self._open) >= OPEN:
            raise LimitReached(f"{OPEN} terminals are open in this profile already.", hint="Close one of them first.")

    async def add(
        self,
        scope: ProfileScope,
        session_id: str | None,
        command: Sequence[str],
        cwd: Path,
        size: Size,
        running: Running,
    ) -> Terminal:
        """Take over what was started: from here on it is this profile's to end."""
        terminal_id = identifiers.terminal_id(scope.identity.origin)
        terminal = Terminal(terminal_id, scope, session_id, command, cwd, size, running)
        self._open[terminal_id] = terminal
        try:
            self._home.start_soon(lambda: self._follow(terminal), name=f"terminal {terminal_id}")
        except BaseException:
            del self._open[terminal_id]
            await running.aclose()
            raise
        return terminal

    def get(self, terminal_id: str) -> Terminal:
        """One that is open. Raises `NotFound`, also for one that has ended."""
        terminal = self._open.get(terminal_id)
        if terminal is None:
            raise NotFound(f"There is no terminal {terminal_id}, or it has ended.")
        return terminal

    async def input(self, terminal_id: str, text: str, *, viewer: str | None = None) -> None:
        """Type. Returns when it was taken; a viewer's size holds from before that on. Raises `NotFound`."""
        terminal = self.get(terminal_id)
        if viewer is not None:
            await terminal.works_in(viewer)
        await terminal.running.send(text.encode("utf-8", "surrogatepass"))

    async def resize(self, terminal_id: str, size: Size, *, viewer: str = "", working: bool = True) -> None:
        """Tell how much room a viewer has; see `Terminal.room`. Raises `NotFound`."""
        await self.get(terminal_id).room(viewer, size, working=working)

    async def close(self, terminal_id: str) -> None:
        """End it and all that runs in it, and return when that is so. Raises `NotFound`."""
        terminal = self.get(terminal_id)
        await terminal.running.aclose()
        await terminal.gone.wait()

    def rows(self) -> list[TerminalRow]:
        """Those that are open, oldest first."""
        return [terminal.row() for terminal in self._open.values()]

    async def end_session(self, session_id: str) -> None:
        """End those of a session that was closed or deleted."""
        for terminal in tuple(self._open.values()):
            if terminal.session_id == session_id:
                await terminal.running.aclose()

    async def end_other_policies(self, policy: TerminalPolicy) -> None:
        """End what was opened under another policy than this."""
        for terminal in tuple(self._open.values()):
            if terminal.policy not in (policy, emptied_policy(policy)):
                await terminal.running.aclose()

    async def _follow(self, terminal: Terminal) -> None:
        exit_code = signal = None
        try:
            while piece := await terminal.running.receive():
                terminal.feed(piece)
            ended = await terminal.running.wait()
            exit_code, signal = ended.exit_code, ended.signal
        except HermesError:
            pass  # The warden went with it; there is no exit code to tell.
        finally:
            await terminal.running.aclose()
            del self._open[terminal.terminal_id]
            terminal.farewell(exit_code, signal)
