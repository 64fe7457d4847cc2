"""Markdown files that begin with settings between two lines of dashes: taking the two apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

FENCE: Final = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


def split(text: str) -> tuple[str | None, str]:
    """The settings as text, None where there are none, and what follows. Raises ValueError for one without an end."""
    fenced = FENCE.match(text)
    if fenced is None and text.startswith("---"):
        raise ValueError("the front matter has no end: a line `---` is missing")
    return (None, text) if fenced is None else (fenced.group(1), text[fenced.end() :])


def settings(text: str | None) -> Mapping[str, object]:
    """The settings of a front matter; none for None. Raises ValueError, with what is wrong in words."""
    if text is None:
        return {}
    try:
        content: object = YAML(typ="safe", pure=True).load(text)  # pyright: ignore[reportUnknownMemberType]
    except (YAMLError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        raise ValueError("the front matter is not YAML that can be read") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ValueError("the front matter holds no settings; write `name: value` lines")
    return {str(key): each for key, each in cast("dict[object, object]", content).items()}
