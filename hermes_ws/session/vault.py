"""What a vault is to a session, and how a login is fetched from one: by asking for whatever is missing on the way.

The agent never sees what lies in a vault: a command that needs a login finds it in its environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, final

import trio
from pydantic import BaseModel, ConfigDict, Field

from hermes_ws.agent.ports import Asker, Login
from hermes_ws.contract.errors import InvalidParams, PermissionDenied
from hermes_ws.contract.questions import (
    VAULT_CODE,
    VAULT_SAVE_LOGIN,
    VAULT_UNLOCK,
    ValueResult,
    VaultCodeParams,
    VaultLoginParams,
    VaultLoginResult,
    VaultUnlockParams,
)
from hermes_ws.journal.address import ThreadKey
from hermes_ws.scope.current import in_thread

ATTEMPTS: Final = 3
"""How often a person is asked for the password of a vault before it stays closed."""

ItemKind = Literal["login", "payment", "address"]


@final
@dataclass(frozen=True, slots=True)
class Item:
    """What lies in a vault. `secret` are its fields by name; `origin` is the site of a login, scheme, host and port."""

    item_id: str
    kind: ItemKind
    label: str
    origin: str | None
    secret: Mapping[str, str] = field(repr=False)
    created_at: float


class Vault(Protocol):
    """Where logins lie. What reads or derives is called in a thread of the profile. Closed, it gives nothing."""

    @property
    def name(self) -> str: ...
    @property
    def display_name(self) -> str: ...
    @property
    def unlocked(self) -> bool: ...

    def exists(self) -> bool:
        """Whether there is one yet; opening one that is not there makes it."""
        ...

    def unlock(self, password: str) -> bool:
        """Open it; false for a wrong password. Raises `InvalidParams` for one that is too short for a new vault."""
        ...

    def lock(self) -> None:
        """Close it, and forget the key."""
        ...

    def items(self) -> list[Item]:
        """All that lies in it. Raises `PermissionDenied` while it is closed."""
        ...

    def add(self, kind: ItemKind, label: str, origin: str | None, secret: Mapping[str, str]) -> Item:
        """Put something in; a login replaces the one of the same site and user name. Raises as `items`."""
        ...

    def remove(self, item_id: str) -> None:
        """Take something out. Raises `NotFound`, and as `items`."""
        ...


@final
class TypedLogin(BaseModel):
    """What a person types in for a site."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    username: str = Field(max_length=1000)
    password: str = Field(min_length=1, max_length=10_000)


@final
class Logins:
    """Fetches logins for one execution."""

    def __init__(self, vault: Vault, asker: Asker, key: ThreadKey, limiter: trio.CapacityLimiter) -> None:
        self._vault = vault
        self._asker = asker
        self._key = key
        self._limiter = limiter

    async def login(self, origin: str, site: str, *, code: bool) -> Login:
        """The login of a site; asks to open the vault, for a login that is not in it, and for a code, as needed.

        Raises `PermissionDenied` when the person would not say, `NoAnswerer`, `QuestionExpired`, `ProfileUnusable`.
        """
        await self._open()
        found = [item for item in await in_thread(self._limiter, self._vault.items) if item.origin == origin]
        item = found[-1] if found else await self._typed(origin, site)
        one_time = await self._code(site) if code else None
        return Login(item.secret.get("username", ""), item.secret.get("password", ""), one_time)

    async def _open(self) -> None:
        vault = self._vault
        problem = None
        for left in range(ATTEMPTS, 0, -1):
            if vault.unlocked:
                return
            there = await in_thread(self._limiter, vault.exists)
            asked = VaultUnlockParams(
                session_id=self._key.session_id,
                thread_id=self._key.thread_id,
                backend=vault.name,
                display_name=vault.display_name if there else f"{vault.display_name} (new: choose a password)",
                problem=problem and f"{problem} {left} more {'try' if left == 1 else 'tries'}.",
            )
            result = await self._asker.ask(VAULT_UNLOCK, asked)
            if not isinstance(result, ValueResult) or result.value is None:
                raise PermissionDenied("The person would not open the vault.")
            try:
                await in_thread(self._limiter, vault.unlock, result.value)
                problem = "That is not the password of this vault."
            except InvalidParams as short:
                problem = short.message
        if not vault.unlocked:
            raise PermissionDenied("The vault was not opened: the password was wrong each time.")

    async def _typed(self, origin: str, site: str) -> Item:
        asked = VaultLoginParams(
            session_id=self._key.session_id, thread_id=self._key.thread_id, origin=origin, site=site
        )
        result = await self._asker.ask(VAULT_SAVE_LOGIN, asked)
        if not isinstance(result, VaultLoginResult) or result.value is None:
            raise PermissionDenied(f"The person gave no login for {site}.")
        typed = TypedLogin.model_validate_json(result.value)
        return await in_thread(self._limiter, self._vault.add, "login", site, origin, typed.model_dump())

    async def _code(self, site: str) -> str:
        asked = VaultCodeParams(session_id=self._key.session_id, thread_id=self._key.thread_id, site=site)
        result = await self._asker.ask(VAULT_CODE, asked)
        if not isinstance(result, ValueResult) or result.value is None:
            raise PermissionDenied(f"The person gave no code for {site}.")
        return result.value
