"""The slash workers of a profile's sessions: what `slash.exec` runs, it runs in the session's own one.

A session has none until its first command and never more than one (case REAP-07). Its worker is a child of the warden
for the profile, the load and the directory, and a task of the profile. It ends with its session, when nobody used it
for `warden.idle_s`, and with the profile. It ends as well when the profile was loaded again, since it has the secrets
of the load before: at once when the terminal's policy is another one, otherwise after the command that runs. One that
dies is replaced at the next command. A command that was begun is never begun a second time.

What a worker says is believed as little as what a warden says: a message that does not fit is its end.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, final

import trio

from hermes_ws.contract.errors import HermesError, WardenFailed
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.warden import slash
from hermes_ws.warden.answers import Ended, not_started
from hermes_ws.warden.grants import Finished
from hermes_ws.warden.output import HeadAndTail
from hermes_ws.warden.pending import OVER_PAUSE_S
from hermes_ws.warden.running import Running

ARGV: Final = (sys.executable, "-I", "-S", "-X", "utf8", "-c", inspect.getsource(slash))
"""The worker with the interpreter of this server. Nothing in it is a secret: arguments can be seen."""

LEAVE_S: Final = 5.0
"""Seconds for a worker that ends by itself to be gone, and all that its command left; then it is ended."""

LINE_BYTES: Final = 64
"""The longest line in front of a message: a word and two numbers."""

LOOKS_PER_IDLE: Final = 4
"""How often an unused worker is looked at within its idle time: it ends at most a quarter late."""

Open = Callable[[Sequence[str]], Awaitable[Running]]
"""Start a program that goes on, in the session's directory, with the environment of its commands."""


class Home(Protocol):
    """The profile that owns them."""

    def start_soon(self, fn: Callable[[], Awaitable[object]], *, name: str) -> None: ...


@final
@dataclass(frozen=True, slots=True)
class Place:
    """Whose worker, and as what it is started: another load or directory takes another worker."""

    session_id: str
    scope: ProfileScope
    cwd: Path

    def same(self, other: Place) -> bool:
        """Whether a worker for one serves the other."""
        return (self.session_id, self.scope.loaded, self.cwd) == (other.session_id, other.scope.loaded, other.cwd)


@final
class SlashWorkers:
    """Those of all sessions of one open profile. They end with its nursery."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._of: dict[str, _Worker] = {}

    @property
    def count(self) -> int:
        """How many live."""
        return len(self._of)

    async def run(
        self, place: Place, open_worker: Open, words: Sequence[str], deadline_s: float, kept: HeadAndTail
    ) -> Finished:
        """Run a program in the session's worker, after those that were asked for before; its output goes to `kept`.

        At the deadline, and when it is cancelled, the command ends with the worker and with all that it started, before
        this returns. A worker that dies under a command says so in its output. Raises what `Warden.open` does,
        `NotFound` for a directory that is gone, `WardenFailed`, `Draining`.
        """
        while True:
            worker = self._of.get(place.session_id)
            if worker is not None and not worker.place.same(place):
                await worker.retire()
                continue
            worker = worker or self._start(place, open_worker)
            finished = await worker.run(words, deadline_s, kept)
            if finished is not None:
                return finished

    def _start(self, place: Place, open_worker: Open) -> _Worker:
        worker = self._of[place.session_id] = _Worker(place, open_worker, self._gone)
        try:
            self._home.start_soon(worker.live, name=f"slash worker of {place.session_id}")
        except BaseException:
            self._gone(worker)
            raise
        return worker

    def _gone(self, worker: _Worker) -> None:
        if self._of.get(worker.place.session_id) is worker:
            del self._of[worker.place.session_id]

    def stop(self, session_id: str) -> None:
        """The session is closed: its worker ends, whatever it runs; it is gone a moment later."""
        worker = self._of.get(session_id)
        if worker is not None:
            worker.stop()

    def rest(self, session_id: str) -> None:
        """The session is put aside: its worker ends, unless it runs something; then it ends after that."""
        worker = self._of.get(session_id)
        if worker is not None:
            worker.leave()

    def loaded(self, scope: ProfileScope) -> None:
        """The profile was loaded again: those of other loads are to end, those of another policy at once."""
        for worker in tuple(self._of.values()):
            if worker.place.scope.terminal != scope.terminal:
                worker.stop()
            elif worker.place.scope.loaded != scope.loaded:
                worker.leave()


@final
class _Worker:
    """One worker, from before its start to after its end; `gone` is called when nothing of it lives."""

    def __init__(self, place: Place, open_worker: Open, gone: Callable[[_Worker], None]) -> None:
        self.place = place
        self._open = open_worker
        self._tell_gone = gone
        self._turn = trio.Lock()
        self._ready = trio.Event()
        self._ended = trio.Event()
        self._scope = trio.CancelScope()
        self._pipe: Running | None = None
        self._problem: HermesError | None = None
        self._used = trio.current_time()
        self._leaving = False

    # --- life --------------------------------------------------------------------------------------------------------

    async def live(self) -> None:
        """Start it, and see to it until it ends by itself, is told to, or was not used for long. Raises nothing."""
        idle_s = self.place.scope.config.warden.idle_s
        try:
            with self._scope:
                pipe = self._pipe = await self._open(ARGV)
                self._ready.set()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._end_when_idle, idle_s)
                    ended = await pipe.wait()
                    if ended.stage is not None:
                        raise _not_started(ended, self.place.cwd)
                    nursery.cancel_scope.cancel()
        except* HermesError as group:
            self._problem = _first(group)
        finally:
            self._leaving = True
            if self._pipe is not None:
                with trio.CancelScope(shield=True):
                    await self._pipe.close_input()
                    await self._pipe.aclose()
            self._tell_gone(self)
            self._ready.set()
            self._ended.set()

    async def _end_when_idle(self, idle_s: float) -> None:
        while True:
            await trio.sleep(idle_s / LOOKS_PER_IDLE)
            if not self._turn.locked() and trio.current_time() - self._used >= idle_s:
                self.stop()

    def stop(self) -> None:
        """End it now, with what it runs."""
        self._leaving = True
        self._scope.cancel()

    def leave(self) -> None:
        """End it once it runs nothing."""
        self._leaving = True
        if not self._turn.locked():
            self._scope.cancel()

    async def end(self) -> None:
        """`stop`, and return when it is gone."""
        self.stop()
        await self._ended.wait()

    async def retire(self) -> None:
        """`leave`, and return when it is gone."""
        self.leave()
        await self._ended.wait()

    # --- commands ----------------------------------------------------------------------------------------------------

    async def run(self, words: Sequence[str], deadline_s: float, kept: HeadAndTail) -> Finished | None:
        """One command in its turn; None when the worker ended before it had begun, so that another one may run it."""
        async with self._turn:
            await self._ready.wait()
            if self._problem is not None:
                raise self._problem
            pipe = self._pipe
            if pipe is None or self._leaving:
                await self._ended.wait()
                return None
            try:
                return await self._one(pipe, words, deadline_s, kept)
            finally:
                self._used = trio.current_time()
                if self._leaving:
                    self._scope.cancel()

    async def _one(self, pipe: Running, words: Sequence[str], deadline_s: float, kept: HeadAndTail) -> Finished | None:
        started = trio.current_time()
        talk = _Talk(pipe)
        code: int | None = None
        try:
            with trio.move_on_after(deadline_s) as clock:
                with suppress(HermesError):
                    await pipe.send(json.dumps(list(words)).encode("ascii") + b"\n")
                    code = await talk.through(kept)
            if code is None or talk.left:
                await self._clear_up(wait=talk.left)
        except BaseException:
            with trio.CancelScope(shield=True):
                await self.end()
            raise
        if talk.nonsense:
            raise WardenFailed("The slash worker answered with nonsense, and was ended.")
        if code is None and not talk.begun and not clock.cancelled_caught:
            if self._problem is not None:
                raise self._problem
            return None
        if code is None and not clock.cancelled_caught:
            kept.note("The slash worker ended before the command did. The next command has a new one.")
        return Finished(
            exit_code=None if code is None or code < 0 else code,
            signal=-code if code is not None and code < 0 else None,
            timed_out=code is None and clock.cancelled_caught,
            truncated=kept.over,
            output=kept.result(),
            duration_ms=round((trio.current_time() - started) * 1000),
        )

    async def _clear_up(self, *, wait: bool) -> None:
        """The worker does not go on: see to it that nothing of it is left when the command is answered."""
        self._leaving = True
        if wait:
            with trio.move_on_after(LEAVE_S):
                await self._ended.wait()
        await self.end()


@final
class _Talk:
    """What a worker says about one command."""

    def __init__(self, pipe: Running) -> None:
        self._pipe = pipe
        self._buffer = b""
        self.begun = False
        self.left = False
        self.nonsense = False

    async def through(self, kept: HeadAndTail) -> int | None:
        """Follow the command to its end: its code, or None when the worker ended or says what does not fit."""
        try:
            while True:
                word, *numbers = await self._line()
                if word == b"begun" and not numbers and not self.begun:
                    self.begun = True
                elif word == b"out" and self.begun and len(numbers) == 1 and 0 < numbers[0] <= slash.PIECE_BYTES:
                    kept.feed(await self._bytes(numbers[0]))
                    if kept.over:
                        await trio.sleep(OVER_PAUSE_S)
                elif word == b"end" and self.begun and len(numbers) == 2 and -64 <= numbers[0] <= 255:
                    self.left = numbers[1] != 0
                    return numbers[0]
                else:
                    raise ValueError(word)
        except EOFError:
            return None
        except ValueError:
            self.nonsense = True
            return None

    async def _line(self) -> tuple[bytes, *tuple[int, ...]]:
        while b"\n" not in self._buffer[:LINE_BYTES]:
            if len(self._buffer) >= LINE_BYTES:
                raise ValueError("no such line")
            await self._more()
        line, _, self._buffer = self._buffer.partition(b"\n")
        word, *numbers = line.split(b" ")
        return (word, *map(int, numbers))

    async def _bytes(self, count: int) -> bytes:
        while len(self._buffer) < count:
            await self._more()
        piece, self._buffer = self._buffer[:count], self._buffer[count:]
        return piece

    async def _more(self) -> None:
        piece = await self._pipe.receive()
        if not piece:
            raise EOFError
        self._buffer += piece


def _not_started(ended: Ended, cwd: Path) -> HermesError:
    if ended.stage == "exec":
        return WardenFailed(f"The slash worker could not be started: {os.strerror(ended.errno)}.")
    return not_started(ended, cwd)


def _first(group: BaseExceptionGroup[HermesError]) -> HermesError:
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, HermesError)
    return found
