"""Standard input and output as a pipe to a running server: lines become messages, and messages lines.

Nothing is changed on the way. When the input has ended, what was asked is still answered; when the server hangs up, the
output ends.
"""

from __future__ import annotations

import os
import sys
from typing import Final, final
from urllib.parse import quote, urlsplit

import orjson
import trio

from hermes_ws.cli import exits
from hermes_ws.cli.environment import Surroundings
from hermes_ws.cli.locating import Where
from hermes_ws.cli.screen import Screen
from hermes_ws.client.discovery import Endpoint
from hermes_ws.client.failures import ClientError, ConnectionLost
from hermes_ws.client.sockets import Socket, open_socket
from hermes_ws.wire.peer import Refused, Request, parse

READ_BYTES: Final = 64 * 1024
"""What is read at once: what a pipe holds."""

LINE_BYTES: Final = 16 * 1024 * 1024
"""The longest line; the server's own limit, which is lower, decides before."""

NO_CLOSE_FRAME: Final = 1006
"""What the last line says when the server went without a word (RFC 6455, section 7.4.1)."""


async def pipe(surroundings: Surroundings, profile: str | None) -> int:
    """Be the pipe until one side ends; the exit status."""
    where = Where(surroundings)
    incoming, outgoing = trio.lowlevel.FdStream(os.dup(0)), trio.lowlevel.FdStream(os.dup(1))
    screen = Screen(sys.stderr, surroundings)
    try:
        await where.ensured(screen)
        async with (
            incoming,
            outgoing,
            open_socket(_bound(where.locate(), profile or where.profile)) as socket,
            trio.open_nursery() as nursery,
        ):
            both = _Pipe(socket, nursery.cancel_scope)
            nursery.start_soon(both.upwards, incoming)
            await both.downwards(outgoing)
            nursery.cancel_scope.cancel()
    except ClientError as error:
        where.tell(screen, error)
        return exits.FAILED
    return exits.DONE


def _bound(endpoint: Endpoint, profile: str | None) -> Endpoint:
    if profile is None:
        return endpoint
    address = urlsplit(endpoint.url)._replace(path=f"/p/{quote(profile, safe='')}/ws").geturl()
    return Endpoint(address, endpoint.token, endpoint.socket)


@final
class _Pipe:
    """Counts what is asked and what is answered, to know when the end of the input is the end of it all."""

    def __init__(self, socket: Socket, scope: trio.CancelScope) -> None:
        self._socket = socket
        self._scope = scope
        self._owed = 0
        self._heard_all = False

    async def upwards(self, incoming: trio.abc.ReceiveStream) -> None:
        """Every line of the input, as a message."""
        buffer = bytearray()
        while len(buffer) <= LINE_BYTES and (data := await incoming.receive_some(READ_BYTES)):
            buffer += data
            if b"\n" not in data:
                continue
            *lines, rest = bytes(buffer).split(b"\n")
            buffer = bytearray(rest)
            for line in filter(None, map(bytes.strip, lines)):
                self._owed += _asks(line)
                try:
                    with trio.CancelScope(shield=True):
                        await self._socket.send(line)
                except ConnectionLost:
                    return  # the other direction tells why
        self._heard_all = True
        self._end_if_done()

    async def downwards(self, outgoing: trio.abc.SendStream) -> None:
        """Every message, as a line of the output."""
        try:
            while True:
                message = await self._socket.receive()
                await outgoing.send_all(message + b"\n")
                self._owed -= _answers(message)
                self._end_if_done()
        except ConnectionLost as lost:
            said = {"code": lost.code or NO_CLOSE_FRAME, "reason": lost.reason}
            last = {"jsonrpc": "2.0", "method": "$/closed", "params": said}
            await outgoing.send_all(orjson.dumps(last) + b"\n")
        except trio.BrokenResourceError:
            return  # whoever read this is gone

    def _end_if_done(self) -> None:
        if self._heard_all and self._owed <= 0:
            self._scope.cancel()


def _asks(line: bytes) -> bool:
    try:
        return isinstance(parse(line), Request)
    except Refused:
        return True  # what cannot be read is answered as well


def _answers(message: bytes) -> bool:
    return message.startswith(b'{"jsonrpc":"2.0","id":') and "method" not in orjson.loads(message)
