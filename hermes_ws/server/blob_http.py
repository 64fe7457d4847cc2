"""A stored content as a file to be saved: `GET /blob/<hash>`, or below `/p/<profile>` for another profile's.

It is read with `blob.get`, piece by piece, under the same rights, and sent as it is read: one piece is in memory. No
browser shows it: it is an attachment of no type, and what opens it all the same finds itself in a sandbox.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final, cast

import h11
import orjson

from hermes_ws.contract.methods.blobs import BLOB_GET
from hermes_ws.server.entry import Principal
from hermes_ws.server.events_http import refusal
from hermes_ws.server.http import Answer, response_of
from hermes_ws.server.ports import Dispatcher
from hermes_ws.server.rpc_http import SingleCall
from hermes_ws.wire.peer import Request

SANDBOX: Final = ("Content-Security-Policy", "sandbox; default-src 'none'")

Send = Callable[[bytes], Awaitable[bool]]
"""Send bytes; false when they could not be, and nothing can be any more."""


async def serve(
    dispatcher: Dispatcher, principal: Principal, profile: str | None, hash: str, http: h11.Connection, send: Send
) -> Answer | None:
    """Send the whole content, in pieces. None when that was done or broke off; else what is to be answered instead."""
    told = await _piece(dispatcher, principal, profile, hash, 0)
    if "error" in told:
        return refusal(told["error"])
    piece = told["result"]
    head = Answer(
        HTTPStatus.OK,
        b"",
        "application/octet-stream",
        (SANDBOX, ("Content-Disposition", f'attachment; filename="{hash}"'), ("Content-Length", str(piece["size"]))),
    )
    await send(http.send(response_of(head, close=True)) or b"")
    while await send(http.send(h11.Data(data=base64.b64decode(piece["data"]))) or b""):
        if piece["next"] is None:
            await send(http.send(h11.EndOfMessage()) or b"")
            break
        told = await _piece(dispatcher, principal, profile, hash, piece["next"])
        if "error" in told:
            break  # It was collected meanwhile, or the disk failed: the client sees that it is cut off.
        piece = told["result"]
    return None


async def _piece(
    dispatcher: Dispatcher, principal: Principal, profile: str | None, hash: str, offset: int
) -> dict[str, Any]:
    caller = SingleCall(principal, profile)
    try:
        dispatcher.accept(caller, Request("blob", BLOB_GET.name, {"blob": hash, "offset": offset}), len(hash))
        return cast("dict[str, Any]", orjson.loads((await caller.answer()).json))
    finally:
        dispatcher.gone(caller)
