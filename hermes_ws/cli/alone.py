"""A server for one request, over the pipes of a child process: for homes that nobody serves.

It holds the same locks as any server, so that two who change the homes at once are told so; it listens nowhere.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar, final

import orjson
import trio

from hermes_ws import __version__
from hermes_ws.client.failures import ConnectFailed, NotSent, OutcomeUnknown
from hermes_ws.client.incoming import Reply, read
from hermes_ws.client.replies import read_result
from hermes_ws.contract.events import Protocol as Version
from hermes_ws.contract.methods.connection import CLIENT_CAPABILITIES, CapabilitiesParams, ClientInfo
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.registry import Method
from hermes_ws.contract.version import PROTOCOL_MAJOR, PROTOCOL_MINOR

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=Result)

OTHER_HOME = "Name a home that can be written with HERMES_HOME."

LINE_BYTES = 16 * 1024 * 1024
"""The longest answer; a server sends much less."""


@asynccontextmanager
async def alone(root: Path, environ: Mapping[str, str]) -> AsyncGenerator[Alone]:
    """The server of one block. Raises ConnectFailed with what it said, when it cannot serve this home.

    A root of homes that is not there yet is made, as the first server would.
    """
    _make(root)
    process = await trio.lowlevel.open_process(
        [sys.executable, "-P", "-m", "hermes_ws.cli.main", "stdio", "--standalone"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**environ, "HERMES_HOME": str(root)},
    )
    try:
        caller = Alone(process)
        params = CapabilitiesParams(
            client=ClientInfo(name="hermes-ws", version=__version__),
            protocol=Version(major=PROTOCOL_MAJOR, minor=PROTOCOL_MINOR),
            server_requests=[],
            live="none",
            opt_out=[],
        )
        try:
            await caller.call(CLIENT_CAPABILITIES, params)
        except (OutcomeUnknown, NotSent):
            raise ConnectFailed(f"The homes in {root} cannot be worked with; see above.", retry=False) from None
        yield caller
    finally:
        with trio.CancelScope(shield=True):
            assert process.stdin is not None, "it was asked for"
            await process.stdin.aclose()
            await process.wait()


def _make(root: Path) -> None:
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        message = f"The home {root} cannot be made: {error.strerror}."
        raise ConnectFailed(message, retry=False, hint=OTHER_HOME) from None


@final
class Alone:
    """Asks one thing after the other."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._asked = 0
        self._buffer = b""

    async def call(self, method: Method[P, R], params: P, *, deadline_s: float = 0) -> R:
        """The answer. Raises RemoteError, NotSent; OutcomeUnknown when the process ended before it answered."""
        assert self._process.stdin is not None, "it was asked for"
        self._asked += 1
        request = {
            "jsonrpc": "2.0",
            "id": self._asked,
            "method": method.name,
            "params": params.model_dump(mode="json", exclude_none=True, exclude_unset=True),
        }
        try:
            await self._process.stdin.send_all(orjson.dumps(request) + b"\n")
        except trio.BrokenResourceError:
            raise NotSent(method.name, "the process ended") from None
        while True:
            line = await self._line()
            if not line:
                raise OutcomeUnknown(method.name, "the process ended")
            reply = read(line)
            if isinstance(reply, Reply) and reply.id == self._asked:
                if reply.error is not None:
                    raise reply.error
                return read_result(method.result, reply.result, f"answer to {method.name}")

    async def _line(self) -> bytes:
        assert self._process.stdout is not None, "it was asked for"
        while b"\n" not in self._buffer and len(self._buffer) < LINE_BYTES:
            piece = await self._process.stdout.receive_some()
            if not piece:
                return b""
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line
