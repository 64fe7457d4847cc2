"""Terminals that a person opens: a program on a pseudo-terminal of the profile, shown to whoever looks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from hermes_ws.contract.errors import (
    DirectoryRefused,
    HermesError,
    LimitReached,
    NotFound,
    SessionUnknown,
    WardenFailed,
)
from hermes_ws.contract.methods.sessions import Directory
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method

INPUT_CHARACTERS = 65_536
"""What is typed or pasted at once."""

Cells = Annotated[int, Field(ge=1, le=4096)]
"""Rows or columns of a terminal."""

Word = Annotated[str, StringConstraints(max_length=65_536)]


class TerminalOpenParams(Params):
    """What to run, and where. Without a command it is a shell; without a directory the session's, or the profile's."""

    profile: Identifier | None = None
    session_id: Identifier | None = None
    cwd: Directory = None
    command: list[Word] | None = Field(default=None, min_length=1, max_length=1024)
    rows: Cells = 24
    columns: Cells = 80

    def located_by(self) -> str | None:
        return self.session_id


class TerminalOpened(Result):
    """Its id. What it shows follows as `terminal.output`, from the beginning."""

    terminal_id: str
    profile: str
    cwd: str


class TerminalParams(Params):
    """One terminal."""

    terminal_id: Identifier
    profile: Identifier | None = None

    def located_by(self) -> str:
        return self.terminal_id

    def unknown(self) -> HermesError:
        return NotFound(f"There is no terminal {self.terminal_id}, or it has ended.")


class TerminalInputParams(TerminalParams):
    """What is typed, as the keys send it."""

    data: str = Field(max_length=INPUT_CHARACTERS)


class TerminalResizeParams(TerminalParams):
    """The room that there is for it. A terminal has one size, however many look: that of who last typed into it or
    said to be `working` in it. Else the room is remembered for when its viewer types, and counts at once where nobody
    else looks."""

    rows: Cells
    columns: Cells
    working: bool = True


class TerminalDone(Result):
    """It was done."""

    terminal_id: str


class TerminalRow(Result):
    """A terminal that is open. Times are seconds since 1970."""

    terminal_id: str
    session_id: str | None = None
    command: list[str]
    cwd: str
    started_at: float
    rows: int
    columns: int
    viewers: int


class TerminalListParams(Params):
    """Of the profile."""

    profile: Identifier | None = None


class TerminalList(Result):
    """Oldest first."""

    terminals: list[TerminalRow]


TERMINAL_OPEN = method(
    "terminal.open",
    TerminalOpenParams,
    TerminalOpened,
    scope=Scope.PROFILE,
    right=Right.TERMINAL,
    order=Order.PROFILE,
    errors=(SessionUnknown, DirectoryRefused, LimitReached, WardenFailed),
    doc="Open a terminal (of the kind `xterm-256color`) and look at it. What is shown in it is neither redacted nor "
    "stored.",
)

TERMINAL_ATTACH = method(
    "terminal.attach",
    TerminalParams,
    TerminalDone,
    scope=Scope.PROFILE,
    right=Right.TERMINAL,
    order=Order.PROFILE,
    errors=(NotFound,),
    doc="Look at a terminal that is open: the last of what it showed follows, and then what it shows.",
)

TERMINAL_INPUT = method(
    "terminal.input",
    TerminalInputParams,
    TerminalDone,
    scope=Scope.PROFILE,
    right=Right.TERMINAL,
    order=Order.PROFILE,
    errors=(NotFound,),
    doc="Type into a terminal; the reply comes when it was taken.",
)

TERMINAL_RESIZE = method(
    "terminal.resize",
    TerminalResizeParams,
    TerminalDone,
    scope=Scope.PROFILE,
    right=Right.TERMINAL,
    order=Order.PROFILE,
    errors=(NotFound,),
    doc="Tell how much room there is for a terminal. Who works in it decides its size, for all who look at it.",
)

TERMINAL_CLOSE = method(
    "terminal.close",
    TerminalParams,
    TerminalDone,
    scope=Scope.PROFILE,
    right=Right.TERMINAL,
    order=Order.NOW,
    errors=(NotFound,),
    doc="End a terminal and all that runs in it; the reply comes when it is gone.",
)

TERMINAL_LIST = method(
    "terminal.list",
    TerminalListParams,
    TerminalList,
    scope=Scope.PROFILE,
    right=Right.TERMINAL,
    order=Order.FREE,
    errors=(),
    doc="The terminals that are open in a profile.",
)
