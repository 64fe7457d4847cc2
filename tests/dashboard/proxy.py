"""A network between the browser and the server that a test can cut, silence and restore."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import final

CHUNK = 65_536


@final
class Network:
    """Passes bytes on, in both directions, for as long as it is whole."""

    def __init__(self) -> None:
        self._to = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open = threading.Event()
        self._open.set()
        self._whole = True
        self._ended = False
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def lead_to(self, port: int) -> None:
        self._to = port

    def cut(self) -> None:
        """Every connection breaks, and new ones break at once."""
        self._whole = False
        self._break()

    def silence(self) -> None:
        """Nothing arrives any more, and nobody is told: what a sleeping machine or a lost radio looks like."""
        self._open.clear()

    def restore(self) -> None:
        """New connections work. Those that were silenced stay lost."""
        if not self._open.is_set():
            self._break()
        self._open.set()
        self._whole = True

    def end(self) -> None:
        self._ended = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        self._open.set()

    def _break(self) -> None:
        with self._lock:
            for each in self._sockets:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._ended:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if not self._whole:
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self._to))
            with self._lock:
                self._sockets |= {near, far}
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(CHUNK):
                self._open.wait()
                other.sendall(data)
        with self._lock:
            for each in (one, other):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            # Whoever ends second closes both: until then the other thread may still be reading.
            if one in self._sockets:
                self._sockets -= {one, other}
            else:
                one.close()
                other.close()
