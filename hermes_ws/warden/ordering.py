"""Orders that are open at one warden, and seeing each through: to its answer, its deadline or the end of a patience.

An answer is believed only when it fits an order that is open. The pipes are made here, the child's ends handed down.
"""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import final

import trio

from hermes_ws.contract import errors
from hermes_ws.warden import answers, orders
from hermes_ws.warden.channel import Channel, memfd
from hermes_ws.warden.check import checked_command
from hermes_ws.warden.grants import Command, Finished, Size
from hermes_ws.warden.output import Discard, HeadAndTail, Sink
from hermes_ws.warden.pending import Pending
from hermes_ws.warden.running import Running

GRACE_S = 1.0
"""Seconds between SIGTERM and SIGKILL: enough to write a file down, short enough for a person who pressed a key."""

OBEY_WITHIN_S = 5.0
"""Seconds past the grace in which a warden has to report the end of a child. After that it is ended itself."""

ORDERS_IN_FLIGHT = 64
"""Orders that are open at once; more wait. Each costs the server a descriptor and the machine a process."""

RUNNING = 64
"""Children that go on, for one warden: terminals, servers and whatever was left in the background."""

STDIN_BYTES = 16 * 1024 * 1024
"""The most standard input of a command: it is a memfd."""


@final
class Ordering:
    """The orders of one warden. `give_up` ends a warden that does not obey, and returns when it is gone."""

    def __init__(self, channel: Channel, give_up: Callable[[], Awaitable[None]]) -> None:
        self.given = 0
        self._channel = channel
        self._give_up = give_up
        self._pending: dict[int, Pending] = {}
        self._slots = trio.Semaphore(ORDERS_IN_FLIGHT)
        self._running = 0
        self._idle_since = trio.current_time()
        self._closed = False

    @property
    def open_orders(self) -> int:
        """How many have no answer yet."""
        return len(self._pending)

    @property
    def idle_since(self) -> float:
        """The trio time at which the last order ended; now, while there is one."""
        return trio.current_time() if self._pending else self._idle_since

    def close(self) -> None:
        """Take no more orders."""
        self._closed = True

    def lose(self) -> None:
        """There will be no answers any more."""
        for pending in tuple(self._pending.values()):
            pending.lose()

    def answered(self, ended: answers.Ended) -> bool:
        """An answer came; false when it fits no open order, which the warden we started would never say."""
        pending = self._pending.get(ended.number)
        if pending is None:
            return False
        pending.settle(ended)
        return True

    async def run(self, command: Command, on_output: Callable[[bytes], None] | None) -> Finished:
        """Run to the end; see `Warden.run`."""
        order = checked_command(command, stdin_bytes=STDIN_BYTES)
        kept = HeadAndTail(command.output_bytes, on_output)
        started = trio.current_time()
        contents = (command.stdin,) if command.stdin else ()
        ended, timed_out = await self.perform(order, contents, kept, command.deadline_s)
        exit_code = ended.exit_code
        if ended.stage == "exec":
            exit_code = 127 if ended.errno == 2 else 126
            kept.note(f"{command.argv[0]} could not be started: {os.strerror(ended.errno)}")
        elif ended.stage is not None:
            raise answers.not_started(ended, command.cwd)
        if ended.over is not None:
            kept.note(answers.OVER[ended.over])
        return Finished(
            exit_code=exit_code,
            signal=ended.signal,
            timed_out=timed_out,
            truncated=kept.over,
            output=kept.result(),
            duration_ms=round((trio.current_time() - started) * 1000),
        )

    async def open(self, command: Command, terminal: Size | None, *, problems_apart: bool) -> Running:
        """Start what goes on; see `Warden.open`."""
        order = checked_command(command, stdin_bytes=0)
        if terminal is not None:
            order["tty"] = {"rows": terminal.rows, "columns": terminal.columns}
        if self._closed:
            raise errors.WardenFailed("The warden has ended.")
        if self._running >= RUNNING:
            raise errors.LimitReached(f"{RUNNING} programs run in the background already.")
        number, pending = self._begin(goes_on=True)
        ours: list[int] = []
        theirs: list[int] = []
        try:
            try:
                for _ in range(2 if problems_apart else 1):
                    _pipe(ours, theirs)
                _pipe(theirs, ours)
                # In this order the child takes them: output, input, problems.
                theirs[1:] = [theirs[-1], *theirs[1:-1]]
                await self._channel.send({**order, "id": number}, theirs)
            finally:
                for descriptor in theirs:
                    os.close(descriptor)
        except BaseException as error:
            pending.lose()
            for descriptor in ours:
                os.close(descriptor)
            if isinstance(error, OSError):
                raise errors.LimitReached(f"Nothing can be started: {error.strerror}.") from error
            raise
        return Running(
            number,
            pending,
            lambda order: self._channel.send(order, ()),
            lambda: self._end(number, pending, None, Discard()),
            output=ours[0],
            input=ours[-1],
            problems=ours[1] if problems_apart else None,
        )

    def _begin(self, *, goes_on: bool = False) -> tuple[int, Pending]:
        self.given += 1
        number = self.given
        if goes_on:
            self._running += 1

        def released() -> None:
            del self._pending[number]
            self._idle_since = trio.current_time()
            if goes_on:
                self._running -= 1

        pending = self._pending[number] = Pending(released)
        return number, pending

    async def perform(
        self, order: dict[str, object], contents: Sequence[bytes], sink: Sink, deadline_s: float
    ) -> tuple[answers.Ended, bool]:
        """Give one order and see it through: to its answer, its deadline, or the end of the caller's patience."""
        async with self._slots:
            if self._closed:
                raise errors.WardenFailed("The warden has ended.")
            number, pending = self._begin()
            given: list[int] = []
            source: int | None = None
            timed_out = False
            try:
                try:
                    source, child_end = os.pipe2(os.O_CLOEXEC)
                    given.append(child_end)
                    os.set_blocking(source, False)
                    given += [memfd(content) for content in contents]
                    await self._channel.send({**order, "id": number}, given)
                except OSError as error:
                    raise errors.LimitReached(f"No order can be given: {error.strerror}.") from error
                finally:
                    for descriptor in given:
                        os.close(descriptor)
                try:
                    with trio.move_on_after(deadline_s) as clock:
                        await pending.drain(source, sink)
                    timed_out = clock.cancelled_caught and not pending.settled
                finally:
                    if not pending.settled:
                        sink.mute()
                        await self._end(number, pending, source, sink if timed_out else Discard())
                pending.take_rest(source, sink)
            finally:
                pending.lose()
                if source is not None:
                    os.close(source)
        if pending.ended is None:
            raise errors.WardenFailed("The warden ended before the order did.")
        return pending.ended, timed_out

    async def _end(self, number: int, pending: Pending, source: int | None, sink: Sink) -> None:
        """End a child and wait for it, whatever happens to the caller."""
        with trio.CancelScope(shield=True):
            with trio.move_on_after(GRACE_S + OBEY_WITHIN_S), suppress(errors.WardenFailed):
                await self._channel.send({"op": orders.END, "id": number, "grace_ms": math.ceil(GRACE_S * 1000)}, ())
                if source is None:
                    await pending.wait()
                else:
                    await pending.drain(source, sink)
            if not pending.settled:
                await self._give_up()


def _pipe(readers: list[int], writers: list[int]) -> None:
    reader, writer = os.pipe2(os.O_CLOEXEC)
    readers.append(reader)
    writers.append(writer)
