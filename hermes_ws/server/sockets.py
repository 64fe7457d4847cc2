"""The sockets that a server listens on."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import stat
import struct
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast, final

import trio
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory

from hermes_ws.contract.errors import AlreadyExists
from hermes_ws.server.entry import Peer, is_loopback
from hermes_ws.server.tls import Secure

BACKLOG: Final = 512
"""Connections that may wait to be accepted: a whole team's clients reconnecting at once."""

UNIX_PATH_BYTES: Final = 100
"""Longest path that is bound as it is. The kernel takes 107; a temporary name beside it needs some."""

_UCRED: Final = struct.Struct("3i")


@final
@dataclass(frozen=True, slots=True)
class Bound:
    """One listening socket. `compress`: whether its clients are far enough away for compression to pay. `tls` stands
    before it, if it is given; `known` is the other end of a connection that was carried through that."""

    listener: trio.SocketListener
    unix: bool
    compress: bool
    tls: Secure | None = None
    known: Peer | None = None

    @property
    def port(self) -> int:
        """The TCP port; 0 on a Unix socket."""
        return 0 if self.unix else cast("tuple[str, int]", self.listener.socket.getsockname())[1]

    def peer(self, stream: trio.SocketStream) -> Peer:
        """Who is at the other end of an accepted connection. Raises OSError when it has gone already."""
        if self.known is not None:
            return self.known
        if self.unix:
            raw = stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
            _, uid, _ = cast("tuple[int, int, int]", _UCRED.unpack(raw))
            return Peer(f"unix:{uid}", uid)
        return Peer(cast("tuple[str, int]", stream.socket.getpeername())[0])


async def listen_tcp(host: str, port: int, tls: Secure | None = None) -> Bound:
    """Listen on one address. Port 0 lets the kernel choose. Raises OSError with what is wrong."""
    listeners = await trio.open_tcp_listeners(port, host=host, backlog=BACKLOG)
    for further in listeners[1:]:
        # "localhost" has two; with port 0 they would differ, and clients are told one.
        await further.aclose()
    return Bound(listeners[0], unix=False, compress=not is_loopback(host), tls=tls)


def listen_unix(path: Path) -> Bound:
    """Listen on a Unix socket that its owner alone may use.

    It is bound beside its name, made private, and renamed, so that nobody finds it earlier and what a crash left behind
    is replaced. Raises `AlreadyExists` when another process answers there.
    """
    with _reachable(path.parent) as directory:
        name = directory / path.name
        if _answers(name):
            raise AlreadyExists(
                f"Another server listens on {path}.", hint="Stop it first, or give this one another --socket."
            )
        beside = directory / f".{secrets.token_hex(4)}"
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.bind(str(beside))
            beside.chmod(0o600)
            made.listen(BACKLOG)
            beside.replace(name)
        except OSError:
            made.close()
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    return Bound(trio.SocketListener(trio.socket.from_stdlib_socket(made)), unix=True, compress=False)


def remove_unix(path: Path) -> None:
    """Take the name away, at the end. No effect when something else stands there."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()


@contextlib.contextmanager
def _reachable(directory: Path) -> Generator[Path]:
    """The directory under a name that is short enough for a socket's address."""
    if len(os.fsencode(directory)) <= UNIX_PATH_BYTES - 20:
        yield directory
        return
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield Path(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)


def _answers(name: Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            probe.connect(str(name))
    except BlockingIOError:
        return True  # its backlog is full: somebody is there
    except OSError:
        return False
    return True


def deflate() -> list[ServerPerMessageDeflateFactory]:
    """Compression with little memory: windows of 4 KiB and the smallest tables that still compress JSON well."""
    return [
        ServerPerMessageDeflateFactory(
            server_max_window_bits=12, client_max_window_bits=12, compress_settings={"memLevel": 5}
        )
    ]
