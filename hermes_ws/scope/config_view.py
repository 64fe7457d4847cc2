"""What of the settings may be shown: everything but secrets, and references to secrets as they were written."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from pydantic import BaseModel, JsonValue
from pydantic_core import to_jsonable_python

from hermes_ws.contract.errors import NotFound
from hermes_ws.scope.plain import plainly_no_secret

if TYPE_CHECKING:
    from hermes_ws.scope.config import ProfileConfig

_SIMPLE: Final = (str, bool, int, float)
_SECRET: Final[Mapping[str, JsonValue]] = MappingProxyType({"secret": True})

MASK = "«secret»"
"""Stands for a key that was written into config.yaml instead of .env."""


def public_view(config: ProfileConfig, key: str = "") -> JsonValue:
    """The settings under a key such as `terminal.network`, or all of them for an empty key.

    References are not expanded. Raises NotFound for a key that does not exist.
    """
    name, dot, rest = key.partition(".")
    inner = config.__dict__.get(name) if dot else None
    if isinstance(inner, BaseModel) and rest in type(inner).__pydantic_fields__:
        return _shown(inner, rest)  # what is asked for nearly always, at a third of the cost
    parts = key.split(".") if key else []
    section: BaseModel = config
    seen: list[str] = []
    # As far as sections go, only the one that is asked for is looked at: this is asked often.
    while len(parts) > 1 and parts[0] in type(section).__pydantic_fields__:
        inner = cast("object", getattr(section, parts[0]))
        if not isinstance(inner, BaseModel):
            break
        seen.append(parts.pop(0))
        section = inner
    view: JsonValue
    if parts and parts[0] in type(section).__pydantic_fields__:
        seen.append(parts[0])
        view = _shown(section, parts.pop(0))
    else:
        view = _masked(section)
    for part in parts:
        seen.append(part)
        if not isinstance(view, dict) or part not in view:
            known = list(view) if isinstance(view, dict) else []
            close = get_close_matches(part, known, n=1)
            raise NotFound(
                f"There is no setting {'.'.join(seen)}.", hint=f"Did you mean {close[0]}?" if close else "", key=key
            )
        view = view[part]
    return view


def written_secrets(config: ProfileConfig) -> dict[str, str]:
    """Keys that stand in config.yaml itself, by the setting that holds them, so that redaction covers them."""
    found: dict[str, str] = {}
    for name, provider in config.providers.items():
        settings = {"api_key": provider.api_key, "base_url": provider.base_url}
        settings |= {f"headers.{header}": value for header, value in provider.headers.items()}
        for setting, value in settings.items():
            if value is not None and _is_secret(value):
                found[f"providers.{name}.{setting}"] = value
    return found


def _masked(model: BaseModel) -> dict[str, JsonValue]:
    return {name: _shown(model, name) for name in type(model).__pydantic_fields__}


def _shown(model: BaseModel, name: str) -> JsonValue:
    value: object = getattr(model, name)
    if type(model).__pydantic_fields__[name].json_schema_extra == _SECRET:
        return _mask(_plain(value))
    if value is None or isinstance(value, _SIMPLE):
        return value
    if isinstance(value, BaseModel):
        return _masked(value)
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, object]", value)
        return {key: _masked(each) if isinstance(each, BaseModel) else _plain(each) for key, each in entries.items()}
    return _plain(value)


def _plain(value: object) -> JsonValue:
    return cast("JsonValue", to_jsonable_python(value))


def _mask(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _mask(inner) for name, inner in value.items()}
    return MASK if isinstance(value, str) and _is_secret(value) else value


def _is_secret(value: str) -> bool:
    return "${" not in value and not plainly_no_secret(value)
