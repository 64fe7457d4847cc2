"""What an execution tells, turned into committed events, stored messages and live text.

Each awaited call returns when what it told is durable and stands in the thread's tail. Text is live until its message
is complete: the piece that ends it and the event that commits it become visible in one step, so that no subscriber
sees a delta after the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, final

from pydantic import JsonValue

from hermes_ws.agent.deeds import ToolOutcome
from hermes_ws.agent.ports import Consumed, Told
from hermes_ws.agent.reply import pace_of
from hermes_ws.agent.rules import RulesMemory
from hermes_ws.contract.content import (
    Block,
    Message,
    ReasoningBlock,
    Role,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    Usage,
)
from hermes_ws.contract.events import (
    CompactionComplete,
    CompactionStart,
    MessageComplete,
    MessageStart,
    Notice,
    ReasoningComplete,
    SessionInfo,
    ToolComplete,
    ToolStart,
    UsageUpdate,
)
from hermes_ws.contract.model import Result
from hermes_ws.contract.news_events import StatusUpdate, ToolGenerating
from hermes_ws.journal import messages, recovery, sessions, summaries
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.blobs import Blob, excerpt
from hermes_ws.journal.database import Database, Transaction
from hermes_ws.journal.live import LiveKind
from hermes_ws.journal.summaries import Summary
from hermes_ws.journal.tail import ThreadTail
from hermes_ws.scope.current import bound
from hermes_ws.session.info import session_info


@final
@dataclass(slots=True)
class KnownRules:
    """Which files with rules of the directory a session's last turn went by, and what was told to be wrong with others
    and with its tool servers.

    Owned by the open session, so that the same is not told with every turn.
    """

    files: tuple[str, ...] = ()
    problems: tuple[tuple[str, str, str], ...] = ()
    memory: RulesMemory = field(default_factory=RulesMemory)
    servers: dict[str, str] = field(default_factory=dict[str, str])
    """What was told to be wrong with tool servers, by their names."""


def add_usage(first: Usage, second: Usage) -> Usage:
    """Both together. The first token is the first of the two; a cost is known only when all of it is."""
    cost = None
    if first.cost_usd is not None and second.cost_usd is not None:
        cost = first.cost_usd + second.cost_usd
    return Usage(
        input_tokens=first.input_tokens + second.input_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        cached_tokens=first.cached_tokens + second.cached_tokens,
        cost_usd=cost,
        model=second.model or first.model,
        duration_ms=first.duration_ms + second.duration_ms,
        tokens_per_second=pace_of(first, second),
        time_to_first_token_ms=(
            first.time_to_first_token_ms if first.time_to_first_token_ms is not None else second.time_to_first_token_ms
        ),
    )


@final
class Narration:
    """The `Narrator` of one execution. Owned by it; `total` is what it consumed so far, whatever becomes of it."""

    def __init__(
        self,
        journal: Database,
        key: ThreadKey,
        tail: ThreadTail,
        *,
        execution_generation: int,
        admission_id: str,
        rules: KnownRules | None = None,
    ) -> None:
        self._rules = rules if rules is not None else KnownRules()
        self._journal = journal
        self._key = key
        self._tail = tail
        self._generation = execution_generation
        self._admission_id = admission_id
        self._total: Usage | None = None
        self._live: set[tuple[LiveKind, str]] = set()
        """The live texts that this execution has begun and not ended."""

    @property
    def total(self) -> Usage:
        """The sum of all steps that were reported."""
        return self._total if self._total is not None else Usage()

    async def message_start(self, role: Role = "assistant") -> str:
        """Begin a message; its text is live from now on."""
        message_id = messages.new_id()

        def work(tx: Transaction) -> None:
            self._append(tx, "message.start", MessageStart(message_id=message_id, role=role))
            tx.after_commit(lambda: self._begin("message.delta", message_id))

        await self._journal.transact(work)
        return message_id

    def text(self, message_id: str, piece: str) -> None:
        """More of the text of the message in progress."""
        self._tail.live_append("message.delta", message_id, piece)

    def reasoning(self, message_id: str, piece: str) -> None:
        """More of what the model thinks before it speaks."""
        if ("reasoning.delta", message_id) not in self._live:
            self._begin("reasoning.delta", message_id)
        self._tail.live_append("reasoning.delta", message_id, piece)

    async def message_complete(
        self, message_id: str, content: Sequence[Block], *, partial: bool = False, used: Consumed | None = None
    ) -> None:
        """Commit the whole message, which takes the place of its live text, and what it consumed."""
        text = "".join(block.text for block in content if isinstance(block, TextBlock))
        thought = "".join(block.text for block in content if isinstance(block, ReasoningBlock))
        message = Message(message_id=message_id, role="assistant", text=text, content=list(content))

        def work(tx: Transaction) -> None:
            if thought:
                self._append(tx, "reasoning.complete", ReasoningComplete(message_id=message_id, text=thought))
            complete = MessageComplete(
                message_id=message_id, role=message.role, text=text, content=message.content, partial=partial
            )
            self._append(tx, "message.complete", complete)
            messages.add(tx, self._key, message)
            tx.after_commit(lambda: self._end_message(message_id))
            if used is not None:
                self._append(tx, "usage.update", _told(used))

        if used is not None:
            self._add(used.usage)
        await self._journal.transact(work)

    def tool_generating(self, name: str) -> None:
        """The model is writing a call of this tool. It is told to those who look now, until the message is complete."""
        self._tail.tell(
            "tool.generating",
            ToolGenerating(name=name),
            execution_generation=self._generation,
            admission_id=self._admission_id,
            until_next=True,
        )

    async def tool_start(self, call: ToolCallBlock) -> None:
        """A call was allowed and begins."""

        def work(tx: Transaction) -> None:
            started = ToolStart(call_id=call.call_id, name=call.name, arguments=call.arguments)
            self._append(tx, "tool.start", started)
            tx.after_commit(lambda: self._begin("tool.progress", call.call_id))

        await self._journal.transact(work)

    def tool_progress(self, call_id: str, piece: str) -> None:
        """More output of a running call."""
        self._tail.live_append("tool.progress", call_id, piece)

    async def tool_complete(self, call: ToolCallBlock, outcome: ToolOutcome) -> None:
        """A call ended, well or not. What it gave beyond what the event may carry is stored as a blob before it."""
        blobs = self._journal.blobs
        whole = outcome.output if outcome.whole is None else outcome.whole
        output = excerpt(outcome.output)
        blob: Blob | None = None
        if len(output) < len(outcome.output) or whole != outcome.output:
            blob = await blobs.put(whole.encode(errors="replace"))
        pictures = [await blobs.put(picture.data) for picture in outcome.pictures]

        def work(tx: Transaction) -> None:
            for used in (*pictures, *(() if blob is None else (blob,))):
                blobs.use(tx, used, self._key)
            complete = ToolComplete(
                call_id=call.call_id,
                name=call.name,
                output=output,
                is_error=outcome.is_error,
                duration_ms=outcome.duration_ms,
                truncated=outcome.truncated or output is not outcome.output,
                blob=blob.hash if blob is not None else None,
                images=[picture.block() for picture in outcome.pictures],
                diff=outcome.diff,
            )
            self._append(tx, "tool.complete", complete)
            tx.after_commit(lambda: self._end("tool.progress", call.call_id))

        await self._journal.transact(work)

    async def tool_results(self, blocks: Sequence[ToolResultBlock]) -> None:
        """What the model will read of a batch of calls: one message, or as many as events can carry."""

        def work(tx: Transaction) -> None:
            for message in messages.fitting(blocks):
                recovery.tell(tx, self._key, message, self._generation, self._admission_id)

        await self._journal.transact(work)

    async def usage(self, usage: Usage, *, context_tokens: int = 0, context_limit: int = 0) -> None:
        """What one step consumed, and how full the model's context is; 0 is not known."""
        self._add(usage)
        await self._tell("usage.update", _told(Consumed(usage, context_tokens, context_limit)))

    def _add(self, usage: Usage) -> None:
        self._total = usage if self._total is None else add_usage(self._total, usage)

    async def compaction_start(self, reason: str) -> None:
        """The older messages are about to be summarised."""
        await self._tell("compaction.start", CompactionStart(reason=reason))

    async def compaction_complete(
        self, summary: str, first_kept: str, *, covered: int, tokens_before: int, tokens_after: int
    ) -> None:
        """A summary stands for the messages before `first_kept` from now on; what they consumed is kept as a step."""
        done = CompactionComplete(
            mode="soft",
            summary=summary,
            first_kept=first_kept,
            covered=covered,
            tokens_before=tokens_before,
            tokens_after=tokens_after,
        )

        def work(tx: Transaction) -> None:
            summaries.put(tx, self._key, Summary(summary, first_kept))
            self._append(tx, "compaction.complete", done)

        await self._journal.transact(work)

    async def rules_read(self, files: Sequence[str], problems: Sequence[Told]) -> None:
        """Tell which files with rules this turn goes by, and what is wrong with others, unless it was told before."""
        seen = (tuple(files), tuple((each.type, each.message, each.hint) for each in problems))
        if seen == (self._rules.files, self._rules.problems):
            return
        changed = seen[0] != self._rules.files
        self._rules.files, self._rules.problems = seen
        scope = bound().scope

        def work(tx: Transaction) -> None:
            record = sessions.get(tx.connection, self._key.session_id)
            if changed and record is not None:
                info: dict[str, JsonValue] = {**session_info(record, scope), "rules": [*seen[0]]}
                self._append(tx, "session.info", SessionInfo(revision=record.revision, info=info))
            for type, message, hint in seen[1]:
                self._append(tx, "notice", Notice(level="warning", type=type, message=message, hint=hint))

        await self._journal.transact(work)

    async def status(self, kind: str, text: str) -> None:
        """What the turn is waiting for."""
        await self._tell("status.update", StatusUpdate(kind=kind, text=text))

    async def notice(self, level: Literal["info", "warning", "error"], type: str, message: str, hint: str = "") -> None:
        """A sentence for the person."""
        await self._tell("notice", Notice(level=level, type=type, message=message, hint=hint))

    def end_live(self) -> None:
        """Drop what is still live of this execution. Called when it has settled, whatever it left open."""
        for kind, id in tuple(self._live):
            self._end(kind, id)

    async def _tell(self, type: str, payload: Result) -> None:
        await self._journal.transact(lambda tx: self._append(tx, type, payload))

    def _append(self, tx: Transaction, type: str, payload: Result) -> None:
        tx.append(self._key, type, payload, execution_generation=self._generation, admission_id=self._admission_id)

    def _begin(self, kind: LiveKind, id: str) -> None:
        self._live.add((kind, id))
        self._tail.live_begin(kind, id, execution_generation=self._generation, admission_id=self._admission_id)

    def _end(self, kind: LiveKind, id: str) -> None:
        if (kind, id) in self._live:
            self._live.discard((kind, id))
            self._tail.live_end(kind, id)

    def _end_message(self, message_id: str) -> None:
        self._end("message.delta", message_id)
        self._end("reasoning.delta", message_id)


def _told(used: Consumed) -> UsageUpdate:
    return UsageUpdate(
        usage=used.usage, context_tokens=used.context_tokens or None, context_limit=used.context_limit or None
    )
