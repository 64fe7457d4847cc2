"""A profile's settings and secrets."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints, model_validator

from hermes_ws.contract.errors import (
    ConsentRequired,
    InvalidParams,
    NotFound,
    ProfileUnusable,
    RevisionConflict,
    SessionBusy,
    SessionUnknown,
)
from hermes_ws.contract.methods.profiles import ProfileParams
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Needs, Order, Right, Scope, method

SecretName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""What a secret may be called: what an environment variable may."""

SECRET_CHARACTERS = 65_536
"""Of one secret: the longest is a certificate chain with its key."""


class ConfigGetParams(Params):
    """A setting by its dotted name; without `key`, all of them."""

    profile: Identifier | None = None
    key: str | None = Field(default=None, max_length=200)


class ConfigValue(Result):
    """The value in force. References to secrets are shown as they are written, never expanded."""

    profile: str
    key: str | None
    value: JsonValue
    source: str


def _changes_approvals(key: str, params: ConfigSetParams) -> bool:
    return params.scope == "profile" and key.partition(".")[0] == "approvals"


def _sets_yolo(value: JsonValue, params: ConfigSetParams) -> bool:
    return params.scope == "session" and params.key == "yolo" and bool(value)


def _of_session(scope: str, params: ConfigSetParams) -> bool:
    return scope == "session"


class ConfigSetParams(Params):
    """A setting and its new value; null takes it out of the file, so that its default holds.

    With `scope` `session` it holds for the session alone, for what a session can have of its own. `consent` is the
    token of an earlier answer `consent_required`. What is wrong with a part of the value is refused with the `path`
    of that part, such as `value.mine.kind`; `problems` has all of them.
    """

    key: Annotated[str, Needs(Right.ANSWER, "a change of approvals", _changes_approvals)] = Field(
        min_length=1, max_length=200
    )
    value: Annotated[JsonValue, Needs(Right.ANSWER, "yolo", _sets_yolo)]
    profile: Identifier | None = None
    scope: Annotated[
        Literal["profile", "session"], Needs(Right.CONTROL, "a session's own setting", _of_session, instead=True)
    ] = "profile"
    session_id: Identifier | None = None
    consent: Identifier | None = None

    def located_by(self) -> str | None:
        return self.session_id

    @model_validator(mode="after")
    def _session_is_named(self) -> ConfigSetParams:
        if (self.scope == "session") != (self.session_id is not None):
            raise ValueError("scope session and session_id go together")
        return self


class ConfigSet(Result):
    """What is in force now. Executions that run keep what they began with."""

    profile: str
    key: str
    value: JsonValue
    scope: Literal["profile", "session"]


class SettingRow(Result):
    """One setting: its value, whether that is the default, and what it is for.

    `usual` is what holds when nothing is written, `written` whether the file says something. `shape` is the JSON
    Schema of its values, without references; there `unit` says in what a number is measured, and `secret` marks text
    that is shown as «secret» unless it refers to one. Sent back as such, it stays what it is.
    """

    key: str
    value: JsonValue
    default: bool
    doc: str
    usual: JsonValue
    written: bool
    shape: dict[str, JsonValue]


class ConfigSection(Result):
    """One section of the settings."""

    name: str
    doc: str
    settings: list[SettingRow]


class ConfigShown(Result):
    """All settings, for a person. `foreign` are sections of the file that belong to other programs."""

    profile: str
    source: str
    sections: list[ConfigSection]
    foreign: list[str]


class SetupStatus(Result):
    """Whether the profile can answer a prompt. `error` says what is missing and `hint` what to do."""

    profile: str
    ready: bool
    provider_configured: bool
    inference_provider: str
    model: str
    error: str | None = None
    hint: str | None = None


class EnvReloaded(Result):
    """How many names were added, changed or taken away."""

    profile: str
    updated: int
    problems: list[str]


class SecretSetParams(Params):
    """A secret and its value; null takes it away. The value is stored and never told again."""

    name: SecretName
    value: str | None = Field(max_length=SECRET_CHARACTERS, repr=False)
    profile: Identifier | None = None


class SecretSet(Result):
    """The name, and whether there is a secret of it now."""

    profile: str
    name: str
    set: bool


class SecretNames(Result):
    """What there is, without what it is. `plain` ones are no secrets and stay readable."""

    profile: str
    names: list[str]
    plain: list[str]


CONFIG_GET = method(
    "config.get",
    ConfigGetParams,
    ConfigValue,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(NotFound,),
    doc="The settings in force in a profile; secrets stay references.",
)

CONFIG_SET = method(
    "config.set",
    ConfigSetParams,
    ConfigSet,
    scope=Scope.PROFILE,
    right=Right.ADMIN,
    order=Order.PROFILE,
    errors=(
        ConsentRequired,
        InvalidParams,
        NotFound,
        ProfileUnusable,
        RevisionConflict,
        SessionBusy,
        SessionUnknown,
    ),
    doc="Change a setting of a profile, in its file, with the comments kept; or of one session.",
)

CONFIG_SHOW = method(
    "config.show",
    ProfileParams,
    ConfigShown,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    doc="All settings with their defaults, what they take and what they are for.",
)

SETUP_STATUS = method(
    "setup.status",
    ProfileParams,
    SetupStatus,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    doc="Whether the profile has a model that it can reach, as far as its files tell.",
)

RELOAD_ENV = method(
    "reload.env",
    ProfileParams,
    EnvReloaded,
    scope=Scope.PROFILE,
    right=Right.CONTROL,
    order=Order.PROFILE,
    errors=(ProfileUnusable,),
    doc="Read the profile's settings and secrets again, now.",
)

SECRETS_SET = method(
    "secrets.set",
    SecretSetParams,
    SecretSet,
    scope=Scope.PROFILE,
    right=Right.ADMIN,
    order=Order.PROFILE,
    errors=(InvalidParams, ProfileUnusable),
    doc="Write a secret into the profile's .env; it cannot be read back.",
)

SECRETS_NAMES = method(
    "secrets.names",
    ProfileParams,
    SecretNames,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    doc="The names of the profile's secrets.",
)
