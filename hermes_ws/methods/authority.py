"""Rights that a request needs because of what it asks for, beyond the one that its method needs."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_ws.contract.errors import PermissionDenied
from hermes_ws.contract.registry import Right
from hermes_ws.methods.ports import ConnectionCall, ProfileCall
from hermes_ws.scope.current import in_thread


def lacking(name: str, right: Right, what: str) -> PermissionDenied:
    """Why a caller is refused: `what`, the subject of a sentence, needs a right that it does not have."""
    return PermissionDenied(
        f"{name} lacks the right {right.value}, which {what} needs.",
        hint="Ask whoever runs the server for a token with this right.",
        right=right.value,
    )


def require(call: ConnectionCall, right: Right, what: str) -> None:
    """Raises `PermissionDenied` unless the caller holds the right."""
    if right not in call.principal.rights:
        raise lacking(call.principal.name, right, what)


async def check_directory(call: ProfileCall, directory: str | None) -> None:
    """Raises `PermissionDenied` for a directory outside of `<home>/home` unless the caller holds `control`: what lies
    elsewhere is not the profile's own, and its commands may change it.
    """
    if directory is None or Right.CONTROL in call.principal.rights:
        return
    if not await in_thread(call.runtime.limiter, _lies_in, directory, call.runtime.scope.home.user):
        require(call, Right.CONTROL, "a directory outside of the profile's own home/")


def _lies_in(directory: str, user: Path) -> bool:
    """Whether it does with all links resolved."""
    return Path(os.path.realpath(directory)).is_relative_to(os.path.realpath(user))
