"""Changing a session itself: its name, its place in the list, its history. One method, one row per operation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from pydantic import Field, JsonValue

from hermes_ws.contract.errors import (
    AdmissionConflict,
    ConsentRequired,
    InvalidParams,
    NotFound,
    RevisionConflict,
    SessionBusy,
    SessionUnknown,
    StaleEpoch,
    StaleGeneration,
    StorageUnavailable,
    ThreadUnknown,
    UnknownExecution,
)
from hermes_ws.contract.methods.threads import ThreadParams
from hermes_ws.contract.model import Identifier, Params, Result, Title
from hermes_ws.contract.registry import Order, Right, Scope, method

IMPORTED_MESSAGES = 2000
"""Messages in one import; with their text they must fit into a frame in any case."""

IMPORTED_CHARACTERS = 500_000
"""Of one imported message, as of one input."""


class MutateParams(ThreadParams):
    """One edit. The same `request_id` with the same content is carried out once, however often it is sent.

    `expected_revision` is the revision that the caller has seen; `expected_generation` the execution generation of the
    thread, for edits of the conversation. `consent` is the token that a refusal with `consent_required` brought.
    """

    request_id: Identifier
    expected_revision: int = Field(ge=1)
    expected_generation: int | None = Field(default=None, ge=0)
    operation: Identifier
    payload: dict[str, JsonValue] = {}
    consent: Identifier | None = None


class Mutated(Result):
    """The edit is durable. `revision` is the session's new one; `result` is what the operation gives."""

    session_id: str
    operation: str
    revision: int
    result: dict[str, JsonValue]


class RenamePayload(Params):
    """The new title; null takes it away."""

    title: Title | None


class ArchivePayload(Params):
    """Archived sessions leave the list and are kept."""

    archived: bool = True


class PinPayload(Params):
    """Pinned sessions stand first in the list."""

    pinned: bool = True


class ConfigurePayload(Params):
    """What the session has of its own instead of its agent's or its profile's; null gives that up again."""

    model: str | None = Field(default=None, min_length=1, max_length=200)
    provider: str | None = Field(default=None, min_length=1, max_length=100)
    max_turns: int | None = Field(default=None, ge=1, le=10_000)
    toolsets: list[str] | None = None


class DeletePayload(Params):
    """The session and all that belongs to it are gone for good."""


class ResetPayload(Params):
    """The conversation begins anew; the session stays."""


class RewindPayload(Params):
    """Takes back everything from a message of the user on. The result has its text, for editing."""

    message_id: Identifier


class BranchPayload(Params):
    """Makes another session out of the conversation up to and with a message, or all of it."""

    through_message_id: Identifier | None = None
    title: Title | None = None


class ImportedMessage(Params):
    """One message of a conversation that was led elsewhere."""

    role: Literal["user", "assistant"]
    text: str = Field(min_length=1, max_length=IMPORTED_CHARACTERS)


class ImportPayload(Params):
    """Replaces the conversation of an existing session by this one."""

    messages: list[ImportedMessage] = Field(min_length=1, max_length=IMPORTED_MESSAGES)


PAYLOADS: Mapping[str, type[Params]] = MappingProxyType(
    {
        "rename": RenamePayload,
        "archive": ArchivePayload,
        "pin": PinPayload,
        "configure": ConfigurePayload,
        "delete": DeletePayload,
        "reset": ResetPayload,
        "rewind": RewindPayload,
        "branch": BranchPayload,
        "import": ImportPayload,
    }
)
"""What each operation takes."""


SESSION_MUTATE = method(
    "session.mutate",
    MutateParams,
    Mutated,
    scope=Scope.PROFILE,
    right=Right.CONTROL,
    order=Order.SESSION,
    errors=(
        InvalidParams,
        StaleEpoch,
        AdmissionConflict,
        SessionUnknown,
        ThreadUnknown,
        RevisionConflict,
        StaleGeneration,
        SessionBusy,
        UnknownExecution,
        ConsentRequired,
        NotFound,
        StorageUnavailable,
    ),
    doc="Edit a session: rename, archive, pin, configure, delete, reset, rewind, branch, import. Once per request_id.",
)
