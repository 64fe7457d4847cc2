"""What of a profile's settings starts programs by itself, and the settings with all of that off.

A home that was imported is somebody else's work until its new owner has looked at it: what it would start is off, and
named, until that is confirmed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from pydantic import BaseModel

from hermes_ws.scope.config import ProfileConfig

SECTIONS: Final = ("mcp_servers", "hooks", "quick_commands")
"""Sections of which every entry is a program to start."""

SETTINGS: Final = (("secrets", "sources"), ("agent", "hooks"))
"""Settings within other sections that are programs to start."""

PROVIDER_SETTING: Final = "key_command"
"""The setting of a provider that mints its key."""


def disarmed(config: ProfileConfig) -> tuple[ProfileConfig, tuple[str, ...]]:
    """The settings without what starts programs, and the keys that were taken out."""
    update: dict[str, object] = {}
    off: list[str] = []
    for name in SECTIONS:
        field = ProfileConfig.model_fields.get(name)
        default: object = None if field is None else field.get_default(call_default_factory=True)
        if field is not None and getattr(config, name) != default:
            update[name] = default
            off.append(name)
    for section_name, setting in SETTINGS:
        section = cast("BaseModel", update.get(section_name, getattr(config, section_name)))
        if getattr(section, setting, None):
            update[section_name] = _without(section, setting)
            off.append(f"{section_name}.{setting}")
    providers = dict(cast("Mapping[str, BaseModel]", config.providers))
    for name, provider in config.providers.items():
        if getattr(provider, PROVIDER_SETTING, None):
            providers[name] = _without(provider, PROVIDER_SETTING)
            off.append(f"providers.{name}.{PROVIDER_SETTING}")
    return config.model_copy(update={**update, "providers": providers}), tuple(off)


def _without(section: BaseModel, setting: str) -> BaseModel:
    default = cast("object", type(section).model_fields[setting].get_default(call_default_factory=True))
    return section.model_copy(update={setting: default})
