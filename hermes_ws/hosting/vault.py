"""A vault in a file of the home, closed until somebody opens it.

What lies in the file is encrypted with a key that scrypt makes of the person's password, so that a copy of the home
gives nothing away. The key stays in memory while the vault is open, which is at most for `IDLE_S` after its last use.
"""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, cast, final

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hermes_ws.contract.errors import InvalidParams, LimitReached, NotFound, PermissionDenied, ProfileUnusable
from hermes_ws.scope import guard
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.private_file import read_regular, write_private
from hermes_ws.session.vault import Item, ItemKind

IDLE_S: Final = 900.0
"""Seconds after which a vault that nobody uses closes by itself: a coffee break, not a night."""

SCRYPT_N: Final = 2**15
"""The cost of one guess: 32 MiB and a tenth of a second, as RFC 7914 has it for what a person waits for."""

VAULT_BYTES: Final = 4 * 1024 * 1024
"""The largest file that is read; thousands of logins."""

MOST_ITEMS: Final = 2000
"""Items in one vault."""

SHORTEST_PASSWORD: Final = 8
"""Characters of a password for a new vault; anything shorter is guessed whatever it costs."""


@final
class _File(BaseModel):
    """The file: how the key is made, and what it closes."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    version: Literal[1]
    n: Annotated[int, Field(ge=2, le=2**20)]
    r: Annotated[int, Field(ge=1, le=16)]
    p: Annotated[int, Field(ge=1, le=4)]
    salt: str
    box: str


@final
class FileVault:
    """A vault in `state/vault.json` of a home. Writes replace the file as a whole, durably."""

    def __init__(self, home: ProfileHome, clock: Callable[[], float] = time.monotonic) -> None:
        self._home = home
        self._clock = clock
        self._key: bytes | None = None
        self._salt = b""
        self._cost = (SCRYPT_N, 8, 1)
        self._used = 0.0

    @property
    def name(self) -> str:
        """Its name among the sources of a profile."""
        return "file"

    @property
    def display_name(self) -> str:
        """What a person knows it by."""
        return "the profile's own vault"

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self._home.state / "vault.json"

    @property
    def unlocked(self) -> bool:
        """Whether it is open. It closes by itself when it was not used for a while."""
        if self._key is not None and self._clock() - self._used >= IDLE_S:
            self.lock()
        return self._key is not None

    def exists(self) -> bool:
        """Whether there is a file."""
        with guard.permit(self._home):
            return self.path.exists()

    def unlock(self, password: str) -> bool:
        """Open it, or make it with this password when there is none."""
        found = self._read()
        if found is None:
            if len(password) < SHORTEST_PASSWORD:
                raise InvalidParams(
                    f"A new vault takes a password of at least {SHORTEST_PASSWORD} characters.", path="password"
                )
            self._salt, self._cost = secrets.token_bytes(16), (SCRYPT_N, 8, 1)
            self._key = _derived(password, self._salt, *self._cost)
            self._write([])
        else:
            salt = base64.b64decode(found.salt)
            key = _derived(password, salt, found.n, found.r, found.p)
            if _opened(key, found.box) is None:
                return False
            self._key, self._salt, self._cost = key, salt, (found.n, found.r, found.p)
        self._used = self._clock()
        return True

    def lock(self) -> None:
        """Close it."""
        self._key = None

    def items(self) -> list[Item]:
        """All that lies in it."""
        key = self._open_key()
        found = self._read()
        content = None if found is None else _opened(key, found.box)
        if content is None:
            self.lock()
            raise PermissionDenied("The vault was replaced under us and is closed.", hint="Open it again.")
        return [_item(cast("dict[str, object]", each)) for each in content]

    def add(self, kind: ItemKind, label: str, origin: str | None, secret: Mapping[str, str]) -> Item:
        """Put something in."""
        items = self.items()
        user = secret.get("username")
        same = [
            each
            for each in items
            if kind == "login" and each.kind == kind and each.origin == origin and each.secret.get("username") == user
        ]
        if len(items) - len(same) >= MOST_ITEMS:
            raise LimitReached(f"There are {MOST_ITEMS} items in the vault.", hint="Remove some.")
        item = Item(f"v-{secrets.token_hex(8)}", kind, label, origin, dict(secret), time.time())
        self._write([*(each for each in items if each not in same), item])
        return item

    def remove(self, item_id: str) -> None:
        """Take something out."""
        items = self.items()
        if all(each.item_id != item_id for each in items):
            raise NotFound(f"There is no item {item_id} in the vault.")
        self._write([each for each in items if each.item_id != item_id])

    def _open_key(self) -> bytes:
        if not self.unlocked or self._key is None:
            raise PermissionDenied("The vault is closed.", hint="Open it with vault.unlock.")
        self._used = self._clock()
        return self._key

    def _read(self) -> _File | None:
        with guard.permit(self._home):
            data = read_regular(self.path, limit=VAULT_BYTES, private=True)
        if data is None:
            return None
        try:
            return _File.model_validate_json(data)
        except ValidationError:
            raise ProfileUnusable(
                f"{self.path} is no vault that can be read.", hint="Put a copy of it back.", file=str(self.path)
            ) from None

    def _write(self, items: list[Item]) -> None:
        from cryptography.fernet import Fernet

        assert self._key is not None
        content = orjson.dumps([_plain(each) for each in items])
        box = Fernet(self._key).encrypt(content).decode()
        n, r, p = self._cost
        file = _File(version=1, n=n, r=r, p=p, salt=base64.b64encode(self._salt).decode(), box=box)
        with guard.permit(self._home):
            write_private(self.path, file.model_dump_json().encode())


def _derived(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    # Not imported at the top: it costs a server that opens no vault 15 ms and some MiB.
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    return base64.urlsafe_b64encode(Scrypt(salt=salt, length=32, n=n, r=r, p=p).derive(password.encode()))


def _opened(key: bytes, box: str) -> list[object] | None:
    from cryptography.fernet import Fernet, InvalidToken

    try:
        return cast("list[object]", orjson.loads(Fernet(key).decrypt(box.encode())))
    except InvalidToken:
        return None


def _plain(item: Item) -> dict[str, object]:
    return {
        "item_id": item.item_id,
        "kind": item.kind,
        "label": item.label,
        "origin": item.origin,
        "secret": dict(item.secret),
        "created_at": item.created_at,
    }


def _item(stored: dict[str, object]) -> Item:
    return Item(
        item_id=cast("str", stored["item_id"]),
        kind=cast("ItemKind", stored["kind"]),
        label=cast("str", stored["label"]),
        origin=cast("str | None", stored["origin"]),
        secret=cast("dict[str, str]", stored["secret"]),
        created_at=cast("float", stored["created_at"]),
    )
