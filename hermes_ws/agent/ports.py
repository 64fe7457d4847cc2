"""What a turn needs of the rooms above it: someone to tell, hands to act with, someone to ask, something that redacts.

The rooms above implement these; the twins in the tests do too. Nothing here knows of connections, journals or wardens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, final

from hermes_ws.agent.deeds import Background, FoundLines, Listing, Ran, ReadFile, ToolOutcome, Written
from hermes_ws.contract.content import Block, Message, Role, ToolCallBlock, ToolResultBlock, Usage
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.questions import ConnectionParams
from hermes_ws.contract.registry import Question
from hermes_ws.scope.sections import RuleConfig

Level = Literal["info", "warning", "error"]


@final
class NoAnswerer(Exception):
    """Nobody who is connected can answer this kind of question. It was neither answered nor refused."""


@final
class QuestionExpired(Exception):
    """The deadline of a question passed without an answer."""


class Told(Protocol):
    """Something that a person should know: its stable type, a sentence, and what to do."""

    @property
    def type(self) -> str: ...

    @property
    def message(self) -> str: ...

    @property
    def hint(self) -> str: ...


@final
@dataclass(frozen=True, slots=True)
class Consumed:
    """What one step consumed, and how full the model's context is then; 0 is not known."""

    usage: Usage
    context_tokens: int = 0
    context_limit: int = 0


class Narrator(Protocol):
    """What happened. An awaited call returns once it is committed; the others are live, and neither block nor raise."""

    async def message_start(self, role: Role = "assistant") -> str:
        """Begin a message. Returns its id."""
        ...

    def text(self, message_id: str, piece: str) -> None: ...

    def reasoning(self, message_id: str, piece: str) -> None: ...

    async def message_complete(
        self, message_id: str, content: Sequence[Block], *, partial: bool = False, used: Consumed | None = None
    ) -> None:
        """Store the whole message. `partial` when it was cut off; else with what it consumed, in one step."""
        ...

    def tool_generating(self, name: str) -> None:
        """The model is writing a call of this tool."""
        ...

    async def tool_start(self, call: ToolCallBlock) -> None: ...

    def tool_progress(self, call_id: str, piece: str) -> None: ...

    async def tool_complete(self, call: ToolCallBlock, outcome: ToolOutcome) -> None: ...

    async def tool_results(self, blocks: Sequence[ToolResultBlock]) -> None:
        """Store one message of role `tool` with the results of a whole batch, in the order of its calls."""
        ...

    async def usage(self, usage: Usage, *, context_tokens: int = 0, context_limit: int = 0) -> None:
        """What one step consumed, and how full the model's context is by now; 0 is not known."""
        ...

    async def compaction_start(self, reason: str) -> None:
        """The older messages are about to be summarised."""
        ...

    async def compaction_complete(
        self, summary: str, first_kept: str, *, covered: int, tokens_before: int, tokens_after: int
    ) -> None:
        """A summary stands for the messages before `first_kept` from now on, also after a restart."""
        ...

    async def rules_read(self, files: Sequence[str], problems: Sequence[Told]) -> None:
        """Which files with rules of the directory this turn goes by, and what is wrong with others. Committed when they
        are not those of the turn before."""
        ...

    async def status(self, kind: str, text: str) -> None:
        """What the turn is waiting for, while nothing else comes."""
        ...

    async def notice(self, level: Level, type: str, message: str, hint: str = "") -> None: ...


class Hands(Protocol):
    """What a turn may do to the machine, for the bound profile. Everything goes through its policy.

    Output and text come back redacted. Refusals and failures are errors of `contract/errors.py`.
    """

    @property
    def cwd(self) -> Path:
        """The session's directory, absolute and resolved."""
        ...

    @property
    def here(self) -> bool:
        """Whether its paths are on this machine, so that links in them can be followed here."""
        ...

    @property
    def gains_rights(self) -> bool:
        """Whether a command can become another user: not where it is confined."""
        ...

    async def run(
        self,
        command: str,
        *,
        cwd: Path | None,
        deadline_s: float,
        on_output: Callable[[str], None],
        password: str | None = None,
    ) -> Ran:
        """Run a command line to its end or deadline. Cancelling ends the whole process group before this returns.

        `password` is given to each `sudo` in it, on its standard input, and is hidden in the output.
        """
        ...

    async def read(self, path: Path, *, offset: int, limit: int) -> ReadFile:
        """At most `limit` bytes from byte `offset` on. Raises NotFound or PermissionDenied."""
        ...

    async def write(self, path: Path, text: str) -> Written:
        """Replace a file, or make it and its parents. Raises PermissionDenied."""
        ...

    async def edit(self, path: Path, change: Callable[[str], str]) -> Written:
        """Give a text file a new content, made of the present one, which is seen as it is: nothing is redacted.

        `change` may raise, and nothing is changed then. Raises NotFound, PermissionDenied, InvalidParams for no text.
        """
        ...

    async def list_files(
        self, path: Path, *, depth: int, limit: int, hidden: bool = False, pattern: str | None = None
    ) -> Listing:
        """The entries below a directory, sorted, at most `limit`; `pattern` is a shell's, over names or paths.

        Raises NotFound, PermissionDenied.
        """
        ...

    async def search_files(
        self,
        path: Path,
        expression: str,
        *,
        literal: bool = False,
        ignore_case: bool = False,
        pattern: str | None = None,
        limit: int = 200,
    ) -> FoundLines:
        """The lines of a file, or of the files below a directory, in which an expression is found.

        Raises NotFound, PermissionDenied, InvalidParams for an expression that is none.
        """
        ...

    async def start(self, command: str, *, cwd: Path | None) -> Background:
        """Start a command line that goes on in the background, until it ends, is ended, or its session is.

        Raises what `run` does, and LimitReached.
        """
        ...

    def processes(self) -> Sequence[Background]:
        """The background processes of this session, oldest first; those that ended are kept for a while."""
        ...

    async def process_output(self, process_id: str, *, limit: int) -> str:
        """The last `limit` characters that it wrote, redacted. Raises NotFound."""
        ...

    async def process_write(self, process_id: str, text: str) -> None:
        """Write to its input. Raises NotFound when there is none of that id, or it has ended."""
        ...

    async def process_kill(self, process_id: str) -> Background:
        """End it and everything that it started, and wait for that. Raises NotFound."""
        ...

    async def open_pipe(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Pipe:
        """Start a program that goes on, with pipes to it; whoever opens it ends it. `env` is added to the usual one.

        For programs that the profile's settings name, not for what a model wants. Raises what `run` does.
        """
        ...


class ModelMachine(Protocol):
    """What a model needs of the machine, for the bound profile."""

    async def mint(self, provider: str, command: Sequence[str], env: Mapping[str, str]) -> str:
        """The key that a command prints, run confined. Raises ModelUnauthorised."""
        ...

    async def local(self, model: str) -> tuple[str, str]:
        """Start a model of this machine, if it does not run: its base URL, and the key that it wants.

        Raises ModelFailed where it is not installed, or does not start.
        """
        ...


class Pipe(Protocol):
    """A program that goes on, with pipes to it. Nothing is redacted: this is for protocols, not for people."""

    async def receive(self) -> bytes:
        """The next piece of its output; nothing when it has ended and all of it was read."""
        ...

    async def receive_problems(self) -> bytes:
        """The next piece of its standard error; nothing at the end."""
        ...

    async def send(self, data: bytes) -> None:
        """Write to its input. Raises NotFound when it has ended."""
        ...

    async def close_input(self) -> None:
        """Let its input come to an end."""
        ...

    async def aclose(self) -> None:
        """End it and everything that it started, whatever happens to the caller."""
        ...


class Steering(Protocol):
    """What the user says while the turn runs."""

    async def take(self) -> Sequence[Message]:
        """What was said since the last step: messages of the user, committed, to be put at the end of the history."""
        ...

    async def finish(self) -> Sequence[Message]:
        """To be called when the turn would end: what was said until now, as `take`. With nothing to take, whoever
        speaks from here on is told that it was too late."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Login:
    """A person's login to a site, for a command's environment and for nobody's eyes."""

    username: str = field(repr=False)
    password: str = field(repr=False)
    code: str | None = field(default=None, repr=False)


class Asker(Protocol):
    """Who can ask a person."""

    async def ask(self, question: Question, params: Result, *, deadline_s: float | None = None) -> Params:
        """The validated answer, an instance of `question.result`. Cancelling withdraws the question.

        Raises NoAnswerer at once when nobody can answer this kind, QuestionExpired when the deadline passes.
        """
        ...

    async def login(self, origin: str, site: str, *, code: bool) -> Login:
        """The login of a site from the profile's vault, with a one-time code if one is wanted; the person is asked for
        what is missing. Raises PermissionDenied when they would not say, NoAnswerer, QuestionExpired.
        """
        ...

    async def post(self, params: ConnectionParams) -> str:
        """Ask for a connection, and wait for nothing; the id of the question. Raises NoAnswerer."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Said:
    """A message of an earlier session that has the words that were looked for. `at` counts seconds since 1970."""

    session_id: str
    title: str
    role: str
    at: float
    snippet: str


class Library(Protocol):
    """What the profile knows."""

    async def skills(self) -> Sequence[tuple[str, str]]:
        """The names of its skills, each with a sentence on when to use it."""
        ...

    async def skill(self, name: str, file: str | None) -> str:
        """A skill's text, or that of a file beside it. Raises NotFound, ProfileUnusable."""
        ...

    async def search(self, query: str, limit: int) -> Sequence[Said]:
        """Messages of the profile's sessions that have all these words, the best matches first."""
        ...


class RuleBook(Protocol):
    """The rules of the profile, as far as a person may add to them by an answer."""

    async def add(self, rules: Sequence[RuleConfig], before: RuleConfig | None) -> None:
        """Write rules into the profile's configuration: before this one, else at the end. Comments stay as they are.

        Raises ProfileUnusable, InvalidParams, StorageUnavailable; then nothing was written.
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
