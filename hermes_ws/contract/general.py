"""The errors that come from what is done before a handler runs: any method may answer with them, whatever it is for.

A declaration names the others. A client's author needs both, so that the documents show both.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hermes_ws.contract.errors import (
    Draining,
    HermesError,
    Internal,
    InvalidParams,
    InvalidRequest,
    LimitReached,
    NeedsConnection,
    Overloaded,
    PermissionDenied,
    ProfileMismatch,
    ProfileUnknown,
    ProfileUnusable,
    RequestCancelled,
    SessionUnknown,
    StorageUnavailable,
    ThreadUnknown,
    UnknownParameter,
)
from hermes_ws.contract.registry import Scope

ErrorTypes = tuple[type[HermesError], ...]

ALWAYS: Final[ErrorTypes] = (
    InvalidRequest,
    InvalidParams,
    UnknownParameter,
    PermissionDenied,
    Overloaded,
    LimitReached,
    RequestCancelled,
    Internal,
)
"""Of every method: the request, its rights, its size, and our own bugs."""

_PROFILE: Final[ErrorTypes] = (ProfileUnknown, ProfileMismatch, ProfileUnusable, StorageUnavailable, Draining)

BY_SCOPE: Final[Mapping[Scope, ErrorTypes]] = MappingProxyType(
    {
        Scope.CONNECTION: (NeedsConnection,),
        Scope.SERVER: (ProfileUnknown, ProfileUnusable, StorageUnavailable, Draining),
        Scope.PROFILE: (*_PROFILE, SessionUnknown),
        Scope.SESSION: (*_PROFILE, SessionUnknown),
        Scope.THREAD: (*_PROFILE, SessionUnknown, ThreadUnknown),
    }
)
"""Of the methods of a scope: finding and opening what they are about."""


def general(scope: Scope) -> ErrorTypes:
    """All that a method of this scope may answer with besides what it declares, or a more exact error of their kind."""
    return ALWAYS + BY_SCOPE[scope]
