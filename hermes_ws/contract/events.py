"""Every event that a client may receive, and the envelope that it comes in.

Committed events are numbered and durable before anyone sees them. Live ones (`live=True`) have neither `cursor` nor
`seq`; what they carry comes again, whole, in the committed event that ends their message or call.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from pydantic import JsonValue, SerializerFunctionWrapHandler, model_serializer

from hermes_ws.contract.content import Block, ImageBlock, Role, Usage
from hermes_ws.contract.model import Result
from hermes_ws.contract.news_events import SkinChanged, StatusUpdate, ToolGenerating
from hermes_ws.contract.questions import OperationTarget
from hermes_ws.contract.registry import Event, event
from hermes_ws.contract.running_events import (
    ProcessEnded,
    ProcessExited,
    ProcessWrote,
    TerminalExited,
    TerminalOutput,
    TerminalResized,
)
from hermes_ws.contract.subagent_events import SubagentComplete, SubagentProgress, SubagentStart

Outcome = Literal["completed", "failed", "interrupted", "cancelled", "rejected"]


class Envelope(Result):
    """`params` of every `event` notification. Null fields are left out on the wire."""

    type: str
    profile: str | None = None
    session_id: str | None = None
    thread_id: str | None = None
    cursor: str | None = None
    seq: int | None = None
    execution_generation: int | None = None
    admission_id: str | None = None
    ts: float
    payload: dict[str, JsonValue]

    @model_serializer(mode="wrap")
    def _without_nulls(self, inner: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        return {key: value for key, value in inner(self).items() if value is not None}


class Protocol(Result):
    """A version of the protocol. Another major does not speak with this one."""

    major: int
    minor: int


class ServerInfo(Result):
    """Who answers."""

    name: str
    version: str


class Limits(Result):
    """What a client must know beforehand to stay within bounds."""

    frame_bytes: int
    in_flight: int
    waiting: int
    waiting_bytes: int


class Ready(Result):
    """The first frame of every connection. `rights` are those that the connection has, so that a client can leave out
    what would be refused."""

    protocol: Protocol
    server: ServerInfo
    instance_id: str
    profiles: list[str]
    rights: list[str] = []
    capabilities: list[str]
    limits: Limits
    contract_digest: str
    skin: dict[str, JsonValue]
    heartbeat: bool


class DrainingNotice(Result):
    """The server goes down at `deadline` (seconds since 1970); what is accepted is kept."""

    deadline: float


class ProfilesChanged(Result):
    """The list of served profiles changed; ask again."""


class SessionsChanged(Result):
    """The list of the profile's sessions changed; ask again. A connection that has asked for nothing since it was told
    so is not told again."""

    session_id: str | None = None


class SessionInfo(Result):
    """Title, revision or options of the session changed."""

    revision: int
    info: dict[str, JsonValue]


class SessionClosed(Result):
    """The session was put away, or is gone. Nothing more of it follows on this subscription."""

    reason: Literal["closed", "deleted"]


class ExecutionQueued(Result):
    """An input was admitted and waits for its turn."""

    admission_id: str
    input_id: str
    text: str


class ExecutionStarted(Result):
    """The input at the head of the queue was claimed."""

    admission_id: str
    execution_generation: int


class ExecutionError(Result):
    """Why an execution failed: the stable type, a sentence, and what to do."""

    type: str
    message: str
    hint: str = ""


class ExecutionFinished(Result):
    """The one end of an execution."""

    outcome: Outcome
    error: ExecutionError | None = None
    usage: Usage


class ExecutionLost(Result):
    """The server ended while this execution ran. Where it stood at a safe point it `resumes`: the same input goes on
    under the next execution generation. Else what it did last is not known, and nothing is repeated on a guess."""

    admission_id: str
    execution_generation: int
    resumes: bool = False


class MessageStart(Result):
    """A message begins; its pieces follow as live events."""

    message_id: str
    role: Role


class TextDelta(Result):
    """The text after what this subscriber already has. `offset` counts code points; append, and use it as a check."""

    message_id: str
    offset: int
    text: str


class MessageComplete(Result):
    """A whole message. `partial` when it was cut off by an interrupt or a failure."""

    message_id: str
    role: Role
    text: str
    content: list[Block] = []
    partial: bool = False


class ReasoningComplete(Result):
    """What the model thought before the message."""

    message_id: str
    text: str


class ToolStart(Result):
    """A tool call begins, after it was allowed."""

    call_id: str
    name: str
    arguments: dict[str, JsonValue]


class ToolProgress(Result):
    """Output of a running tool, after what this subscriber already has."""

    call_id: str
    offset: int
    text: str


class ToolComplete(Result):
    """What a tool gave. `blob` has all of it where the event has a part; `images` are pictures that came with it.
    `diff` is what changed in a file that was there before, as a unified difference without its end where that is long;
    empty where it cannot be said."""

    call_id: str
    name: str
    output: str
    is_error: bool
    duration_ms: int
    truncated: bool = False
    blob: str | None = None
    images: list[ImageBlock] = []
    diff: str | None = None


class RequestOpened(Result):
    """A question waits for an answer."""

    id: str
    kind: str
    execution_generation: int
    params: dict[str, JsonValue]
    asked_at: float
    deadline: float | None = None


class RequestSettled(Result):
    """A question got its one outcome."""

    id: str
    kind: str
    state: Literal["settled", "expired", "withdrawn", "abandoned"]
    result: dict[str, JsonValue] | None = None


class RequestCancel(Result):
    """A question that was sent to this connection needs no answer any more."""

    id: str
    reason: Literal["resolved", "expired", "interrupted", "abandoned"]


class ConnectionRequest(Result):
    """The agent would like to use something that is not connected; the question of this id asks for it. At
    `deadline_at`, seconds since 1970, and `timeout_seconds` from now it expires."""

    op_id: str
    seq: int
    deadline_at: float
    timeout_seconds: float
    targets: list[OperationTarget]


class ConnectionUpdate(Result):
    """How a connection stands that was asked for. The committed event that says the same is `request.settled`."""

    op_id: str
    seq: int
    settled: bool
    settled_by: Literal["settled", "expired", "withdrawn", "abandoned"] | None = None
    settled_at: float | None = None
    deadline_at: float | None = None
    targets: list[OperationTarget]


class UsageUpdate(Result):
    """What one step of an execution consumed. `context_tokens` of `context_limit` is how full the model's context is;
    both are about right, since only the provider counts, and null where nothing is known."""

    usage: Usage
    context_tokens: int | None = None
    context_limit: int | None = None


class CompactionStart(Result):
    """The older messages of the thread are about to be summarised: `context` is full, a `request`, or a `fork`."""

    reason: str


class CompactionComplete(Result):
    """From now on a summary stands for the first `covered` messages when a model reads the thread.

    `soft`: the journal is untouched, and the model sees the summary and the messages from `first_kept` on. `hard`: the
    journal holds nothing else any more, in a new generation. Tokens are estimates.
    """

    mode: Literal["soft", "hard"]
    summary: str
    first_kept: str | None
    covered: int
    tokens_before: int
    tokens_after: int


class ThreadForked(Result):
    """The beginning of a fork: which thread's history it took over, up to a message or all of it."""

    source_thread_id: str
    thread_id: str
    from_message_id: str | None


class Notice(Result):
    """A sentence for the person, with what caused it."""

    level: Literal["info", "warning", "error"]
    type: str
    message: str
    hint: str = ""


class Rebased(Result):
    """The journal was replaced: drop all that was derived from the old generation."""

    generation: int


CATALOG: tuple[Event, ...] = (
    event("gateway.ready", Ready, doc="The first frame of every connection."),
    event("gateway.draining", DrainingNotice, doc="The server is shutting down."),
    event("profiles.changed", ProfilesChanged, doc="The list of served profiles changed."),
    event("sessions.changed", SessionsChanged, doc="The list of a profile's sessions changed."),
    event("skin.changed", SkinChanged, doc="A profile has another skin."),
    event("session.info", SessionInfo, doc="Something about the session itself changed."),
    event("session.closed", SessionClosed, doc="The session was put away or deleted; the subscription ends with it."),
    event("thread.rebased", Rebased, doc="The journal of the thread was replaced."),
    event("execution.queued", ExecutionQueued, doc="An input was admitted."),
    event("execution.started", ExecutionStarted, doc="An input was claimed and runs."),
    event("execution.finished", ExecutionFinished, doc="An execution ended, in one of five ways."),
    event("execution.lost", ExecutionLost, doc="An execution was running when the server ended."),
    event("message.start", MessageStart, doc="A message begins."),
    event("message.delta", TextDelta, live=True, doc="A piece of a message's text."),
    event("message.complete", MessageComplete, doc="A whole message."),
    event("reasoning.delta", TextDelta, live=True, doc="A piece of reasoning."),
    event("reasoning.complete", ReasoningComplete, doc="The whole reasoning."),
    event("tool.generating", ToolGenerating, live=True, doc="The model is writing a tool call."),
    event("tool.start", ToolStart, doc="A tool call begins."),
    event("tool.progress", ToolProgress, live=True, doc="Output of a running tool."),
    event("tool.complete", ToolComplete, doc="A tool call ended."),
    event("request.opened", RequestOpened, doc="A question waits for an answer."),
    event("request.settled", RequestSettled, doc="A question got its outcome."),
    event(
        "request.cancel",
        RequestCancel,
        doc="A question that this connection was sent needs no answer any more.",
    ),
    event("thread.forked", ThreadForked, doc="The first event of a fork."),
    event("subagent.start", SubagentStart, doc="A subagent begins."),
    event("subagent.progress", SubagentProgress, live=True, doc="What a subagent is doing."),
    event("subagent.complete", SubagentComplete, doc="A subagent's task came to its end."),
    event("compaction.start", CompactionStart, doc="The older messages are about to be summarised."),
    event("compaction.complete", CompactionComplete, doc="A summary stands for the older messages."),
    event("connection.request", ConnectionRequest, doc="The agent would like to use what is not connected."),
    event("connection.update", ConnectionUpdate, live=True, doc="It was decided about a connection."),
    event("usage.update", UsageUpdate, doc="What one step consumed."),
    event("process.exited", ProcessExited, doc="A background process that the thread started has ended."),
    event("process.output", ProcessWrote, live=True, doc="What a background process writes."),
    event("process.ended", ProcessEnded, live=True, doc="A background process that is followed has ended."),
    event("terminal.output", TerminalOutput, live=True, doc="What a terminal shows."),
    event("terminal.resized", TerminalResized, live=True, doc="A terminal has another size."),
    event("terminal.exited", TerminalExited, live=True, doc="A terminal came to its end."),
    event("status.update", StatusUpdate, doc="What an execution is waiting for."),
    event("notice", Notice, doc="A sentence for the person."),
)

EVENTS: Mapping[str, Event] = MappingProxyType({each.type: each for each in CATALOG})
