"""The providers that a profile can speak with, and their keys."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from hermes_ws.contract.errors import InvalidParams, ModelFailed, NotFound, ProfileUnusable
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method

Slug = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
"""The name of a provider, as it stands under `providers`."""

KEY_CHARACTERS = 8192
"""Of a key: the longest are tokens of some thousand."""


class OptionsParams(Params):
    """Of a profile, or as a session has it."""

    profile: Identifier | None = None
    session_id: Identifier | None = None

    def located_by(self) -> str | None:
        return self.session_id


class Provider(Result):
    """A provider. `authenticated` is whether it has the key that it needs; `key_env` is where that comes from."""

    slug: str
    name: str
    kind: str
    is_current: bool
    authenticated: bool
    key_env: str | None = None
    models: list[str]
    warning: str | None = None


class ModelOptions(Result):
    """What can be chosen, and what is chosen."""

    providers: list[Provider]
    provider: str
    model: str


class SaveKeyParams(Params):
    """A key for a provider. It goes into the profile's .env; config.yaml refers to it."""

    slug: Slug
    api_key: str = Field(min_length=1, max_length=KEY_CHARACTERS, repr=False)
    base_url: str | None = Field(default=None, max_length=200)
    profile: Identifier | None = None


class KeySaved(Result):
    """The provider as it is now."""

    provider: Provider


class DisconnectParams(Params):
    """The provider whose key is to be forgotten."""

    slug: Slug
    profile: Identifier | None = None


class Disconnected(Result):
    """Whether there was a key."""

    slug: str
    name: str
    disconnected: bool


class CheckParams(Params):
    """A provider; absent, the one in force."""

    slug: Slug | None = None
    profile: Identifier | None = None


class Checked(Result):
    """What the provider said when it was asked for its models. With `ok` false, why, and what to do."""

    slug: str
    ok: bool
    models: list[str]
    error: str | None = None
    hint: str | None = None


MODEL_OPTIONS = method(
    "model.options",
    OptionsParams,
    ModelOptions,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(NotFound,),
    doc="The providers that the profile knows, and which model is in force.",
)

MODEL_SAVE_KEY = method(
    "model.save_key",
    SaveKeyParams,
    KeySaved,
    scope=Scope.PROFILE,
    right=Right.ADMIN,
    order=Order.PROFILE,
    errors=(InvalidParams, ProfileUnusable),
    doc="Store the key of a provider in the profile's .env; it cannot be read back.",
)

MODEL_DISCONNECT = method(
    "model.disconnect",
    DisconnectParams,
    Disconnected,
    scope=Scope.PROFILE,
    right=Right.ADMIN,
    order=Order.PROFILE,
    errors=(NotFound, InvalidParams, ProfileUnusable),
    doc="Forget the key of a provider.",
)

MODEL_CHECK = method(
    "model.check",
    CheckParams,
    Checked,
    scope=Scope.PROFILE,
    right=Right.CONTROL,
    order=Order.FREE,
    errors=(NotFound, ModelFailed),
    doc="Ask a provider for its models, with the profile's key: whether it can be reached and lets the profile in.",
)
