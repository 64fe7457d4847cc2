"""A profile's settings."""

from __future__ import annotations

from pydantic import Field, JsonValue

from hermes_ws.contract.errors import NotFound
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method


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
