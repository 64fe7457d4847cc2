"""Looking at sessions: the newest, those that are open, one with all that belongs to it, and taking one along."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from hermes_ws.contract.errors import SessionUnknown, StorageUnavailable, ThreadUnknown
from hermes_ws.contract.methods.sessions import SessionRow
from hermes_ws.contract.model import Identifier, Params, Result
from hermes_ws.contract.registry import Order, Right, Scope, method

EXPORT_INLINE_BYTES = 256 * 1024
"""Of an export that comes in the answer itself; a quarter of a frame, so that escaping it leaves room."""


class OfSession(Params):
    """One session."""

    session_id: Identifier
    profile: Identifier | None = None

    def located_by(self) -> str:
        return self.session_id


class MostRecentParams(Params):
    """Of a profile; of one source, when it is named."""

    profile: Identifier | None = None
    source: str | None = Field(default=None, max_length=64)


class MostRecent(Result):
    """The session that was used last; null when there is none."""

    session: SessionRow | None


class ActiveListParams(Params):
    """Of one profile."""

    profile: Identifier | None = None


class ActiveRow(Result):
    """A session that is in memory: whether it works, who looks, and what its threads do."""

    session_id: str
    title: str | None
    source: str
    busy: bool
    watched: bool
    threads: list[str]
    updated_at: float


class ActiveList(Result):
    """Sessions that are open now, the one that was used last first."""

    profile: str
    sessions: list[ActiveRow]


class ThreadNode(Result):
    """A thread of a session, and what it came from. `kind` is `main`, `side`, `fork` or `subagent`."""

    thread_id: str
    kind: str
    title: str | None
    parent: str | None
    generation: int
    execution_generation: int
    created_at: float
    state: Literal["idle", "running", "waiting", "lost"]


class Graph(Result):
    """All threads; and those of them that are forks or subagents, by their ids."""

    session_id: str
    threads: list[ThreadNode]
    forks: list[ThreadNode]
    subagents: list[ThreadNode]


class SessionDescription(Result):
    """A session as it is stored, and as it is now. `launch` is what it was made with, without secrets.

    `rules` are the files with rules of its directory that its last turn went by, as seen from there; none before its
    first turn since it was opened.
    """

    session_id: str
    profile: str
    title: str | None
    agent: str
    cwd: str
    source: str
    archived: bool
    pinned: bool
    revision: int
    created_at: float
    updated_at: float
    launch: dict[str, JsonValue]
    info: dict[str, JsonValue]
    rules: list[str]
    threads: list[ThreadNode]


class SessionUsage(Result):
    """What all executions of a session consumed, those of its forks and subagents among them."""

    session_id: str
    executions: int
    outcomes: dict[str, int]
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    total_tokens: int
    cost_usd: float | None
    duration_ms: int
    by_model: dict[str, int]


class ExportParams(OfSession):
    """As a text to read, or as data to keep. All threads, unless one is named."""

    format: Literal["markdown", "json"] = "markdown"
    thread_id: Identifier | None = None


class Exported(Result):
    """The text, or the name of the content that holds it (`blob.get`), when it is long. UTF-8."""

    session_id: str
    format: Literal["markdown", "json"]
    filename: str
    size: int
    text: str | None = None
    blob: str | None = None


SESSION_MOST_RECENT = method(
    "session.most_recent",
    MostRecentParams,
    MostRecent,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(StorageUnavailable,),
    doc="The session of a profile that was used last.",
)

SESSION_ACTIVE_LIST = method(
    "session.active_list",
    ActiveListParams,
    ActiveList,
    scope=Scope.PROFILE,
    right=Right.OBSERVE,
    order=Order.FREE,
    doc="The sessions of a profile that are open now.",
)

SESSION_GRAPH = method(
    "session.graph",
    OfSession,
    Graph,
    scope=Scope.SESSION,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(SessionUnknown,),
    doc="The threads of a session and how they came from each other.",
)

SESSION_INFO = method(
    "session.info",
    OfSession,
    SessionDescription,
    scope=Scope.SESSION,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(SessionUnknown,),
    doc="One session: what it is, what it was made with, and its threads.",
)

SESSION_USAGE = method(
    "session.usage",
    OfSession,
    SessionUsage,
    scope=Scope.SESSION,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(SessionUnknown,),
    doc="What a session has consumed.",
)

SESSION_EXPORT = method(
    "session.export",
    ExportParams,
    Exported,
    scope=Scope.SESSION,
    right=Right.OBSERVE,
    order=Order.FREE,
    errors=(SessionUnknown, ThreadUnknown, StorageUnavailable),
    doc="A session as Markdown to read or as JSON to keep; `session.mutate import` takes the messages of the latter.",
)
