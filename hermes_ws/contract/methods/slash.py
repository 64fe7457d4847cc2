"""What can be typed behind a slash: which commands there are, carrying one out, completing what was typed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hermes_ws.contract.errors import InvalidParams, NotFound, SessionUnknown
from hermes_ws.contract.methods.agents import OfProfile
from hermes_ws.contract.methods.session_views import OfSession
from hermes_ws.contract.model import Identifier, Result
from hermes_ws.contract.registry import Needs, Order, Right, Scope, method

COMMAND_CHARACTERS = 100_000
"""Of one command with what follows it."""

COMPLETIONS = 30
"""Items of one completion: what fits below a line of input."""

DirectiveType = Literal["exec", "alias", "send", "skill", "prefill"]


class CommandRow(Result):
    """One command, with its slash. `kind` tells where it comes from; `usage` is what may follow it."""

    name: str
    description: str
    kind: Literal["built-in", "quick", "skill"]
    usage: str = ""


class Catalog(Result):
    """All commands: the built-in ones, the profile's quick commands, and its skills. `pairs` is for older clients."""

    commands: list[CommandRow]
    pairs: list[tuple[str, str]]
    skill_count: int


class DispatchParams(OfProfile):
    """A command by its name, without the slash, and what followed it."""

    name: Identifier
    arg: str = Field(default="", max_length=COMMAND_CHARACTERS)
    session_id: Identifier | None = None

    def located_by(self) -> str | None:
        return self.session_id


class Directive(Result):
    """What the client is to do: show `output` (`exec`), go on with `target` (`alias`), submit `message` (`send`,
    `skill`; `display` is what to show instead of it), or put `message` into the input line (`prefill`)."""

    type: DirectiveType
    output: str = ""
    target: str = ""
    message: str = ""
    display: str = ""
    name: str = ""
    notice: str = ""


class SlashParams(OfSession):
    """A whole line, with or without its slash."""

    command: Annotated[str, Needs(Right.CONTROL, "a command that edits the session")] = Field(
        min_length=1, max_length=COMMAND_CHARACTERS
    )


class CompleteSlashParams(OfProfile):
    """What was typed so far, with its slash."""

    text: str = Field(default="/", max_length=2000)


class CompletePathParams(OfSession):
    """The beginning of a path, as typed; relative ones are meant from the session's directory."""

    word: str = Field(default="", max_length=4096)


class CompletionItem(Result):
    """`text` takes the place of what was typed from `replace_from` on; `meta` explains it."""

    text: str
    display: str
    meta: str = ""
    kind: Literal["command", "file", "directory"]


class Completions(Result):
    """Ranked, the best first."""

    items: list[CompletionItem]
    replace_from: int = 0


COMMANDS_CATALOG = method(
    "commands.catalog",
    OfProfile,
    Catalog,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    doc="The commands that can be typed behind a slash.",
)

COMMAND_DISPATCH = method(
    "command.dispatch",
    DispatchParams,
    Directive,
    scope=Scope.PROFILE,
    right=Right.SUBMIT,
    order=Order.FREE,
    errors=(NotFound, InvalidParams),
    doc="What a client is to do for a command.",
)

SLASH_EXEC = method(
    "slash.exec",
    SlashParams,
    Directive,
    scope=Scope.SESSION,
    right=Right.SUBMIT,
    order=Order.SESSION,
    errors=(SessionUnknown, NotFound, InvalidParams),
    doc="Carry out a command in the session; what no command of the server does comes back as a directive.",
)

COMPLETE_SLASH = method(
    "complete.slash",
    CompleteSlashParams,
    Completions,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    doc="Commands that begin with what was typed, or are like it.",
)

COMPLETE_PATH = method(
    "complete.path",
    CompletePathParams,
    Completions,
    scope=Scope.SESSION,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(SessionUnknown,),
    doc="Paths that begin with what was typed, as the session's commands would see them.",
)
