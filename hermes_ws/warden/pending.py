"""One open order: its pipe is read until its answer is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import final

import trio

from hermes_ws.warden.answers import Ended
from hermes_ws.warden.output import Sink

PIECE_BYTES = 64 * 1024
"""What a pipe holds."""

REST_BYTES = 1024 * 1024
"""What may still be in a pipe when its writer has ended: the largest size that a process may give it."""

OVER_PAUSE_S = 0.002
"""Seconds between two pieces that are only thrown away: a command that floods costs the loop three percent at most."""


@final
class Pending:
    """open -> settled (the warden told the end), or -> lost (the warden is gone). It changes once.

    `released` is called when it changes, before anybody who waits goes on.
    """

    def __init__(self, released: Callable[[], None] = lambda: None) -> None:
        self.ended: Ended | None = None
        self._released = released
        self._done = trio.Event()
        self._watching: set[trio.CancelScope] = set()

    @property
    def settled(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self._done.is_set()

    def settle(self, ended: Ended) -> None:
        """The answer is there. A second one is ignored."""
        if not self.settled:
            self.ended = ended
            self.lose()

    def lose(self) -> None:
        """There will be no answer."""
        if self.settled:
            return
        self._done.set()
        self._released()
        for scope in self._watching:
            scope.cancel()

    async def wait(self) -> None:
        """Return when it is settled or lost."""
        await self._done.wait()

    @contextmanager
    def until_settled(self) -> Generator[None]:
        """Leave the block when the order is settled, whatever it waits for."""
        scope = trio.CancelScope()
        self._watching.add(scope)
        if self.settled:
            scope.cancel()
        try:
            with scope:
                yield
        finally:
            self._watching.discard(scope)

    async def drain(self, source: int, sink: Sink) -> None:
        """Feed the sink from the pipe until the order is settled.

        A daemon that keeps the pipe open holds up nothing: the answer counts, not the end of the pipe.
        """
        with self.until_settled():
            while not self.settled:
                await trio.lowlevel.wait_readable(source)
                try:
                    piece = os.read(source, PIECE_BYTES)
                except BlockingIOError:
                    continue
                if not piece:
                    await self._done.wait()
                    return
                sink.feed(piece)
                if sink.over:
                    await trio.sleep(OVER_PAUSE_S)

    def take_rest(self, source: int, sink: Sink) -> None:
        """Feed what was written before the end and is still in the pipe, without waiting."""
        taken = 0
        while taken < REST_BYTES:
            try:
                piece = os.read(source, PIECE_BYTES)
            except BlockingIOError:
                return
            if not piece:
                return
            taken += len(piece)
            sink.feed(piece)
