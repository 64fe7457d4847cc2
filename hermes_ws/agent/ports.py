"""What a turn needs of the rooms above it: someone to tell, hands to act with, someone to ask, something that redacts.

The rooms above implement these; the twins in the tests do too. Nothing here knows of connections, journals or wardens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, final

from hermes_ws.contract.content import Block, Role, ToolCallBlock, ToolResultBlock, Usage
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.registry import Question

Level = Literal["info", "warning", "error"]


@final
@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool gave: `output` as the model reads it. `truncated` when something was left out of it."""

    output: str
    is_error: bool = False
    truncated: bool = False
    duration_ms: int = 0


@final
@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended. `output` is standard output and error in order, decoded and redacted, head and tail kept.

    `explanation` says what a refusal by the confinement means and which setting grants more.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    truncated: bool
    output: str
    duration_ms: int
    explanation: str | None = None


@final
@dataclass(frozen=True, slots=True)
class ReadFile:
    """The bytes asked for, decoded and redacted; `text` is None when they are no text. `size` is the whole file's."""

    text: str | None
    size: int


@final
@dataclass(frozen=True, slots=True)
class Written:
    """What a write left behind. `size` counts bytes."""

    size: int
    created: bool


@final
class NoAnswerer(Exception):
    """Nobody who is connected can answer this kind of question. It was neither answered nor refused."""


@final
class QuestionExpired(Exception):
    """The deadline of a question passed without an answer."""


class Narrator(Protocol):
    """What happened. An awaited call returns once it is committed; the others are live, and neither block nor raise."""

    async def message_start(self, role: Role = "assistant") -> str:
        """Begin a message. Returns its id."""
        ...

    def text(self, message_id: str, piece: str) -> None: ...

    def reasoning(self, message_id: str, piece: str) -> None: ...

    async def message_complete(self, message_id: str, content: Sequence[Block], *, partial: bool = False) -> None:
        """Store the whole message. `partial` when it was cut off."""
        ...

    async def tool_start(self, call: ToolCallBlock) -> None: ...

    def tool_progress(self, call_id: str, piece: str) -> None: ...

    async def tool_complete(self, call: ToolCallBlock, outcome: ToolOutcome) -> None: ...

    async def tool_results(self, blocks: Sequence[ToolResultBlock]) -> None:
        """Store one message of role `tool` with the results of a whole batch, in the order of its calls."""
        ...

    async def usage(self, usage: Usage) -> None: ...

    async def notice(self, level: Level, type: str, message: str, hint: str = "") -> None: ...


class Hands(Protocol):
    """What a turn may do to the machine, for the bound profile. Everything goes through its policy.

    Output and text come back redacted. Refusals and failures are errors of `contract/errors.py`.
    """

    @property
    def cwd(self) -> Path:
        """The session's directory, absolute and resolved."""
        ...

    async def run(self, command: str, *, cwd: Path | None, deadline_s: float, on_output: Callable[[str], None]) -> Ran:
        """Run a command line to its end or deadline. Cancelling ends the whole process group before this returns."""
        ...

    async def read(self, path: Path, *, offset: int, limit: int) -> ReadFile:
        """At most `limit` bytes from byte `offset` on. Raises NotFound or PermissionDenied."""
        ...

    async def write(self, path: Path, text: str) -> Written:
        """Replace a file, or make it and its parents. Raises PermissionDenied."""
        ...


class Asker(Protocol):
    """Who can ask a person."""

    async def ask(self, question: Question, params: Result, *, deadline_s: float | None = None) -> Params:
        """The validated answer, an instance of `question.result`. Cancelling withdraws the question.

        Raises NoAnswerer at once when nobody can answer this kind, QuestionExpired when the deadline passes.
        """
        ...


class StreamRedactor(Protocol):
    """Redacts one text that comes in pieces; holds back what may be the beginning of a secret."""

    def feed(self, text: str) -> str: ...

    def flush(self) -> str: ...


class Redaction(Protocol):
    """Replaces secrets by their names. `scope.secrets.Secrets` is one."""

    def redact(self, text: str) -> str: ...

    def redactor(self) -> StreamRedactor: ...
