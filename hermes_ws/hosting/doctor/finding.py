"""What a look found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, final

Level = Literal["ok", "info", "warning", "error"]

LEVELS: Final[tuple[Level, ...]] = ("ok", "info", "warning", "error")
"""From nothing to be done to something that must be."""


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `remedy` says what to do, and is empty only where nothing is to be done.

    `subject` is the home, the layer or the program that it is about. Values of secrets are in none of the texts.
    """

    check: str
    subject: str
    level: Level
    message: str
    remedy: str = ""


def worst(findings: tuple[Finding, ...]) -> Level:
    """The most serious level among them."""
    level: Level = "ok"
    for finding in findings:
        if LEVELS.index(finding.level) > LEVELS.index(level):
            level = finding.level
    return level
