"""A stream that is encrypted under a passphrase, in pieces, so that it may be larger than memory.

The key comes from the passphrase by scrypt; each piece is sealed by ChaCha20-Poly1305 under a nonce that counts the
pieces and says which is the last, so that none can be left out, repeated, moved or added. The header is sealed along.
"""

from __future__ import annotations

import io
import os
from typing import BinaryIO, Final, final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from hermes_ws.contract.errors import InvalidParams
from hermes_ws.hosting.archive import SEALED

MAGIC: Final = SEALED

SALT_BYTES: Final = 16
PREFIX_BYTES: Final = 7
"""Of a nonce of twelve; a counter of four and a mark for the last piece fill it."""

PIECE_BYTES: Final = 1 << 20
"""Sealed at once: small in memory, and the sixteen bytes that each costs do not show."""

TAG_BYTES: Final = 16

COST: Final = 1 << 15
"""scrypt's N: 32 MiB and a tenth of a second, for us as for everybody who guesses."""

SHORTEST: Final = 12
"""Characters of a passphrase below which guessing is too easy."""


@final
class Sealer(io.RawIOBase):
    """Written to in the clear; what it writes on is sealed. `close` writes the last piece and leaves the file open."""

    def __init__(self, file: BinaryIO, passphrase: str) -> None:
        if len(passphrase) < SHORTEST:
            raise InvalidParams(f"A passphrase has at least {SHORTEST} characters.", path="passphrase")
        salt, prefix = os.urandom(SALT_BYTES), os.urandom(PREFIX_BYTES)
        self._file = file
        self._header = MAGIC + salt + prefix
        self._cipher = ChaCha20Poly1305(_key(passphrase, salt))
        self._prefix = prefix
        self._pieces = 0
        self._waiting = bytearray()
        file.write(self._header)

    def writable(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        self._waiting += data
        while len(self._waiting) > PIECE_BYTES:
            self._seal(bytes(self._waiting[:PIECE_BYTES]), last=False)
            del self._waiting[:PIECE_BYTES]
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._seal(bytes(self._waiting), last=True)
        super().close()

    def _seal(self, piece: bytes, *, last: bool) -> None:
        nonce = _nonce(self._prefix, self._pieces, last=last)
        self._pieces += 1
        self._file.write(self._cipher.encrypt(nonce, piece, self._header))


@final
class Opener(io.RawIOBase):
    """Reads what a `Sealer` wrote, from behind its magic on. Nothing that was changed is ever given out."""

    def __init__(self, file: BinaryIO, passphrase: str) -> None:
        salt, prefix = file.read(SALT_BYTES), file.read(PREFIX_BYTES)
        if len(prefix) != PREFIX_BYTES:
            raise _damaged()
        self._file = file
        self._header = MAGIC + salt + prefix
        self._cipher = ChaCha20Poly1305(_key(passphrase, salt))
        self._prefix = prefix
        self._pieces = 0
        self._ahead = file.read(PIECE_BYTES + TAG_BYTES)
        self._clear = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        while not self._clear and not self._ended:
            sealed, self._ahead = self._ahead, self._file.read(PIECE_BYTES + TAG_BYTES)
            self._ended = not self._ahead
            nonce = _nonce(self._prefix, self._pieces, last=self._ended)
            try:
                self._clear = self._cipher.decrypt(nonce, sealed, self._header)
            except InvalidTag:
                raise _damaged() from None
            self._pieces += 1
        taken = self._clear[: len(buffer)]
        buffer[: len(taken)] = taken
        self._clear = self._clear[len(taken) :]
        return len(taken)


def _nonce(prefix: bytes, number: int, *, last: bool) -> bytes:
    return prefix + number.to_bytes(4, "big") + bytes([last])


def _key(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=COST, r=8, p=1).derive(passphrase.encode())


def _damaged() -> InvalidParams:
    return InvalidParams("The passphrase is wrong, or the archive was damaged or cut off.", path="passphrase")
