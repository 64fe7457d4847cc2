"""The profile's vault."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hermes_ws.contract.errors import InvalidParams
from hermes_ws.contract.methods.vault import (
    VAULT_ADD,
    VAULT_LIST,
    VAULT_LOCK,
    VAULT_REMOVE,
    VAULT_SOURCES,
    VAULT_UNLOCK,
    UnlockVaultParams,
    VaultAdded,
    VaultAddParams,
    VaultItem,
    VaultItems,
    VaultParams,
    VaultRemoved,
    VaultRemoveParams,
    VaultSource,
    VaultSources,
    VaultUnlocked,
)
from hermes_ws.journal.failures import os_error
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall
from hermes_ws.scope.current import in_thread
from hermes_ws.session.vault import Vault

T = TypeVar("T")


@handles(VAULT_SOURCES)
async def sources(call: ProfileCall, params: VaultParams) -> VaultSources:
    """There is one, in the home."""
    vault = call.runtime.vault
    exists = await _in_vault(call, lambda vault: vault.exists())
    row = VaultSource(name=vault.name, display_name=vault.display_name, exists=exists, unlocked=vault.unlocked)
    return VaultSources(sources=[row])


@handles(VAULT_LIST)
async def list_items(call: ProfileCall, params: VaultParams) -> VaultItems:
    """Labels, sites and user names."""
    if not call.runtime.vault.unlocked:
        return VaultItems(unlocked=False, items=[])
    items = await _in_vault(call, lambda vault: vault.items())
    rows = [
        VaultItem(
            id=item.item_id,
            kind=item.kind,
            label=item.label,
            origin=item.origin,
            username=item.secret.get("username"),
            created_at=item.created_at,
        )
        for item in items
    ]
    return VaultItems(unlocked=True, items=rows)


@handles(VAULT_UNLOCK)
async def unlock(call: ProfileCall, params: UnlockVaultParams) -> VaultUnlocked:
    """A wrong password is an answer and no error."""
    return VaultUnlocked(unlocked=await _in_vault(call, lambda vault: vault.unlock(params.password)))


@handles(VAULT_LOCK)
async def lock(call: ProfileCall, params: VaultParams) -> VaultUnlocked:
    """Forget the key."""
    call.runtime.vault.lock()
    return VaultUnlocked(unlocked=False)


@handles(VAULT_ADD)
async def add(call: ProfileCall, params: VaultAddParams) -> VaultAdded:
    """Encrypted and durable before the reply."""
    if params.kind == "login" and not {"username", "password"} <= params.secret.keys():
        raise InvalidParams("A login has a username and a password.", path="secret")
    item = await _in_vault(call, lambda vault: vault.add(params.kind, params.label, params.origin, params.secret))
    return VaultAdded(id=item.item_id)


@handles(VAULT_REMOVE)
async def remove(call: ProfileCall, params: VaultRemoveParams) -> VaultRemoved:
    """Gone from the file before the reply."""
    await _in_vault(call, lambda vault: vault.remove(params.id))
    return VaultRemoved(removed=True)


async def _in_vault(call: ProfileCall, work: Callable[[Vault], T]) -> T:
    """Do something with the vault in one of the profile's threads; the disk's trouble comes as `StorageUnavailable`."""
    try:
        return await in_thread(call.runtime.limiter, work, call.runtime.vault)
    except OSError as error:
        raise os_error(error, call.runtime.home.state) from error
