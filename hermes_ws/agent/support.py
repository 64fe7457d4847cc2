"""Who may stand beside a turn: those who work for it, remember for it, keep what it overwrites, or have a say in it.

Each is optional; the rooms above give what the session and the profile ask for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, final

from pydantic import JsonValue


@final
@dataclass(frozen=True, slots=True)
class Task:
    """Something that a subagent is to do. `agent` is a definition's name; None is the session's own."""

    goal: str
    context: str = ""
    agent: str | None = None


@final
@dataclass(frozen=True, slots=True)
class Delegated:
    """What became of a task: `completed`, `failed` or `interrupted`, and the last words of the subagent."""

    subagent_id: str
    status: str
    result: str


class Delegates(Protocol):
    """Who starts subagents."""

    async def delegate(self, call_id: str, tasks: Sequence[Task]) -> Sequence[Delegated]:
        """Start a subagent for each task and wait until all have ended.

        Cancelling ends them, and what came of them until then is still returned, once. Raises LimitReached when one
        more would be too deep or too many, NotFound for an unknown agent; then none was started.
        """
        ...


class Memory(Protocol):
    """The two files that outlive sessions."""

    async def change(
        self, which: Literal["memory", "user"], action: Literal["add", "replace", "remove"], text: str, old: str
    ) -> str:
        """Change one entry; the file's new content. Raises InvalidParams, NotFound, LimitReached."""
        ...


class Keeper(Protocol):
    """Who keeps what files held before they were written."""

    async def before(self, path: Path) -> str | None:
        """Keep the content of a file that is about to be written; what it is called, None when there is no file."""
        ...

    async def after(self, path: Path, before: str | None) -> None:
        """It was written. `before` is what the other call gave."""
        ...


class Hooks(Protocol):
    """Commands of the profile that are run around what a turn does."""

    async def before_tool(self, name: str, arguments: Mapping[str, JsonValue]) -> str | None:
        """Run those before a call; why it must not be made, or None."""
        ...
