"""A client that costs as little as a client can: plain sockets, epoll, frames made beforehand.

Frames are masked with zeros, which is as valid as any other mask and leaves the text readable. Everything is bounded:
a run that takes longer than `LONGEST` fails instead of waiting.
"""

from __future__ import annotations

import base64
import os
import re
import select
import socket
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

LONGEST = 60.0
"""Seconds that one run may take."""

READ_BYTES = 256 * 1024
"""What is read at once."""

_ID = re.compile(rb'"id":\s*"?(\d+)')
_CLOCK_TICKS_NS = 1e9


@dataclass(frozen=True, slots=True)
class Load:
    """One run: calls per second, CPU of the server per call, and the median time of a call, both in microseconds."""

    rate: float
    cpu_us: float
    p50_us: float


def masked(text: bytes) -> bytes:
    """A text frame as a client sends it."""
    size = len(text)
    if size < 126:
        head = struct.pack("!BB", 0x81, 0x80 | size)
    elif size < 65536:
        head = struct.pack("!BBH", 0x81, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", 0x81, 0x80 | 127, size)
    return head + b"\0\0\0\0" + text


def upgrade(host: str, path: str, token: str = "") -> bytes:
    """The head of a handshake."""
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {host}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        "Sec-WebSocket-Version: 13",
    ]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    return "\r\n".join([*lines, "", ""]).encode()


class Peer:
    """One socket that has been upgraded. `frames` cuts what arrives into the texts that are whole."""

    def __init__(self, port: int, token: str = "", path: str = "/ws") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=LONGEST)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()
        self.socket.sendall(upgrade(f"127.0.0.1:{port}", path, token))
        while b"\r\n\r\n" not in self._buffer:
            self._more()
        head, _, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101"):
            raise RuntimeError(head.split(b"\r\n")[0].decode())
        self._buffer = bytearray(rest)

    def _more(self) -> None:
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise RuntimeError("the server hung up")
        self._buffer += data

    def frames(self) -> list[bytes]:
        """What is in the buffer, whole frames only; pings are left unanswered, since runs are short."""
        buffer = self._buffer
        found: list[bytes] = []
        at, end = 0, len(buffer)
        while end - at >= 2:
            size, head = buffer[at + 1], 2
            if size == 126:
                if end - at < 4:
                    break
                size, head = int.from_bytes(buffer[at + 2 : at + 4], "big"), 4
            elif size == 127:
                if end - at < 10:
                    break
                size, head = int.from_bytes(buffer[at + 2 : at + 10], "big"), 10
            if end - at < head + size:
                break
            if buffer[at] & 0x0F == 1:
                found.append(bytes(buffer[at + head : at + head + size]))
            at += head + size
        del buffer[:at]
        return found

    def read(self) -> list[bytes]:
        """Read once, and cut."""
        self._more()
        return self.frames()

    def answer(self, text: bytes) -> bytes:
        """Send a request with an id and wait for its answer; what comes before it is passed over."""
        wanted = _ID.search(text)
        assert wanted is not None
        self.socket.sendall(masked(text))
        found = self.frames()
        while True:
            for frame in found:
                identified = _ID.search(frame[:120])
                if identified is not None and identified[1] == wanted[1] and b'"method"' not in frame[:60]:
                    return frame
            found = self.read()


def cpu_ns(pid: int) -> int:
    """Nanoseconds that all threads of a process have run."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total


def serial(peer: Peer, text: bytes, calls: int, pid: int) -> Load:
    """One call after the other on one connection."""
    frame = masked(text)
    taken: list[float] = []
    sock = peer.socket
    peer.frames()
    cpu, began = cpu_ns(pid), time.perf_counter()
    for _ in range(calls):
        at = time.perf_counter()
        sock.sendall(frame)
        while not peer.read():
            pass
        taken.append(time.perf_counter() - at)
        if at - began > LONGEST:
            raise TimeoutError("the run takes too long")
    took = time.perf_counter() - began
    return Load(calls / took, (cpu_ns(pid) - cpu) / calls / 1000, median(taken) * 1e6)


def parallel(peers: Sequence[Peer], texts: Sequence[bytes], calls: int, pid: int) -> Load:
    """All of `texts` outstanding on each connection; each one is sent again when its answer is there.

    The texts carry the ids 0, 1, 2, and so on.
    """
    frames = [masked(text) for text in texts]
    poll = select.epoll()
    by_fd = {peer.socket.fileno(): peer for peer in peers}
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    left = calls
    cpu, began = cpu_ns(pid), time.perf_counter()
    for peer in peers:
        peer.socket.sendall(b"".join(frames))
    while left > 0:
        for fd, _ in poll.poll(1.0):
            peer = by_fd[fd]
            again = [frames[int(found[1])] for text in peer.read() if (found := _ID.search(text[:60]))]
            left -= len(again)
            peer.socket.sendall(b"".join(again))
        if time.perf_counter() - began > LONGEST:
            raise TimeoutError("the run takes too long")
    took = time.perf_counter() - began
    spent = cpu_ns(pid) - cpu
    poll.close()
    done = calls - left
    return Load(done / took, spent / done / 1000, took * 1e6 * len(peers) * len(texts) / done)


def swallow(port: int, count: int, token: str) -> None:
    """Open `count` connections, have each of them listen, say "ready", and read what comes until stdin ends."""
    peers = [Peer(port, token) for _ in range(count)]
    for peer in peers:
        peer.answer(b'{"jsonrpc":"2.0","id":1,"method":"listen"}')
    poll = select.epoll()
    by_fd = {peer.socket.fileno(): peer.socket for peer in peers}
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    poll.register(sys.stdin.fileno(), select.EPOLLIN)
    print("ready", flush=True)
    while True:
        for fd, _ in poll.poll(LONGEST):
            if fd not in by_fd or not by_fd[fd].recv(READ_BYTES):
                return


if __name__ == "__main__":
    swallow(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
