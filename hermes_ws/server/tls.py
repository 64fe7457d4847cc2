"""TLS in front of a listening socket.

The encryption stands between two sockets of our own: what the client sends is decrypted and written to one end of a
pair, and the server serves the other end like any plain connection, with the same deadlines and the same plain writes.
It costs one more copy, which is little beside the encryption. A client that takes nothing is noticed on both sides of
the pair: the relay stops reading, and the server's own send deadline passes.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import trio

from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.server.limits import Limits

if TYPE_CHECKING:
    from hermes_ws.server.sockets import Bound

RELAY_BYTES: Final = 64 * 1024
"""What is carried at once: four of the largest TLS records."""

LINGER: Final = 1.0
"""Seconds to read on after the goodbye, so that it is not lost with what the client was still sending."""

Serve = Callable[[trio.SocketStream, "Bound"], Awaitable[None]]


@final
class Secure:
    """The certificate of one server, and the handshakes that are under way."""

    def __init__(self, certificate: Path, key: Path | None) -> None:
        self._certificate = certificate
        self._key = key
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._context.set_alpn_protocols(["http/1.1"])
        self._shaking: OrderedDict[int, trio.CancelScope] = OrderedDict()
        self.load()

    def load(self) -> None:
        """Read the files, at start and when they were renewed; connections that stand keep what they began with.

        Raises `ProfileUnusable`, and leaves what was read before in force.
        """
        try:
            self._context.load_cert_chain(self._certificate, self._key, password=_no_password)
        except (OSError, ssl.SSLError, ValueError) as error:
            raise ProfileUnusable(
                f"The certificate {self._certificate} cannot be used: {error}.",
                hint="Give --tls-cert the certificate with its chain, and --tls-key its unencrypted key, both in PEM.",
            ) from None

    async def carry(self, stream: trio.SocketStream, bound: Bound, serve: Serve, limits: Limits) -> None:
        """Serve one accepted connection through TLS, to its end."""
        try:
            peer = bound.peer(stream)
        except OSError:
            await stream.aclose()
            return
        secured = trio.SSLStream(_Lingering(stream), self._context, server_side=True)
        try:
            if await self._handshake(secured, limits):
                await _relay(secured, replace(bound, tls=None, known=peer), serve, limits.send_deadline)
        finally:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(secured)

    async def _handshake(self, secured: trio.SSLStream[_Lingering], limits: Limits) -> bool:
        """Agree on keys, in time. A flood of beginners pushes out its own oldest."""
        with trio.CancelScope(deadline=trio.current_time() + limits.handshake_deadline) as scope:
            self._shaking[id(scope)] = scope
            if len(self._shaking) > limits.visitors:
                _, oldest = self._shaking.popitem(last=False)
                oldest.cancel()
            try:
                await secured.do_handshake()
            except (trio.BrokenResourceError, ssl.SSLError):
                return False
            finally:
                self._shaking.pop(id(scope), None)
        return not scope.cancelled_caught


@final
class _Lingering(trio.abc.Stream):
    """The client's socket, closed so that what was said last arrives."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._stream.receive_some(max_bytes)

    async def aclose(self) -> None:
        try:
            with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError, OSError):
                await self._stream.send_eof()
                while await self._stream.receive_some(RELAY_BYTES):
                    pass
        finally:
            await trio.aclose_forcefully(self._stream)


async def _relay(secured: trio.SSLStream[_Lingering], plain: Bound, serve: Serve, deadline: float) -> None:
    """Serve what stands behind the encryption, until the server has said all or the client takes nothing."""
    near, far = socket.socketpair()
    inner = trio.SocketStream(trio.socket.from_stdlib_socket(near))
    outer = trio.SocketStream(trio.socket.from_stdlib_socket(far))
    async with outer, trio.open_nursery() as nursery:
        nursery.start_soon(serve, inner, plain)
        async with trio.open_nursery() as relay:
            relay.start_soon(_inward, secured, outer)
            await _outward(outer, secured, deadline)
            relay.cancel_scope.cancel()
        with trio.move_on_after(LINGER):
            await secured.aclose()
        nursery.cancel_scope.cancel()


async def _inward(secured: trio.SSLStream[_Lingering], outer: trio.SocketStream) -> None:
    """Carry what the client sends, to its end, however it ends."""
    with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError):
        while data := await secured.receive_some(RELAY_BYTES):
            await outer.send_all(data)
    with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError, OSError):
        await outer.send_eof()


async def _outward(outer: trio.SocketStream, secured: trio.SSLStream[_Lingering], deadline: float) -> None:
    """Carry what the server says, until it has said all or the client takes nothing for too long."""
    with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError):
        while data := await outer.receive_some(RELAY_BYTES):
            with trio.move_on_after(deadline) as stalled:
                await secured.send_all(data)
            if stalled.cancelled_caught:
                return


def _no_password() -> str:
    """An encrypted key would have OpenSSL ask on the terminal; it is refused instead."""
    raise ValueError("its key is encrypted")
