"""Making, changing and removing profiles, while others are served."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from hermes_ws.contract.errors import (
    AlreadyExists,
    InvalidParams,
    LimitReached,
    NotFound,
    PermissionDenied,
    ProfileUnusable,
)
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method

Part = Literal["config", "soul", "agents", "skills", "memory", "files", "secrets", "sessions"]

NewName = Annotated[str, StringConstraints(min_length=1, max_length=64)]
"""What a profile is to be called; its grammar is checked where names are made."""

Passphrase = Annotated[str, StringConstraints(min_length=12, max_length=1024)]
"""Long enough that guessing it is work."""

Text = Annotated[str, StringConstraints(max_length=65_536)]

Wait = Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)]
"""Seconds; an hour is longer than anybody waits for a profile."""


class ProfileMade(Result):
    """A profile that was made. `skipped` are links, sockets and devices that a copy left out; `confirm` says that what
    it would start by itself is off until `profiles.confirm`; `report` is what is said of it to a person, in lines."""

    id: str
    name: str
    home: str
    skipped: list[str]
    confirm: bool
    report: list[str] = []


class ProfileCreateParams(Params):
    """A new profile. `git_identity` takes over the name and e-mail that git knows the server's user by."""

    name: NewName
    soul: Text | None = None
    provider: Identifier | None = None
    model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    git_identity: bool = True


class ProfileCloneParams(Params):
    """A new profile with parts of another. Memory, files, secrets and sessions come along only when they are named."""

    profile: Identifier
    name: NewName
    include: list[Part] = ["config", "soul", "agents", "skills"]


class ProfileConfigureParams(Params):
    """What is to be changed; what is absent stays."""

    profile: Identifier | None = None
    soul: Text | None = None
    provider: Identifier | None = None
    model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None


class ProfileConfigured(Result):
    """What is in force now. Executions that run keep what they began with."""

    profile: str
    provider: str
    model: str
    loaded: int


class ProfileRenameParams(Params):
    """Another name for a profile. What runs in it gets `wait_s` seconds and is then interrupted."""

    profile: Identifier
    name: NewName
    wait_s: Wait = 10


class ProfileRenamed(Result):
    """The profile under its new name. Its id, and the ids of its sessions, are what they were."""

    id: str
    name: str
    home: str


class ProfileDeleteParams(Params):
    """A profile to remove with all that is in it. `confirm` repeats its name, since there is no way back."""

    profile: Identifier
    confirm: NewName
    wait_s: Wait = 10


class ProfileDeleted(Result):
    """The profile is gone."""

    name: str


class ProfileNameParams(Params):
    """A profile, named."""

    profile: Identifier


class ProfileConfirmed(Result):
    """Whether anything had been off."""

    confirmed: bool


class ProfileExportParams(Params):
    """What goes into the archive. Secrets go along only sealed under a passphrase."""

    profile: Identifier
    include: list[Part] = ["config", "soul", "agents", "skills", "memory", "sessions"]
    passphrase: Passphrase | None = Field(default=None, repr=False)


class ProfileExported(Result):
    """The archive, on the server's machine."""

    path: str
    size: int
    sha256: str
    files: int
    sealed: bool
    skipped: list[str]


class ProfileImportParams(Params):
    """An archive on the server's machine, and a name for the profile. Secrets in it are taken only if asked."""

    path: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    name: NewName
    passphrase: Passphrase | None = Field(default=None, repr=False)
    secrets: bool = False


PROFILES_CREATE = method(
    "profiles.create",
    ProfileCreateParams,
    ProfileMade,
    scope=Scope.SERVER,
    right=Right.ADMIN,
    order=Order.FREE,
    errors=(AlreadyExists, InvalidParams, ProfileUnusable),
    doc="Make a profile. It appears whole or not at all.",
)

PROFILES_CLONE = method(
    "profiles.clone",
    ProfileCloneParams,
    ProfileMade,
    scope=Scope.SERVER,
    right=Right.ADMIN,
    order=Order.FREE,
    errors=(AlreadyExists, InvalidParams, ProfileUnusable, LimitReached),
    doc="Make a profile from parts of another, which may be in use. It gets an identity of its own.",
)

PROFILES_CONFIGURE = method(
    "profiles.configure",
    ProfileConfigureParams,
    ProfileConfigured,
    scope=Scope.PROFILE,
    right=Right.ADMIN,
    order=Order.PROFILE,
    errors=(ProfileUnusable,),
    doc="Change a profile's model and instructions. It holds from the next execution on.",
)

PROFILES_RENAME = method(
    "profiles.rename",
    ProfileRenameParams,
    ProfileRenamed,
    scope=Scope.SERVER,
    right=Right.ADMIN,
    order=Order.PROFILE,
    errors=(AlreadyExists, InvalidParams, PermissionDenied, ProfileUnusable),
    doc="Give a profile another name; identity and sessions stay. Its subscribers are told and resume by id.",
)

PROFILES_DELETE = method(
    "profiles.delete",
    ProfileDeleteParams,
    ProfileDeleted,
    scope=Scope.SERVER,
    right=Right.ADMIN,
    order=Order.PROFILE,
    errors=(InvalidParams, PermissionDenied, ProfileUnusable),
    doc="Remove a profile and all that is in it, for good.",
)

PROFILES_ADOPT = method(
    "profiles.adopt",
    ProfileNameParams,
    ProfileMade,
    scope=Scope.SERVER,
    right=Right.ADMIN,
    order=Order.PROFILE,
    errors=(PermissionDenied, ProfileUnusable),
    doc="Give a home that was copied by hand an identity of its own, so that it can be opened.",
)

PROFILES_CONFIRM = method(
    "profiles.confirm",
    ProfileNameParams,
    ProfileConfirmed,
    scope=Scope.SERVER,
    right=Right.ADMIN,
    order=Order.PROFILE,
    errors=(ProfileUnusable,),
    doc="Switch on what an imported profile starts by itself: secret sources, tool servers, hooks, quick commands.",
)

PROFILES_EXPORT = method(
    "profiles.export",
    ProfileExportParams,
    ProfileExported,
    scope=Scope.SERVER,
    right=Right.ADMIN,
    order=Order.FREE,
    errors=(InvalidParams, ProfileUnusable, LimitReached),
    doc="Write a profile, which may be in use, into one file in the launch home.",
)

PROFILES_IMPORT = method(
    "profiles.import",
    ProfileImportParams,
    ProfileMade,
    scope=Scope.SERVER,
    right=Right.ADMIN,
    order=Order.FREE,
    errors=(AlreadyExists, InvalidParams, NotFound, LimitReached, ProfileUnusable),
    doc="Make a profile from an archive. What it would start by itself is off until it is confirmed.",
)
