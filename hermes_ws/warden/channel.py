"""The control socket, seen from the server: whole datagrams out with descriptors, whole datagrams in without."""

from __future__ import annotations

import array
import os
import socket
from collections.abc import Mapping, Sequence
from typing import final

import trio

from hermes_ws.contract import errors
from hermes_ws.warden import orders


@final
class Channel:
    """A SEQPACKET socket: a datagram is sent whole or not at all, also when its sender is cancelled."""

    def __init__(self, control: socket.socket) -> None:
        self._socket = trio.socket.from_stdlib_socket(control)
        self._turn = trio.Lock()
        self._closed = False

    async def send(self, order: Mapping[str, object], given: Sequence[int]) -> None:
        """Send an order and copies of the descriptors `given`, in the order of the callers.

        Cancelled means not sent. Raises `WardenFailed` when nobody is at the other end.
        """
        data = orders.encode(order)
        content: int | None = None
        if len(data) > orders.ORDER_BYTES:
            raise errors.InvalidParams("The command is larger than any kernel takes.")
        try:
            if len(data) > orders.INLINE_BYTES:
                content = memfd(data)
                given = (content, *given)
                data = orders.encode({"large": len(data)})
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", given))] if given else []
            async with self._turn:
                if self._closed:
                    raise trio.ClosedResourceError
                await self._socket.sendmsg([data], ancillary)
        except (BrokenPipeError, ConnectionResetError, trio.ClosedResourceError) as error:
            raise errors.WardenFailed("The warden has ended.") from error
        finally:
            if content is not None:
                os.close(content)

    async def receive(self) -> bytes:
        """The next datagram, cut at `orders.REPLY_BYTES`; nothing when the warden is gone.

        Descriptors that come along are dropped by the kernel, since no room is made for them. Raises `WardenFailed`
        when this end was closed meanwhile.
        """
        try:
            if self._closed:
                raise trio.ClosedResourceError
            return await self._socket.recv(orders.REPLY_BYTES)
        except ConnectionResetError:
            return b""
        except trio.ClosedResourceError as error:
            raise errors.WardenFailed("The warden was closed.") from error

    def close(self) -> None:
        """Close this end: the sign for the warden to end everything. Whoever waits here is woken."""
        self._closed = True
        self._socket.close()


def memfd(data: bytes) -> int:
    """A descriptor of memory that holds `data`, at its beginning. Raises `OSError` when there is no room."""
    made = os.memfd_create("order", os.MFD_CLOEXEC)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(made, view) :]
        os.lseek(made, 0, os.SEEK_SET)
    except BaseException:
        os.close(made)
        raise
    return made
