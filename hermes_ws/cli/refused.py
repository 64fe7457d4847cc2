"""Options that other clients have and this one refuses, and what does the same here.

They are declared, so that a person who types one is told where to go; nothing is contacted before they are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar, final

import click

F = TypeVar("F", bound=Callable[..., object])


@final
@dataclass(frozen=True, slots=True)
class RefusedOption:
    """One option: how it is written, and what to use instead."""

    flags: tuple[str, ...]
    name: str
    instead: str
    takes: str | None = None


REFUSED: Final = (
    RefusedOption(
        ("-w", "--worktree"), "refused_worktree", "make the worktree (git worktree add DIR), then use --in DIR"
    ),
    RefusedOption(("--image",), "refused_image", "open the dashboard (hermes-ws open) and attach it there", "FILE"),
    RefusedOption(
        ("--run-budget",), "refused_run_budget", "set agent.run_budget_seconds (hermes-ws config set)", "SECONDS"
    ),
    RefusedOption(("-v", "--verbose"), "refused_verbose", "use hermes-ws logs --follow"),
    RefusedOption(
        ("--no-restore-cwd",), "refused_no_restore_cwd", "use --in DIR; a session keeps the directory it has"
    ),
)


def declared(function: F) -> F:
    """Declare them all, hidden from the help."""
    for each in reversed(REFUSED):
        option = click.option(
            *each.flags, each.name, hidden=True, is_flag=each.takes is None, default=None, metavar=each.takes
        )
        function = option(function)
    return function


def see_refused(given: dict[str, object]) -> None:
    """Take them out of what was given. Raises UsageError, which names what to use instead, for the first one used."""
    for each in REFUSED:
        if given.pop(each.name, None):
            shown = "/".join(each.flags)
            raise click.UsageError(f"{shown} is unsupported here: {each.instead}. Nothing was started or changed.")
