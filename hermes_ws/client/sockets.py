"""WebSocket clients of both backends behind one small face, so that everything above is written once.

What is taken care of here: proxies from the environment are ignored, redirects are not followed (the token is for one
server), Unix sockets whose path is too long for the kernel are dialled through their directory, and whatever the
library raises becomes one of our own errors, without the header in it.
"""

from __future__ import annotations

import os
import socket as sockets
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, final

import anyio
import sniffio
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol

from hermes_ws.client.discovery import Endpoint
from hermes_ws.client.failures import ConnectFailed, ConnectionLost

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection as AsyncioConnection
    from websockets.trio.client import ClientConnection as TrioConnection

FRAME_BYTES = 8 * 1024 * 1024
"""The largest frame that is read. Servers send 1 MiB unless their limit was raised; beyond that something is off."""

OPEN_SECONDS = 10.0
"""How long dialling and the handshake may each take: as long as the server waits for the latter."""

CLOSE_SECONDS = 2.0
"""How long a goodbye may take. Nothing depends on it: the server keeps what it accepted either way."""

PING_SECONDS = 20.0
"""How often this side asks whether the other is there, so that a dead link is noticed within a minute."""

DIALLED_BYTES = 100
"""The kernel takes 107 bytes of path for a Unix socket; beyond this the directory's descriptor stands for it."""

BUSY_SECONDS = 0.05
"""Pause before a Unix socket whose backlog is full is dialled again; the kernel gives no event for that."""

SUBPROTOCOL = Subprotocol("hermes.v1")


class Socket(Protocol):
    """One open WebSocket."""

    async def send(self, text: bytes) -> None:
        """Send one text message. Must not be cancelled: half a frame leaves a socket that looks open and is dead."""
        ...

    async def receive(self) -> bytes:
        """The next message. May be cancelled without losing any. Raises ConnectionLost."""
        ...

    async def close(self) -> None:
        """Say goodbye and close, within CLOSE_SECONDS. Does not raise."""
        ...


@final
class AsyncioSocket:
    """A connection of `websockets.asyncio`."""

    def __init__(self, connection: AsyncioConnection) -> None:
        self._connection = connection

    async def send(self, text: bytes) -> None:
        with _losses():
            await self._connection.send(text, text=True)

    async def receive(self) -> bytes:
        with _losses():
            return await self._connection.recv(decode=False)

    async def close(self) -> None:
        await self._connection.close()


@final
class TrioSocket:
    """A connection of `websockets.trio`."""

    def __init__(self, connection: TrioConnection) -> None:
        self._connection = connection

    async def send(self, text: bytes) -> None:
        with _losses():
            await self._connection.send(text, text=True)

    async def receive(self) -> bytes:
        with _losses():
            return await self._connection.recv(decode=False)

    async def close(self) -> None:
        # Where more has come than was taken, websockets rests from reading, and closing does not wake it: it would
        # see neither the answer nor the end, and its task would stay for ever.
        connection = self._connection
        connection.recv_messages.high = None
        if connection.recv_flow_control is not None:
            connection.resume_reading()
        await connection.aclose()


@asynccontextmanager
async def open_socket(endpoint: Endpoint) -> AsyncGenerator[Socket]:
    """A WebSocket to `endpoint`, closed at the end of the block. Raises ConnectFailed."""
    opened = _open_trio if sniffio.current_async_library() == "trio" else _open_asyncio
    async with AsyncExitStack() as stack:
        with _refusals(endpoint):
            socket = await stack.enter_async_context(opened(endpoint))
        try:
            yield socket
        finally:
            with anyio.CancelScope(shield=True):
                await socket.close()


@asynccontextmanager
async def _open_asyncio(endpoint: Endpoint) -> AsyncGenerator[Socket]:
    from websockets.asyncio.client import connect

    dialled = await _dial(endpoint.socket) if endpoint.socket is not None else None
    connector = connect(
        endpoint.url,
        sock=dialled,
        additional_headers=_headers(endpoint),
        subprotocols=[SUBPROTOCOL],
        compression=None if endpoint.local else "deflate",
        proxy=None,
        open_timeout=OPEN_SECONDS,
        close_timeout=CLOSE_SECONDS,
        ping_interval=PING_SECONDS,
        ping_timeout=PING_SECONDS,
        max_size=FRAME_BYTES,
    )
    connector.process_redirect = _stay  # type: ignore[method-assign]
    async with connector as connection:
        yield AsyncioSocket(connection)


@asynccontextmanager
async def _open_trio(endpoint: Endpoint) -> AsyncGenerator[Socket]:
    import trio
    from websockets.trio.client import connect

    stream = None
    if endpoint.socket is not None:
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(await _dial(endpoint.socket)))
    connector = connect(
        endpoint.url,
        stream=stream,
        additional_headers=_headers(endpoint),
        subprotocols=[SUBPROTOCOL],
        compression=None if endpoint.local else "deflate",
        proxy=None,
        open_timeout=OPEN_SECONDS,
        close_timeout=CLOSE_SECONDS,
        ping_interval=PING_SECONDS,
        ping_timeout=PING_SECONDS,
        max_size=FRAME_BYTES,
    )
    connector.process_redirect = _stay
    async with connector as connection:
        yield TrioSocket(connection)


def _stay(exc: Exception) -> Exception:
    return exc


def _headers(endpoint: Endpoint) -> dict[str, str]:
    return {"Authorization": f"Bearer {endpoint.token}"} if endpoint.token else {}


async def _dial(path: Path) -> sockets.socket:
    """A connected, non-blocking Unix socket. Raises OSError."""
    dialled = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    directory = -1
    try:
        dialled.setblocking(False)
        address = os.fsencode(path)
        if len(address) > DIALLED_BYTES:
            directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            address = b"/proc/self/fd/%d/%s" % (directory, os.fsencode(path.name))
        with anyio.fail_after(OPEN_SECONDS):
            while True:
                try:
                    dialled.connect(address)
                except BlockingIOError:
                    await anyio.sleep(BUSY_SECONDS)
                else:
                    return dialled
    except BaseException:
        dialled.close()
        raise
    finally:
        if directory >= 0:
            os.close(directory)


@contextmanager
def _losses() -> Generator[None]:
    try:
        yield
    except ConnectionClosed as error:
        # What the other side said counts; our own 1009 or 1007 (it broke the frame rules) is all there is otherwise.
        frame = error.rcvd or error.sent
        raise ConnectionLost(frame.code if frame else None, frame.reason if frame else "") from None


@contextmanager
def _refusals(endpoint: Endpoint) -> Generator[None]:
    try:
        yield
    except InvalidStatus as error:
        raise _refused(endpoint, error.response.status_code) from None
    except (InvalidHandshake, InvalidURI) as error:
        if isinstance(error.__cause__, EOFError | ConnectionError):
            raise ConnectFailed(f"The server at {endpoint} hung up during the handshake.", retry=True) from None
        message = f"What answers at {endpoint} is no such server ({type(error).__name__})."
        raise ConnectFailed(message, retry=False) from None
    except TimeoutError:
        raise ConnectFailed(f"The server at {endpoint} did not answer in time.", retry=True) from None
    except ssl.SSLError as error:
        raise ConnectFailed(f"{endpoint} has no certificate that holds: {error.reason}.", retry=False) from None
    except ConnectionRefusedError:
        raise ConnectFailed(f"No server listens at {endpoint}.", retry=True) from None
    except OSError as error:
        because = error.strerror or str(error) or type(error).__name__
        raise ConnectFailed(f"No server can be reached at {endpoint}: {because}.", retry=True) from None
    except (EOFError, ConnectionClosed):
        raise ConnectFailed(f"The server at {endpoint} hung up during the handshake.", retry=True) from None


def _refused(endpoint: Endpoint, status: int) -> ConnectFailed:
    if status == 401:
        hint = "Use the token that the server wrote at its last start." if endpoint.token else "Give it a token."
        return ConnectFailed(f"The server at {endpoint} does not accept the token.", retry=False, hint=hint)
    if status == 403:
        return ConnectFailed(f"The server at {endpoint} refuses this client (403).", retry=False)
    if status in (429, 503):
        return ConnectFailed(f"The server at {endpoint} is busy ({status}).", retry=True)
    return ConnectFailed(f"The server at {endpoint} refused the WebSocket ({status}).", retry=status >= 500)
