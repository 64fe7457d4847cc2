"""The two ways to a tool server, as the SDK wants them: a pair of message streams, for as long as a block lasts.

A program's pipes carry one JSON message a line. What is no message is passed over; a line without end ends the
connection. Over HTTP nothing is taken from the process environment, and no redirect is followed to another place.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final, final

import anyio
import httpx2
import trio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from hermes_ws.agent.mcp.plan import ServerPlan
from hermes_ws.agent.ports import Pipe
from hermes_ws.contract.errors import NotFound
from hermes_ws.scope.current import in_thread

LINE_BYTES: Final = 16 * 1024 * 1024
"""Longest message of a program: a large picture fits; what has no line ends would fill the memory."""

PROBLEM_CHARACTERS: Final = 4000
"""Kept of what a program writes to its standard error, from its end: its last words tell why it ended."""

GRACE_S: Final = 2.0
"""Seconds that a program has to end by itself once its input has ended, as the protocol wants it."""

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


@final
class LastWords:
    """The end of what a program wrote to its standard error."""

    def __init__(self) -> None:
        self._text = ""

    def add(self, data: bytes) -> None:
        """More of it."""
        self._text = (self._text + data.decode(errors="replace"))[-PROBLEM_CHARACTERS:]

    @property
    def text(self) -> str:
        """What is kept."""
        return self._text.strip()


@asynccontextmanager
async def piped(pipe: Pipe, lost: Callable[[], None], words: LastWords) -> AsyncGenerator[Streams, None]:
    """Speak with a program. `lost` is called when it has ended, or said what cannot be a message; it is ended after the
    block in any case.
    """
    inward, read = anyio.create_memory_object_stream[Incoming](0)
    write, outward = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read, pipe, inward, lost)
            nursery.start_soon(_write, pipe, outward, lost)
            nursery.start_soon(_listen, pipe, words)
            try:
                yield read, write
            finally:
                nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            for stream in (inward, read, write, outward):
                stream.close()
            with trio.move_on_after(GRACE_S):
                await pipe.close_input()
                while await pipe.receive():
                    pass
            await pipe.aclose()


async def _read(pipe: Pipe, inward: MemoryObjectSendStream[Incoming], lost: Callable[[], None]) -> None:
    held = b""
    try:
        while data := await pipe.receive():
            *lines, held = (held + data).split(b"\n")
            for line in lines:
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    continue  # Many programs greet on their output; the protocol forbids it, and it does no harm.
                await inward.send(SessionMessage(message))
            if len(held) > LINE_BYTES:
                return
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass
    finally:
        inward.close()
        lost()


async def _write(pipe: Pipe, outward: MemoryObjectReceiveStream[SessionMessage], lost: Callable[[], None]) -> None:
    try:
        async for each in outward:
            await pipe.send(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
    except NotFound:
        lost()


async def _listen(pipe: Pipe, words: LastWords) -> None:
    while data := await pipe.receive_problems():
        words.add(data)


@asynccontextmanager
async def addressed(plan: ServerPlan) -> AsyncGenerator[Streams, None]:
    """Speak with an address."""
    url = plan.url or ""
    verify = False
    if url.lower().startswith("https:"):
        verify = await in_thread(trio.CapacityLimiter(1), lambda: httpx2.create_ssl_context(trust_env=False))
    client = httpx2.AsyncClient(
        headers=dict(plan.headers),
        verify=verify,
        trust_env=False,
        timeout=httpx2.Timeout(plan.deadline_s if plan.deadline_s < math.inf else None, connect=plan.connect_s),
    )
    async with client, streamable_http_client(url, http_client=client) as streams:
        yield streams  # pyright: ignore[reportReturnType] - the SDK's streams are these, behind narrower names.
