"""What is told of the programs that run for a profile: terminals, and what goes on in the background."""

from __future__ import annotations

from hermes_ws.contract.model import Result


class TerminalOutput(Result):
    """What a terminal shows, after what this viewer already has. A gap in `offset` is what nobody keeps any more."""

    terminal_id: str
    offset: int
    text: str


class TerminalExited(Result):
    """A terminal came to its end, and nothing of it follows."""

    terminal_id: str
    exit_code: int | None = None
    signal: int | None = None


class TerminalResized(Result):
    """A terminal has another size, for all who look at it."""

    terminal_id: str
    rows: int
    columns: int


class ProcessWrote(Result):
    """What a background process wrote, redacted, after what this follower already has. A gap in `offset` is what nobody
    keeps any more."""

    process_id: str
    offset: int
    text: str


class ProcessEnded(Result):
    """A background process that is followed has ended, and nothing of it follows."""

    process_id: str
    exit_code: int | None = None
    signal: int | None = None


class ProcessExited(Result):
    """A background process ended. `tail` is the end of what it wrote; without code and signal, how is not known."""

    process_id: str
    command: str
    exit_code: int | None = None
    signal: int | None = None
    tail: str = ""
