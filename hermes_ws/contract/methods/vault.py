"""The profile's vault. What lies in it is never told: only that it is there."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from hermes_ws.contract.errors import InvalidParams, NotFound, PermissionDenied, ProfileUnusable
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method

Origin = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9+.-]*://[^/\s]+$", max_length=500)]
SecretFields = Annotated[dict[str, Annotated[str, Field(max_length=10_000)]], Field(min_length=1, max_length=30)]


class VaultParams(Params):
    """Whose vault."""

    profile: Identifier | None = None


class VaultItem(Result):
    """Something in the vault, without what it is."""

    id: str
    kind: Literal["login", "payment", "address"]
    label: str
    origin: str | None
    username: str | None
    created_at: float


class VaultItems(Result):
    """What lies in an open vault; a closed one shows nothing."""

    unlocked: bool
    items: list[VaultItem]


class VaultSource(Result):
    """A vault, and whether it is there and open."""

    name: str
    display_name: str
    exists: bool
    unlocked: bool


class VaultSources(Result):
    """The vaults of the profile."""

    sources: list[VaultSource]


class UnlockVaultParams(VaultParams):
    """What opens it. A vault that is not there yet is made, with this password."""

    password: str = Field(min_length=1, max_length=1000, repr=False)


class VaultUnlocked(Result):
    """Whether it is open now."""

    unlocked: bool


class VaultAddParams(VaultParams):
    """What to put in. A login has `username` and `password`, and replaces the one of the same site and user."""

    kind: Literal["login", "payment", "address"] = "login"
    label: str = Field(min_length=1, max_length=200)
    origin: Origin | None = None
    secret: SecretFields = Field(repr=False)


class VaultAdded(Result):
    """Its id."""

    id: str


class VaultRemoveParams(VaultParams):
    """Which one."""

    id: Identifier


class VaultRemoved(Result):
    """It is gone."""

    removed: bool


VAULT_SOURCES = method(
    "vault.sources",
    VaultParams,
    VaultSources,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    doc="The vaults of a profile.",
)

VAULT_LIST = method(
    "vault.list",
    VaultParams,
    VaultItems,
    scope=Scope.PROFILE,
    right=Right.ANSWER,
    order=Order.PROFILE,
    errors=(ProfileUnusable,),
    doc="What lies in the vault, by label and site.",
)

VAULT_UNLOCK = method(
    "vault.unlock",
    UnlockVaultParams,
    VaultUnlocked,
    scope=Scope.PROFILE,
    right=Right.ANSWER,
    order=Order.PROFILE,
    errors=(InvalidParams, ProfileUnusable),
    doc="Open the vault for a while, or make it.",
)

VAULT_LOCK = method(
    "vault.lock",
    VaultParams,
    VaultUnlocked,
    scope=Scope.PROFILE,
    right=Right.ANSWER,
    order=Order.PROFILE,
    doc="Close the vault.",
)

VAULT_ADD = method(
    "vault.add",
    VaultAddParams,
    VaultAdded,
    scope=Scope.PROFILE,
    right=Right.ANSWER,
    order=Order.PROFILE,
    errors=(PermissionDenied, InvalidParams, ProfileUnusable),
    doc="Put something into the open vault.",
)

VAULT_REMOVE = method(
    "vault.remove",
    VaultRemoveParams,
    VaultRemoved,
    scope=Scope.PROFILE,
    right=Right.ANSWER,
    order=Order.PROFILE,
    errors=(PermissionDenied, NotFound, ProfileUnusable),
    doc="Take something out of the open vault.",
)
