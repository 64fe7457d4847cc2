"""Standard input and output as a pipe to a running server: lines become messages, and messages lines.

Nothing is looked at on the way but where a line ends. When either side ends, so does the other.
"""

from __future__ import annotations

import os
import sys
from typing import Final
from urllib.parse import quote, urlsplit

import trio

from hermes_ws.cli import exits
from hermes_ws.cli.environment import Surroundings
from hermes_ws.cli.locating import Where
from hermes_ws.cli.screen import Screen
from hermes_ws.client.discovery import Endpoint
from hermes_ws.client.failures import ClientError, ConnectionLost
from hermes_ws.client.sockets import Socket, open_socket

READ_BYTES: Final = 64 * 1024
"""What is read at once: what a pipe holds."""

LINE_BYTES: Final = 16 * 1024 * 1024
"""The longest line; the server's own limit, which is lower, decides before."""

CLOSED: Final = b'{"jsonrpc":"2.0","method":"$/closed","params":{"code":%d,"reason":"%s"}}\n'
"""The last line: what the server's close frame said."""


async def pipe(surroundings: Surroundings, profile: str | None) -> int:
    """Be the pipe until one side ends; the exit status."""
    where = Where(surroundings)
    incoming, outgoing = trio.lowlevel.FdStream(os.dup(0)), trio.lowlevel.FdStream(os.dup(1))
    try:
        async with (
            incoming,
            outgoing,
            open_socket(_bound(where.locate(), profile)) as socket,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(_upwards, incoming, socket, nursery.cancel_scope)
            await _downwards(socket, outgoing)
            nursery.cancel_scope.cancel()
    except ClientError as error:
        where.tell(Screen(sys.stderr, surroundings), error)
        return exits.FAILED
    return exits.DONE


def _bound(endpoint: Endpoint, profile: str | None) -> Endpoint:
    if profile is None:
        return endpoint
    address = urlsplit(endpoint.url)._replace(path=f"/p/{quote(profile, safe='')}/ws").geturl()
    return Endpoint(address, endpoint.token, endpoint.socket)


async def _upwards(incoming: trio.abc.ReceiveStream, socket: Socket, scope: trio.CancelScope) -> None:
    buffer = bytearray()
    while data := await incoming.receive_some(READ_BYTES):
        buffer += data
        *lines, rest = bytes(buffer).split(b"\n") if b"\n" in data else (bytes(buffer),)
        buffer = bytearray(rest)
        for line in lines:
            if line.strip():
                try:
                    with trio.CancelScope(shield=True):
                        await socket.send(line.strip())
                except ConnectionLost:
                    return  # the other direction tells why
        if len(buffer) > LINE_BYTES:
            break
    scope.cancel()


async def _downwards(socket: Socket, outgoing: trio.abc.SendStream) -> None:
    try:
        while True:
            await outgoing.send_all(await socket.receive() + b"\n")
    except ConnectionLost as lost:
        reason = lost.reason.encode(errors="replace").replace(b"\\", b"").replace(b'"', b"'")
        await outgoing.send_all(CLOSED % (lost.code or 1006, reason))
    except trio.BrokenResourceError:
        return  # whoever read this is gone
