"""What a client may dress itself in, by the name that a profile gives it (`display.skin`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

_COLORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "accent": "#3b6fd4",
        "text": "#1c1f24",
        "muted": "#6b7280",
        "ok": "#2e7d4f",
        "warning": "#a96a00",
        "error": "#b3261e",
    }
)
_DARK: Final[Mapping[str, str]] = MappingProxyType(
    {
        "accent": "#8ab0ff",
        "text": "#e6e8eb",
        "muted": "#9aa3af",
        "ok": "#7bd39b",
        "warning": "#f0b95b",
        "error": "#ff8a80",
    }
)


def skin(name: str) -> dict[str, JsonValue]:
    """The colours and words of a skin. A client that knows one of this name better uses its own."""
    return {
        "name": name,
        "colors": dict(_COLORS),
        "light_colors": dict(_COLORS),
        "dark_colors": dict(_DARK),
        "branding": {"name": "hermes-ws"},
    }
