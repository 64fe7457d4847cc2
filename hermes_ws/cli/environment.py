"""What the terminal's environment tells the command line. It is read here, once, and nowhere else.

`serve` does not use this: it reads its own environment as its first act, and takes it away.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

HOME_NAME = "HERMES_HOME"
URL_NAME = "HERMES_TUI_GATEWAY_URL"
TOKEN_NAME = "HERMES_TUI_GATEWAY_TOKEN"

HOOKS_NAME = "HERMES_ACCEPT_HOOKS"

YES = ("1", "true", "yes", "on")
"""What switches a switch of the environment on."""

DEFAULT_HOME = ".hermes"
"""Below the user's home, where `HERMES_HOME` is not set."""


@final
@dataclass(frozen=True, slots=True)
class Surroundings:
    """The home that is meant, or the server that is named instead, and what the terminal can show."""

    home: Path
    url: str | None = None
    token: str = field(default="", repr=False)
    plain: bool = False
    columns: int | None = None
    accept_hooks: bool = False
    state: Path = Path("/nonexistent")
    environ: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What a server that is started gets its base from; `start` chooses."""


def read_environment(environ: Mapping[str, str] | None = None) -> Surroundings:
    """From the process environment, unless another is given."""
    given = os.environ if environ is None else environ
    home = given.get(HOME_NAME, "")
    columns = given.get("COLUMNS", "")
    user = Path(given.get("HOME", "/"))
    return Surroundings(
        home=Path(home) if home else user / DEFAULT_HOME,
        url=given.get(URL_NAME) or None,
        token=given.get(TOKEN_NAME, ""),
        plain=bool(given.get("NO_COLOR")) or given.get("TERM") == "dumb",
        columns=int(columns) if columns.isascii() and columns.isdigit() and columns != "0" else None,
        accept_hooks=given.get(HOOKS_NAME, "").lower() in YES,
        state=Path(given.get("XDG_STATE_HOME") or user / ".local" / "state"),
        environ=dict(given),
    )
