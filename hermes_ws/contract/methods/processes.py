"""Background processes: what runs for a profile's sessions while nobody waits for it."""

from __future__ import annotations

from pydantic import Field

from hermes_ws.contract.errors import HermesError, LimitReached, NotFound, SessionUnknown
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method

INPUT_CHARACTERS = 65_536
"""What is written to a process at once, as for a terminal."""


class ProcessRow(Result):
    """A command in the background. `characters` counts what it wrote so far; times are seconds since 1970."""

    process_id: str
    session_id: str
    thread_id: str
    command: str
    started_at: float
    running: bool
    exit_code: int | None = None
    signal: int | None = None
    characters: int = 0


class ProcessListParams(Params):
    """Of one session, or of the whole profile."""

    session_id: Identifier | None = None
    profile: Identifier | None = None

    def located_by(self) -> str | None:
        return self.session_id


class ProcessList(Result):
    """Oldest first; those that ended are kept for a while."""

    processes: list[ProcessRow]


class ProcessParams(Params):
    """One process."""

    process_id: Identifier
    profile: Identifier | None = None

    def located_by(self) -> str:
        return self.process_id

    def unknown(self) -> HermesError:
        return NotFound(f"There is no background process {self.process_id}.")


class ProcessOutputParams(ProcessParams):
    """What it wrote last, at most so many characters."""

    limit: int = Field(default=65_536, ge=1, le=262_144)


class ProcessFollowParams(ProcessParams):
    """Whether it is followed from now on, or no longer."""

    follow: bool = True


class ProcessFollowed(Result):
    """Whether it is followed now."""

    process_id: str
    following: bool


class ProcessOutput(Result):
    """The end of what a process wrote, redacted. `offset` counts the characters before `text`."""

    process_id: str
    offset: int
    text: str
    running: bool


class ProcessInputParams(ProcessParams):
    """What it reads from its standard input; a line ends with a newline."""

    text: str = Field(min_length=1, max_length=INPUT_CHARACTERS)


class ProcessWritten(Result):
    """It was taken."""

    process_id: str


class ProcessKilled(Result):
    """How it ended."""

    process_id: str
    exit_code: int | None = None
    signal: int | None = None


PROCESS_LIST = method(
    "process.list",
    ProcessListParams,
    ProcessList,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(SessionUnknown,),
    doc="The background processes of a session or of the profile.",
)

PROCESS_OUTPUT = method(
    "process.output",
    ProcessOutputParams,
    ProcessOutput,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(NotFound,),
    doc="The end of what a background process wrote.",
)

PROCESS_FOLLOW = method(
    "process.follow",
    ProcessFollowParams,
    ProcessFollowed,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.PROFILE,
    errors=(NotFound,),
    doc="Have what a background process writes sent as it comes, as `process.output`: the last of what it wrote first, "
    "and `process.ended` at the end.",
)

PROCESS_INPUT = method(
    "process.input",
    ProcessInputParams,
    ProcessWritten,
    scope=Scope.PROFILE,
    right=Right.TERMINAL,
    order=Order.PROFILE,
    errors=(NotFound, LimitReached),
    doc="Write to the standard input of a background process; the reply comes when it was taken.",
)

PROCESS_KILL = method(
    "process.kill",
    ProcessParams,
    ProcessKilled,
    scope=Scope.PROFILE,
    right=Right.CONTROL,
    order=Order.FREE,
    errors=(NotFound,),
    doc="End a background process and all that it started; the reply comes when they are gone.",
)
