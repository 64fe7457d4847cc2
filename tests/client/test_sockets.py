"""Closing a socket on which more has come than was taken."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import anyio
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

from hermes_ws.client.discovery import Endpoint
from hermes_ws.client.sockets import open_socket

MANY = 500
"""Messages; either library stops reading after some dozens that nobody takes."""

CLOSING_S = 10.0
"""Far more than a goodbye may take."""


@pytest.fixture
def talkative() -> Iterator[Endpoint]:
    """A server that says much and waits for the goodbye."""

    def talk(connection: ServerConnection) -> None:
        try:
            for number in range(MANY):
                connection.send(f"{number}")
            for _ in connection:
                pass
        except ConnectionClosed:
            return

    with serve(talk, "127.0.0.1", 0, subprotocols=[Subprotocol("hermes.v1")], compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Endpoint(f"ws://127.0.0.1:{server.socket.getsockname()[1]}", "")
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
@pytest.mark.parametrize("taken", [0, 1, MANY])
def test_it_closes_however_much_was_not_taken(talkative: Endpoint, backend: str, taken: int) -> None:
    async def visit() -> list[bytes]:
        with anyio.fail_after(CLOSING_S):
            async with open_socket(talkative) as socket:
                said = [await socket.receive() for _ in range(taken)]
                await anyio.sleep(0.2)  # Nothing announces that a library has stopped reading.
        return said

    assert anyio.run(visit, backend=backend) == [str(number).encode() for number in range(taken)]
