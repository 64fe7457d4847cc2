"""A minimal server: websockets' `ServerProtocol` on a trio stream, JSON in and out, and none of our layers.

It is what the cost of a request is compared with. `python -m bench.bare` prints the port and serves until it is ended.
"""

from __future__ import annotations

import logging

import orjson
import trio
from websockets.frames import Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

READ_BYTES = 64 * 1024
"""As much as ours reads at once."""

_SILENT = logging.Logger("bare", level=logging.CRITICAL + 1)


async def _serve(stream: trio.SocketStream) -> None:
    protocol = ServerProtocol(logger=_SILENT)
    async with stream:
        try:
            while data := await stream.receive_some(READ_BYTES):
                protocol.receive_data(data)
                for event in protocol.events_received():
                    if isinstance(event, Request):
                        protocol.send_response(protocol.accept(event))
                    elif event.opcode is Opcode.TEXT:
                        request = orjson.loads(event.data)
                        answer = {"jsonrpc": "2.0", "id": request["id"], "result": {"ok": True}}
                        protocol.send_text(orjson.dumps(answer))
                if out := b"".join(protocol.data_to_send()):
                    await stream.send_all(out)
        except trio.BrokenResourceError:
            return


async def main() -> None:
    """Serve on a free port of loopback."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    print(listener.socket.getsockname()[1], flush=True)
    await trio.serve_listeners(_serve, [listener])


if __name__ == "__main__":
    trio.run(main)
