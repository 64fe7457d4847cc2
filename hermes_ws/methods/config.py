"""A profile's settings."""

from __future__ import annotations

from hermes_ws.contract.methods.config import CONFIG_GET, ConfigGetParams, ConfigValue
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall
from hermes_ws.scope.config import public_view


@handles(CONFIG_GET)
async def get(call: ProfileCall, params: ConfigGetParams) -> ConfigValue:
    """The setting as written in the profile's own file, or its default. References to secrets stay references."""
    scope = call.runtime.scope
    return ConfigValue(
        profile=scope.profile.text,
        key=params.key,
        value=public_view(scope.config, params.key or ""),
        source=str(scope.home.config),
    )
