"""A child that goes on after it was started: a background process, a terminal, a tool server.

The pipes are the server's own, so that nothing the child or the warden does makes the server wait in the kernel.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self, final

import trio

from hermes_ws.contract import errors
from hermes_ws.warden import orders
from hermes_ws.warden.answers import Ended
from hermes_ws.warden.pending import PIECE_BYTES, Pending

REST_WITHIN_S = 1.0
"""Seconds in which what was written before the end has to come. A daemon that keeps the pipe open is not waited for."""

Tell = Callable[[dict[str, object]], Awaitable[None]]
"""Give the warden an order. Raises `WardenFailed`."""


@final
class Running:
    """Its output, its input, its end. Whoever started it ends it: `async with` does."""

    def __init__(
        self,
        number: int,
        pending: Pending,
        tell: Tell,
        end: Callable[[], Awaitable[None]],
        *,
        output: int,
        input: int,
        problems: int | None,
    ) -> None:
        self.number = number
        self.afterwards: Callable[[], Awaitable[None]] | None = None
        """Done once by `aclose` when it, or a signal, ended the child: for what a client leaves behind elsewhere."""
        self._pending = pending
        self._tell = tell
        self._end = end
        self._output = trio.lowlevel.FdStream(output)
        self._input = trio.lowlevel.FdStream(input)
        self._problems = None if problems is None else trio.lowlevel.FdStream(problems)
        self._writing = trio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def ended(self) -> bool:
        """Whether it has ended, or its warden has."""
        return self._pending.settled

    async def receive(self) -> bytes:
        """The next piece of output, as it was written; nothing when it has ended and all of it was read."""
        return await self._read(self._output)

    async def receive_problems(self) -> bytes:
        """The next piece of standard error, when that was asked for apart; nothing at the end."""
        return b"" if self._problems is None else await self._read(self._problems)

    async def send(self, data: bytes) -> None:
        """Write to its input. Waits while the child does not read; raises `NotFound` when it has ended.

        Several may write at once: what each writes stays together, in the order in which they came. Cancelled in the
        middle, a part of it may have been written.
        """
        with self._pending.until_settled(), suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async with self._writing:
                await self._input.send_all(data)
            return
        raise errors.NotFound("The process has ended, or reads nothing any more.")

    async def close_input(self) -> None:
        """Let its input come to an end."""
        await self._input.aclose()

    async def resize(self, rows: int, columns: int) -> None:
        """Tell a terminal its size."""
        await self._tell({"op": orders.RESIZE, "id": self.number, "rows": rows, "columns": columns})

    async def wait(self) -> Ended:
        """How it ended, once it has. Raises `WardenFailed` when the warden ended first."""
        await self._pending.wait()
        if self._pending.ended is None:
            raise errors.WardenFailed("The warden ended before the process did.")
        return self._pending.ended

    async def aclose(self) -> None:
        """End it and everything it started, if it has not ended, and wait for that whatever happens to the caller."""
        with trio.CancelScope(shield=True):
            try:
                cut = not self._pending.settled
                if cut:
                    await self._end()
                afterwards, self.afterwards = self.afterwards, None
                if afterwards is not None and (cut or self._pending.ended is None or self._pending.ended.signal):
                    await afterwards()
            finally:
                for stream in (self._output, self._input, self._problems):
                    if stream is not None:
                        await trio.aclose_forcefully(stream)

    async def _read(self, stream: trio.lowlevel.FdStream) -> bytes:
        with self._pending.until_settled():
            return bytes(await stream.receive_some(PIECE_BYTES)) or await self._nothing()
        with trio.move_on_after(REST_WITHIN_S):
            try:
                return bytes(await stream.receive_some(PIECE_BYTES))
            except trio.ClosedResourceError:
                return b""
        return b""

    async def _nothing(self) -> bytes:
        """The pipe is closed although the child lives: it closed its end, and says nothing any more."""
        await self._pending.wait()
        return b""
