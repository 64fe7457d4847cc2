"""Rules that a directory keeps in several files, `.cursor/rules/*.mdc`, each with settings that tell when it holds.

One that always holds is read whole. One that holds for some files, or for some kind of task, is only pointed at: the
model reads it when it comes to that, with the tools that it has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

from hermes_ws.agent import front_matter

DIRECTORY: Final = ".cursor/rules"
"""Where they lie."""

PATTERN: Final = "*.mdc"

MOST: Final = 32
"""Files of one directory; more rules than that nobody follows."""

ABOUT: Final = 300
"""Characters of what a file says it is about, or holds for."""


_NAME: Final = re.compile(r"[A-Za-z]+")


def keeps_rules(path: PurePath) -> bool:
    """Whether a file is one of these."""
    return path.suffix.lower() == ".mdc" and tuple(part.lower() for part in path.parts[-3:-1]) == (".cursor", "rules")


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """The files that count, by name, as seen from the directory that they are for."""
    return tuple(f"{DIRECTORY}/{each}" for each in sorted(names)[:MOST])


def part_of(name: str, text: str) -> str:
    """What the model is told of one file."""
    try:
        fenced, words = front_matter.split(text)
    except ValueError:
        return text
    settings = _settings(fenced or "")
    files, about = settings.get("globs", ""), settings.get("description", "")
    if settings.get("alwaysApply", "").lower() == "true" or not (files or about):
        return words.strip()
    holds = f"for {files}" if files else "for some tasks"
    return f"{name} holds rules {holds}{f': {about}' if about else ''}. Read it when you come to that."


def _settings(fenced: str) -> Mapping[str, str]:
    """The settings, each as one line. This is not YAML: people write `globs: *.ts` here, which is none."""
    found: dict[str, str] = {}
    name = ""
    for line in fenced.splitlines():
        key, colon, value = line.partition(":")
        if colon and _NAME.fullmatch(key):
            name = key
            found[name] = _plain(value)
        elif name and line.strip().startswith("- "):
            found[name] = ", ".join(each for each in (found[name], _plain(line.strip()[2:])) if each)
    return {name: value[:ABOUT] for name, value in found.items()}


def _plain(value: str) -> str:
    return " ".join(value.strip().strip("[]\"'").split())
