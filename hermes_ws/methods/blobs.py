"""Contents that do not fit into a frame: put and fetched in pieces."""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from hermes_ws.contract.errors import InvalidParams, LimitReached, NotFound, TooLarge
from hermes_ws.contract.methods.blobs import (
    BLOB_BYTES,
    BLOB_GET,
    BLOB_PUT,
    GetParams,
    Piece,
    Put,
    PutParams,
)
from hermes_ws.methods.editing import edit
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall

UPLOADS: Final = "uploads"
"""Below the blobs' directory, where what is never finished is collected like a blob that nobody refers to."""

AT_ONCE: Final = 32
"""Unfinished uploads of one profile; with their largest size they fill 2 GiB."""

RETRY_AFTER_S: Final = 3600.0
"""After which another upload is worth trying when there are too many: some of them will have been given up."""


@handles(BLOB_PUT)
async def put(call: ProfileCall, params: PutParams) -> Put:
    """Take a piece, and the whole when it is there. Its name is kept, for a client that lost the answer."""
    if params.size > BLOB_BYTES:
        raise TooLarge(f"A content has at most {BLOB_BYTES} bytes.", limit=BLOB_BYTES)
    try:
        data = base64.b64decode(params.data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidParams("data is not base64.", path="data") from None
    if params.offset + len(data) > params.size:
        raise InvalidParams("The piece goes beyond the size that was given.", path="size")
    name = hashlib.sha256(f"{call.principal.name}\0{params.upload}".encode()).hexdigest()
    place = call.runtime.home.blobs / UPLOADS / name
    stored = await edit(call, place, _append, params.offset, data, params.size)
    if stored.blob is None and stored.received == params.size:
        blob = await call.runtime.journal.blobs.adopt(place)
        await edit(call, place, _finish, blob.hash)
        return Put(upload=params.upload, received=params.size, blob=blob.hash)
    return Put(upload=params.upload, received=stored.received, blob=stored.blob)


@handles(BLOB_GET)
async def get(call: ProfileCall, params: GetParams) -> Piece:
    """A piece of a content of this profile; another profile's has no name here."""
    blobs = call.runtime.journal.blobs
    size = await blobs.size(params.blob)
    if size is None:
        raise NotFound("There is no content of this hash.")
    data = await blobs.read(params.blob, params.offset, params.limit)
    end = params.offset + len(data)
    return Piece(
        blob=params.blob,
        size=size,
        offset=params.offset,
        data=base64.b64encode(data).decode(),
        next=end if end < size else None,
    )


@final
@dataclass(frozen=True, slots=True)
class _Stored:
    received: int
    blob: str | None


def _append(place: Path, offset: int, data: bytes, size: int) -> _Stored:
    """Put the piece at the end, if that is where it belongs. What has come is told in any case."""
    done = _done(place)
    if done.exists():
        return _Stored(size, done.read_text("ascii"))
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not place.exists() and sum(1 for each in place.parent.iterdir() if not each.suffix) >= AT_ONCE:
        raise LimitReached(
            f"{AT_ONCE} uploads are unfinished, which is as many as may be.", retry_after_s=RETRY_AFTER_S
        )
    fd = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(fd, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        received = file.seek(0, os.SEEK_END)
        if received == offset:
            file.write(data)
            received += len(data)
    return _Stored(received, None)


def _finish(place: Path, hash: str) -> None:
    _done(place).write_text(hash, "ascii")


def _done(place: Path) -> Path:
    return place.with_suffix(".done")
