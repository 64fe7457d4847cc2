"""Rights that a request needs because of what it asks for, beyond the one that its method needs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

from hermes_ws.contract.errors import PermissionDenied
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.registry import Method, Right
from hermes_ws.methods.ports import ConnectionCall, ProfileCall
from hermes_ws.scope.current import in_thread

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=Result)


def lacking(name: str, right: Right, what: str) -> PermissionDenied:
    """Why a caller is refused: `what`, the subject of a sentence, needs a right that it does not have."""
    return PermissionDenied(
        f"{name} lacks the right {right.value}, which {what} needs.",
        hint="Ask whoever runs the server for a token with this right.",
        right=right.value,
    )


def holds(call: ConnectionCall, method: Method[P, R], parameter: str) -> bool:
    """Whether the caller holds the right that this parameter is declared to need."""
    return method.need(parameter).right in call.principal.rights


def demand(call: ConnectionCall, method: Method[P, R], parameter: str) -> None:
    """Raises `PermissionDenied` unless the caller holds the right that this parameter is declared to need. For handlers
    that have seen that it asks for what needs it."""
    need = method.need(parameter)
    if need.right not in call.principal.rights:
        raise lacking(call.principal.name, need.right, need.what)


async def check_directory(call: ProfileCall, method: Method[P, R], directory: str | None) -> None:
    """Raises `PermissionDenied` for a `cwd` outside of `<home>/home` unless the caller holds the right that it needs:
    what lies elsewhere is not the profile's own, and its commands may change it.
    """
    if directory is None or holds(call, method, "cwd"):
        return
    # With its links resolved: an agent may have put one into home/ that leads elsewhere.
    if not await in_thread(call.runtime.limiter, _lies_in, directory, call.runtime.scope.home.user):
        demand(call, method, "cwd")


def _lies_in(directory: str, user: Path) -> bool:
    """Whether it does with all links resolved."""
    return Path(os.path.realpath(directory)).is_relative_to(os.path.realpath(user))
