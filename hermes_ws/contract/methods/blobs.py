"""Contents that do not fit into a frame: put and fetched in pieces."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from hermes_ws.contract.errors import InvalidParams, NotFound, StorageUnavailable, TooLarge
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method

PIECE_BYTES = 512 * 1024
"""Of a content in one frame; as base64 it takes two thirds of the smallest frame limit that is usual."""

PIECE_CHARACTERS = (PIECE_BYTES + 2) // 3 * 4
"""The same as base64."""

BLOB_BYTES = 64 * 1024 * 1024
"""Largest content that can be put: a long recording, a large document."""

Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""The SHA-256 of a content in hexadecimal: its name."""


class PutParams(Params):
    """A piece of a content. `upload` is an id of the client's own for the whole of it; `data` is base64.

    Pieces come in order. One that does not begin where the server stands changes nothing and is answered with where
    that is, so that a client which lost an answer goes on from there; an empty piece asks.
    """

    upload: Identifier
    offset: int = Field(ge=0, le=BLOB_BYTES)
    size: int = Field(ge=0)
    data: str = Field(max_length=PIECE_CHARACTERS)
    profile: Identifier | None = None


class Put(Result):
    """How many bytes have come, durable or not; and the name of the whole once all of them have, durable."""

    upload: str
    received: int
    blob: str | None = None


class GetParams(Params):
    """Bytes of a content, from `offset` on."""

    blob: Hash
    offset: int = Field(default=0, ge=0)
    limit: int = Field(default=PIECE_BYTES, ge=1, le=PIECE_BYTES)
    profile: Identifier | None = None


class Piece(Result):
    """A piece, in base64, of a content of `size` bytes; `next` is the offset of the following one, if there is one."""

    blob: str
    size: int
    offset: int
    data: str
    next: int | None = None


BLOB_PUT = method(
    "blob.put",
    PutParams,
    Put,
    scope=Scope.PROFILE,
    right=Right.SUBMIT,
    order=Order.PROFILE,
    errors=(InvalidParams, TooLarge, StorageUnavailable),
    doc="Send a large content in pieces; what broke off is resumed where it was.",
)

BLOB_GET = method(
    "blob.get",
    GetParams,
    Piece,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(NotFound, StorageUnavailable),
    doc="Fetch a piece of a large content of the profile.",
)
