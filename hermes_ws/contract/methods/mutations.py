"""Changing a session itself: its name, its place in the list, its history. One method, one row per operation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from hermes_ws.contract.errors import (
    AdmissionConflict,
    ConsentRequired,
    InvalidParams,
    ModelFailed,
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
from hermes_ws.contract.registry import Needs, Order, Right, Scope, Varies, method

IMPORTED_MESSAGES = 2000
"""Messages in one import; with their text they must fit into a frame in any case."""

IMPORTED_CHARACTERS = 500_000
"""Of one imported message, as of one input."""


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
    yolo: bool | None = None


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


class CompressPayload(Params):
    """Puts a summary in the place of the older messages: `soft` for the model alone, `hard` in the journal as well.

    `here` is how many messages stay, `focus` what the summary must not lose. `preview` only shows it.
    """

    here: int | None = Field(default=None, ge=1, le=1000)
    focus: str | None = Field(default=None, min_length=1, max_length=2000)
    mode: Literal["soft", "hard"] = "soft"
    preview: bool = False


class ModelPayload(Params):
    """Another model for the session, from its next turn on; what is left out is the agent's or the profile's again."""

    model: str | None = Field(default=None, min_length=1, max_length=200)
    provider: str | None = Field(default=None, min_length=1, max_length=100)
    reasoning: Literal["none", "low", "medium", "high"] | None = None


class UndoPayload(Params):
    """Takes back the last thing that the user said, and all that came of it. The result has its text."""


class RetryPayload(Params):
    """Has the last thing that the user said answered anew; what came of it the first time is taken back."""


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
        "compress": CompressPayload,
        "model": ModelPayload,
        "undo": UndoPayload,
        "retry": RetryPayload,
        "import": ImportPayload,
    }
)
"""What each operation takes."""


def _sets_yolo(payload: Mapping[str, JsonValue], params: MutateParams) -> bool:
    return params.operation == "configure" and bool(payload.get("yolo"))


class MutateParams(ThreadParams):
    """One edit. The same `request_id` with the same content is carried out once, however often it is sent.

    `expected_revision` is the revision that the caller has seen; `expected_generation` the execution generation of the
    thread, for edits of the conversation. `consent` is the token that a refusal with `consent_required` brought.
    """

    request_id: Identifier
    expected_revision: int = Field(ge=1)
    expected_generation: int | None = Field(default=None, ge=0)
    operation: Identifier
    payload: Annotated[
        dict[str, JsonValue], Varies("operation", PAYLOADS), Needs(Right.ANSWER, "yolo", _sets_yolo)
    ] = {}
    consent: Identifier | None = None


class Mutated(Result):
    """The edit is durable. `revision` is the session's new one; `result` is what the operation gives."""

    session_id: str
    operation: str
    revision: int
    result: dict[str, JsonValue]


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
        ModelFailed,
        StorageUnavailable,
    ),
    doc="Edit a session: its name and place, its options and model, its history. Once per request_id.",
)
