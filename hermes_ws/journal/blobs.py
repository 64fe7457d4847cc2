"""Large contents, kept as files by the hash of what is in them.

A blob is written, made durable and given its name before the commit that refers to it, so that no event ever names what
is not there. `use` records which thread refers to it, in that commit. What no thread refers to is collected after
`GRACE_S`: until then somebody who has just put it may still be about to refer to it.
"""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import os
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar, final

import trio

from hermes_ws.contract.errors import NotFound
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.failures import os_error
from hermes_ws.journal.transaction import Transaction
from hermes_ws.scope.current import in_thread

T = TypeVar("T")

INLINE_BYTES: Final = 64 * 1024
"""Text that is larger goes into a blob: an event stays a fraction of a frame, and a page of events a page."""

GRACE_S: Final = 24 * 3600.0
"""Seconds that a blob stays which nobody refers to: longer than any upload waits for the input that names it."""

THREADS: Final = 2
"""Threads that blobs of one home occupy at once; more would only make a slow disk slower."""

_CUT: Final = "\n[…]\n"
_NAME: Final = re.compile(r"[0-9a-f]{64}")
_COPY_BYTES: Final = 1024 * 1024


def excerpt(text: str) -> str:
    """The text itself, or its beginning and end within `INLINE_BYTES` when it is larger than that."""
    if len(text) <= INLINE_BYTES // 4 or len(text.encode(errors="replace")) <= INLINE_BYTES:
        return text
    half = INLINE_BYTES // 2 - len(_CUT)
    data = text.encode(errors="replace")
    return data[:half].decode(errors="ignore") + _CUT + data[-half:].decode(errors="ignore")


class Transact(Protocol):
    """`Database.transact`."""

    def __call__(self, work: Callable[[Transaction], T]) -> Awaitable[T]: ...


@final
@dataclass(frozen=True, slots=True)
class Blob:
    """A stored content: the SHA-256 of it in hexadecimal, and its size in bytes."""

    hash: str
    size: int


@final
class Blobs:
    """The blobs of one home. All that touches the disk runs in threads, in the context of the home."""

    def __init__(self, directory: Path, context: contextvars.Context, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._context = context
        self._clock = clock
        self._limiter = trio.CapacityLimiter(THREADS)
        self._lock = threading.Lock()
        """Held while a file is found and kept, or found old and removed: never both at once."""

    async def put(self, content: bytes) -> Blob:
        """Store a content; durable when this returns, and the same file for the same content.

        Raises `StorageFull` and `StorageUnavailable`; then nothing is left behind.
        """
        return await self._in_thread(lambda: self._put(content))

    async def adopt(self, path: Path) -> Blob:
        """Make a blob of a file of this home, which is gone from its place afterwards. Raises as `put` does."""
        return await self._in_thread(lambda: self._adopt(path))

    async def size(self, hash: str) -> int | None:
        """How large it is; None when there is none of that hash."""

        def look() -> int | None:
            try:
                return self._path(hash).stat().st_size
            except (FileNotFoundError, NotFound):
                return None

        return await self._in_thread(look)

    async def read(self, hash: str, offset: int = 0, size: int = -1) -> bytes:
        """`size` bytes from `offset`, or what there is of them; all with -1. Raises `NotFound`."""
        return await self._in_thread(lambda: self._read(hash, offset, size))

    def use(self, tx: Transaction, blob: Blob, key: ThreadKey) -> None:
        """Record that a thread refers to it, in the commit that does. Raises `ThreadUnknown`."""
        thread = tx.head(key).id
        tx.connection.execute(
            "INSERT INTO blob (hash, size, made_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (blob.hash, blob.size, tx.now),
        )
        tx.connection.execute("INSERT INTO blob_use VALUES (?, ?) ON CONFLICT DO NOTHING", (blob.hash, thread))

    async def collect(self, transact: Transact, grace: float = GRACE_S) -> int:
        """Remove what no thread refers to and nobody put for `grace` seconds; returns the bytes that this gave back.

        A file goes after the row of it is gone, so that a crash leaves a file too many and never a name without one;
        the next collection finds it.
        """
        before = self._clock() - grace
        await transact(lambda tx: _forget(tx, before))
        kept = await transact(_hashes)
        return await self._in_thread(lambda: self._remove(kept, before))

    # --- in a thread -------------------------------------------------------------------------------------------------

    async def _in_thread(self, fn: Callable[[], T]) -> T:
        context = self._context.copy()
        try:
            return await in_thread(self._limiter, lambda: context.run(fn))
        except OSError as error:
            raise os_error(error, self._directory) from error

    def _put(self, content: bytes) -> Blob:
        blob = Blob(hashlib.sha256(content).hexdigest(), len(content))
        if not self._kept(blob):
            part = self._part()
            try:
                with part.open("xb") as file:
                    os.fchmod(file.fileno(), 0o600)
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                self._name(part, blob)
            finally:
                part.unlink(missing_ok=True)
        return blob

    def _adopt(self, path: Path) -> Blob:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while piece := file.read(_COPY_BYTES):
                digest.update(piece)
            os.fchmod(file.fileno(), 0o600)
            os.fsync(file.fileno())
            blob = Blob(digest.hexdigest(), file.tell())
        if self._kept(blob):
            path.unlink()
        else:
            self._name(path, blob)
        return blob

    def _kept(self, blob: Blob) -> bool:
        """Whether it is there. If so it counts as put now, so that it stays for a while."""
        with self._lock:
            path = self._path(blob.hash)
            try:
                if path.stat().st_size != blob.size:
                    return False  # Not what its name says: damaged from outside. It is written anew.
                os.utime(path, (self._clock(), self._clock()))
            except FileNotFoundError:
                return False
            return True

    def _name(self, part: Path, blob: Blob) -> None:
        path = self._path(blob.hash)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.utime(part, (self._clock(), self._clock()))
        part.replace(path)
        for directory in (path.parent, self._directory):
            fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def _read(self, hash: str, offset: int, size: int) -> bytes:
        try:
            with self._path(hash).open("rb") as file:
                file.seek(offset)
                return file.read(size)
        except FileNotFoundError:
            raise NotFound("There is no content of this hash.") from None

    def _remove(self, kept: frozenset[str], before: float) -> int:
        freed = 0
        for directory in tuple(self._directory.iterdir()) if self._directory.exists() else ():
            for path in tuple(directory.iterdir()) if directory.is_dir() else (directory,):
                if path.name in kept or path.is_dir():
                    continue
                with self._lock, contextlib.suppress(FileNotFoundError):
                    found = path.stat()
                    if found.st_mtime < before:
                        path.unlink()
                        freed += found.st_size
        return freed

    def _part(self) -> Path:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._directory / f"{secrets.token_hex(8)}.part"

    def _path(self, hash: str) -> Path:
        """Where it lies. What is no hash is the name of nothing, and leads nowhere."""
        if not _NAME.fullmatch(hash):
            raise NotFound("There is no content of this hash.")
        return self._directory / hash[:2] / hash


def _forget(tx: Transaction, before: float) -> None:
    tx.connection.execute(
        "DELETE FROM blob WHERE made_at < ? AND NOT EXISTS (SELECT 1 FROM blob_use WHERE blob_use.hash = blob.hash)",
        (before,),
    )


def _hashes(tx: Transaction) -> frozenset[str]:
    """What is referred to. Asked of the writer: a name that was committed before this is among them."""
    return frozenset(str(row[0]) for row in tx.connection.execute("SELECT hash FROM blob"))


def total(connection: sqlite3.Connection) -> int:
    """The bytes of all blobs that have a name."""
    return int(connection.execute("SELECT coalesce(sum(size), 0) FROM blob").fetchone()[0])
