"""Conversations: making, listing, resuming and interrupting them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

from hermes_ws.contract.errors import (
    AdmissionConflict,
    DirectoryRefused,
    InvalidParams,
    NotFound,
    PermissionDenied,
    SessionBusy,
    SessionUnknown,
    StorageUnavailable,
    ThreadUnknown,
)
from hermes_ws.contract.methods.threads import Snapshot, ThreadParams
from hermes_ws.contract.model import CursorText, Identifier, Params, Result, Title
from hermes_ws.contract.registry import Needs, Order, Right, Scope, method

SOURCES: tuple[str, ...] = ("api", "cli", "oneshot", "tui", "dashboard", "desktop", "schedule")
"""Where a session may say that it was started from; it filters lists and finds "the latest of this kind"."""


STEER_CHARACTERS = 100_000
"""A correction, not a manual: a fifth of what an input may have."""


MOST_SKILLS = 32
"""Skills that one session may be made with: all of them stand in its prompt."""


Directory = Annotated[
    str | None,
    Field(min_length=1, max_length=4096),
    Needs(Right.CONTROL, "a directory outside of the profile's own home/"),
]
"""Where something is to run."""


def _given(value: bool, params: object) -> bool:
    """What somebody else is there to decide, or to keep, is not given away by who may only submit."""
    return value


class CreateParams(Params):
    """What a session is made with; all of it is frozen into the session. `request_id` makes a retry safe. With
    `if_missing` the session of that `title` is the answer where there is one, and what else was given is not used."""

    profile: Identifier | None = None
    request_id: Identifier | None = None
    title: Title | None = None
    if_missing: bool = False
    agent: Identifier | None = None
    cwd: Directory = None
    source: str = "api"
    model: str | None = Field(default=None, min_length=1, max_length=200)
    provider: str | None = Field(default=None, min_length=1, max_length=100)
    max_turns: int | None = Field(default=None, ge=1, le=10_000)
    toolsets: list[str] | None = None
    base_url: str | None = Field(default=None, min_length=1, max_length=2000)
    api_key: str | None = Field(default=None, min_length=1, max_length=4096, repr=False)
    reasoning: Literal["none", "low", "medium", "high"] | None = None
    skills: list[Identifier] | None = Field(default=None, max_length=MOST_SKILLS)
    checkpoints: bool = False
    yolo: Annotated[bool, Needs(Right.ANSWER, "yolo", _given)] = False
    accept_hooks: Annotated[bool, Needs(Right.ANSWER, "accept_hooks", _given)] = False
    pass_session_id: bool = False
    ignore_rules: Annotated[bool, Needs(Right.CONTROL, "ignore_rules", _given)] = False
    ignore_user_config: bool = False
    safe_mode: bool = False
    subscribe: bool = True

    @model_validator(mode="after")
    def _known_source(self) -> CreateParams:
        if self.source not in SOURCES:
            raise ValueError(f"source is one of {', '.join(SOURCES)}")
        if self.base_url is not None and self.api_key is None:
            raise ValueError("a base_url needs the api_key that belongs to it; a key of the profile is not sent there")
        if self.safe_mode and (self.skills or self.cwd is not None):
            raise ValueError("safe_mode takes no skills, and works in an empty directory of its own")
        if self.if_missing and self.title is None:
            raise ValueError("if_missing needs the title that a session is looked for by")
        return self


class Created(Result):
    """The session and the cursor to listen from. `existing`: it was there before, under that title."""

    session_id: str
    thread_id: str
    profile: str
    revision: int
    cursor: str
    info: dict[str, JsonValue]
    existing: bool = False


class ListParams(Params):
    """Which sessions to list; pinned ones first, then the newest. `profile: "*"` means all that the caller may see."""

    profile: str | None = Field(default=None, max_length=64)
    limit: int = Field(default=50, ge=1, le=200)
    before: str | None = Field(default=None, max_length=200)
    query: str | None = Field(default=None, max_length=200)
    state: Literal["idle", "running", "waiting", "lost"] | None = None
    archived: bool = False
    source: str | None = Field(default=None, max_length=64)
    agent: Identifier | None = None


class SessionRow(Result):
    """One line of the list. Times are seconds since 1970."""

    session_id: str
    profile: str
    title: str | None
    state: Literal["idle", "running", "waiting", "lost"]
    source: str
    agent: str
    cwd: str
    created_at: float
    updated_at: float
    revision: int
    preview: str
    pinned: bool = False
    archived: bool = False


class SessionList(Result):
    """A page of sessions; `next` is what to pass as `before` for the following one."""

    sessions: list[SessionRow]
    next: str | None = None


class ResumeParams(Params):
    """One of id, title or `latest` (the newest, or the newest of a source)."""

    session_id: Identifier | None = None
    title: Title | None = None
    latest: bool | str | None = None
    profile: Identifier | None = None
    after: CursorText | None = None
    messages: bool | None = None

    def located_by(self) -> str | None:
        return self.session_id

    @model_validator(mode="after")
    def _exactly_one(self) -> ResumeParams:
        named = [self.session_id is not None, self.title is not None, bool(self.latest)]
        if sum(named) != 1:
            raise ValueError("name the session by exactly one of session_id, title or latest")
        return self


class InterruptParams(ThreadParams):
    """The execution that the caller has seen."""

    execution_generation: int = Field(ge=0)


class SteerParams(InterruptParams):
    """Words for the execution that the caller has seen; it takes them at its next step."""

    text: str = Field(min_length=1, max_length=STEER_CHARACTERS)

    @model_validator(mode="after")
    def _not_blank(self) -> SteerParams:
        if not self.text.strip():
            raise ValueError("the text is blank")
        return self


class CloseParams(Params):
    """The session to be put away."""

    session_id: Identifier
    profile: Identifier | None = None

    def located_by(self) -> str:
        return self.session_id


class Closed(Result):
    """Whether it was open."""

    closed: bool


class ControlResult(Result):
    """What became of it. On a mismatch `active` is the generation that runs."""

    outcome: Literal["accepted", "no_active_execution", "generation_mismatch", "not_steerable", "finishing"]
    active: int | None = None


SESSION_CREATE = method(
    "session.create",
    CreateParams,
    Created,
    scope=Scope.PROFILE,
    right=Right.SUBMIT,
    order=Order.PROFILE,
    errors=(PermissionDenied, DirectoryRefused, AdmissionConflict, InvalidParams, NotFound, StorageUnavailable),
    doc="Make a session with one thread, `main`, and listen to it unless told otherwise.",
)

SESSION_LIST = method(
    "session.list",
    ListParams,
    SessionList,
    scope=Scope.SERVER,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(InvalidParams,),
    doc="Sessions of a profile, or of all that the caller may see.",
)

SESSION_RESUME = method(
    "session.resume",
    ResumeParams,
    Snapshot,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.PROFILE,
    errors=(SessionUnknown,),
    doc="Find a session, take its snapshot and listen to its main thread.",
)

SESSION_INTERRUPT = method(
    "session.interrupt",
    InterruptParams,
    ControlResult,
    scope=Scope.THREAD,
    right=Right.CONTROL,
    order=Order.NOW,
    errors=(SessionUnknown, ThreadUnknown),
    doc="End the execution that the caller has seen, and no other.",
)

SESSION_STEER = method(
    "session.steer",
    SteerParams,
    ControlResult,
    scope=Scope.THREAD,
    right=Right.CONTROL,
    order=Order.NOW,
    errors=(SessionUnknown, ThreadUnknown, StorageUnavailable),
    doc="Say something to the execution that the caller has seen, and to no other; durable before the reply.",
)

SESSION_CLOSE = method(
    "session.close",
    CloseParams,
    Closed,
    scope=Scope.PROFILE,
    right=Right.CONTROL,
    order=Order.SESSION,
    errors=(SessionUnknown, SessionBusy),
    doc="Put a session away: its viewers are told, its approvals are forgotten. It stays stored and can be resumed.",
)
