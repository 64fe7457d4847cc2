"""Subagents: threads of a session that another thread's agent has started, and waits for.

A subagent is a thread like any other: it has a journal, a queue and executions of its own, can be read, talked to,
steered and interrupted, and stays when its task has ended. What is special is its origin (`journal/lineage.py`) and
that its first input comes from the parent. Who may do what to one is looked up when it is asked for, in the session
that the request names, and nowhere remembered (cases OWNER-01, OWNER-02).
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast, final

import trio
from pydantic import JsonValue

from hermes_ws.agent import definition
from hermes_ws.agent.definition import AgentDefinition
from hermes_ws.agent.support import Delegated, Task
from hermes_ws.contract.content import Usage
from hermes_ws.contract.errors import LimitReached, NotFound
from hermes_ws.contract.subagent_events import SubagentComplete, SubagentStart
from hermes_ws.journal import admissions, lineage, messages
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.admissions import AdmissionRecord, NewAdmission
from hermes_ws.journal.database import Transaction
from hermes_ws.journal.lineage import Lineage
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.ports import Sibling
from hermes_ws.session.questions import Asking
from hermes_ws.session.subagent_progress import Progress
from hermes_ws.session.workplace import Workplace

ENDING_S: Final = 8.0
"""Seconds that interrupted subagents have to end: a command has 6 of them, and the commits take milliseconds."""

RESULT_CHARACTERS: Final = 48_000
"""Of a subagent's last message that its parent reads; the whole stays in its thread."""

ENDED: Final = ("finished", "cancelled", "unknown")
"""What an admission can be when nothing more comes of it by itself."""

Status = Literal["completed", "failed", "interrupted"]


@final
@dataclass(frozen=True, slots=True)
class _Child:
    """A subagent that was started."""

    key: ThreadKey
    admission_id: str
    goal: str
    started: float


@final
class Delegations:
    """The `Delegates` of one execution."""

    def __init__(
        self,
        place: Workplace,
        asking: Asking,
        origin: Lineage | None,
        agent: AgentDefinition,
        scope: ProfileScope,
        *,
        unattended: bool,
    ) -> None:
        self._place = place
        self._asking = asking
        self._depth = 0 if origin is None else origin.depth
        self._agent = agent
        self._scope = scope
        self._unattended = unattended

    async def delegate(self, call_id: str, tasks: Sequence[Task]) -> Sequence[Delegated]:
        """See `Delegates`. All of them are admitted in one commit, or none."""
        agents = [await self._named(task.agent) for task in tasks]
        redact = self._scope.secrets.redact
        # What a model says is stored as its calls are: without secrets.
        tasks = [Task(redact(task.goal), redact(task.context), task.agent) for task in tasks]
        children = await self._start(call_id, tasks, agents)
        threads = [await self._place.sibling(child.key.thread_id) for child in children]
        ended: dict[str, AdmissionRecord] = {}
        told = {child.key: self._progress(thread) for child, thread in zip(children, threads, strict=True)}
        try:
            return await self._results(children, threads, ended, told)
        finally:
            for progress in told.values():
                progress.end()

    def _progress(self, thread: Sibling) -> Progress:
        generation, admission_id = self._asking.execution_generation, self._asking.admission_id
        return Progress(
            self._place.tail,
            thread.key.thread_id,
            thread.tail,
            execution_generation=generation,
            admission_id=admission_id,
        )

    async def _results(
        self,
        children: Sequence[_Child],
        threads: Sequence[Sibling],
        ended: dict[str, AdmissionRecord],
        told: Mapping[ThreadKey, Progress],
    ) -> Sequence[Delegated]:
        """Start them, and wait until all have ended, or end them when the turn is cancelled."""

        async def wait(child: _Child, thread: Sibling) -> None:
            ended[child.admission_id] = await self._ended(thread, child.admission_id)

        try:
            async with trio.open_nursery() as nursery:
                for child, thread in zip(children, threads, strict=True):
                    thread.wake()
                    nursery.start_soon(wait, child, thread)
        except (trio.Cancelled, BaseExceptionGroup) as raised:
            done = [Delegated(child.key.thread_id, "interrupted", "") for child in children]
            with trio.move_on_after(ENDING_S, shield=True):
                await self._end(children, threads, ended)
                done = [
                    await self._complete(child, ended.get(child.admission_id), told[child.key]) for child in children
                ]
            if not _only_cancelled(raised):
                raise
            # Not raised again: what the subagents have done until now is the result of this call, and has to be
            # committed as such. The turn is cancelled all the same, at its next step.
            return done
        return [await self._complete(child, ended[child.admission_id], told[child.key]) for child in children]

    async def _named(self, name: str | None) -> str:
        """The agent of a task, after a look whether it is there and may be used."""
        if name is None or name == self._agent.name:
            return self._agent.name
        allowed = self._agent.subagents
        if allowed is not None and name not in allowed:
            raise NotFound(
                f"Agent {self._agent.name} may not delegate to {name[:100]!r}.",
                hint=f"It may to: {', '.join(allowed)}.",
            )
        await in_thread(self._place.runtime.limiter, definition.load, self._scope.home, name)
        return name

    async def _start(self, call_id: str, tasks: Sequence[Task], agents: Sequence[str]) -> list[_Child]:
        limits = self._scope.config.agent.subagents
        depth = self._depth + 1
        if depth > limits.depth:
            raise LimitReached(
                f"Subagents go {limits.depth} deep here, and this would be one deeper.",
                hint="Do the task yourself.",
                limit=limits.depth,
            )
        place, asking = self._place, self._asking

        def work(tx: Transaction) -> list[_Child]:
            live = count_live(tx.connection, place.key.session_id)
            if live + len(tasks) > limits.at_once:
                raise LimitReached(
                    f"{live} subagents of this session are at work; {limits.at_once} may be at the same time.",
                    hint="Delegate fewer tasks at once, or wait for those that run.",
                    limit=limits.at_once,
                )
            children: list[_Child] = []
            for index, (task, agent) in enumerate(zip(tasks, agents, strict=True)):
                key = ThreadKey(place.key.session_id, f"sub-{secrets.token_hex(6)}")
                about: Mapping[str, JsonValue] = {
                    "goal": task.goal,
                    "agent": agent,
                    "call_id": call_id,
                    "parent_generation": asking.execution_generation,
                }
                lineage.add(tx, key, "subagent", parent=place.key.thread_id, depth=depth, about=about)
                record, _ = admissions.admit(
                    tx,
                    NewAdmission(
                        key=key,
                        principal=f"agent:{place.key.thread_id}",
                        input_id=f"{key.thread_id}-task",
                        digest="",
                        text=f"{task.goal}\n\n{task.context}".strip(),
                        unattended=self._unattended,
                    ),
                )
                started = SubagentStart(
                    subagent_id=key.thread_id,
                    thread_id=key.thread_id,
                    parent_id=place.key.thread_id,
                    call_id=call_id,
                    goal=task.goal,
                    agent=agent,
                    depth=depth,
                    task_index=index,
                    task_count=len(tasks),
                )
                tx.append(
                    place.key,
                    "subagent.start",
                    started,
                    execution_generation=asking.execution_generation,
                    admission_id=asking.admission_id,
                )
                children.append(_Child(key, record.admission_id, task.goal, tx.now))
            return children

        return await place.runtime.journal.transact(work)

    async def _ended(self, thread: Sibling, admission_id: str) -> AdmissionRecord:
        """Wait until nothing more comes of an input. The journal is asked when the thread's state changes, not for
        each piece of text."""
        news = trio.Event()
        journal = self._place.runtime.journal

        def woken() -> None:
            news.set()

        thread.tail.attach(woken)
        try:
            looked: object = None
            while True:
                news = trio.Event()
                state = (thread.busy, thread.running)
                if state != looked:
                    looked = state
                    record = await journal.read(
                        lambda connection: admissions.find(
                            connection, None, thread.key.session_id, admission_id=admission_id
                        )
                    )
                    assert record is not None, "an admission is deleted with its session only, which is busy"
                    if record.status in ENDED:
                        return record
                if (thread.busy, thread.running) == looked:
                    await news.wait()
        finally:
            thread.tail.detach(woken)

    async def _end(
        self, children: Sequence[_Child], threads: Sequence[Sibling], ended: dict[str, AdmissionRecord]
    ) -> None:
        """Interrupt those that still run, and wait for their ends."""
        for child, thread in zip(children, threads, strict=True):
            if child.admission_id in ended:
                continue
            record, _ = await self._place.runtime.journal.transact(
                lambda tx, child=child: admissions.retire(tx, child.key, child.admission_id)
            )
            if record.status == "started" and thread.running is not None:
                thread.interrupt(thread.running)
            ended[child.admission_id] = await self._ended(thread, child.admission_id)

    async def _complete(self, child: _Child, record: AdmissionRecord | None, progress: Progress) -> Delegated:
        """Commit what came of a task, in the parent's journal and with the subagent."""
        place, asking = self._place, self._asking
        status = _status(record)

        def work(tx: Transaction) -> Delegated:
            said = last_words(tx.connection, child.key)
            tools, last = lineage.tools_used(tx.connection, child.key)
            lineage.finish(tx, child.key, {"status": status, "tool_count": tools, "last_tool": last})
            complete = SubagentComplete(
                subagent_id=child.key.thread_id,
                thread_id=child.key.thread_id,
                status=status,
                summary=said,
                tool_count=tools,
                last_tool=last,
                usage=Usage() if record is None or record.usage is None else record.usage,
                duration_s=max(0.0, tx.now - child.started),
            )
            tx.append(
                place.key,
                "subagent.complete",
                complete,
                execution_generation=asking.execution_generation,
                admission_id=asking.admission_id,
            )
            tx.after_commit(progress.end)
            return Delegated(child.key.thread_id, status, said)

        return await place.runtime.journal.transact(work)


def count_live(connection: sqlite3.Connection, session_id: str) -> int:
    """How many subagents of a session have something to do."""
    row = connection.execute(
        "SELECT count(DISTINCT t.id) FROM admission a JOIN thread t ON t.id = a.thread"
        " WHERE a.session_id = ? AND t.kind = 'subagent' AND a.status IN ('queued', 'started')",
        (session_id,),
    ).fetchone()
    return int(row[0])


def last_words(connection: sqlite3.Connection, key: ThreadKey) -> str:
    """The last message that an agent has said anything in, cut to what another one reads."""
    for message in reversed(messages.stored(connection, key)):
        if message.role == "assistant" and message.text.strip():
            return message.text.strip()[:RESULT_CHARACTERS]
    return ""


def _status(record: AdmissionRecord | None) -> Status:
    if record is None or record.outcome is None:
        return "failed" if record is not None and record.status == "unknown" else "interrupted"
    match record.outcome:
        case "completed":
            return "completed"
        case "failed" | "rejected":
            return "failed"
        case "interrupted" | "cancelled":
            return "interrupted"


def _only_cancelled(raised: BaseException) -> bool:
    if isinstance(raised, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", raised)
        return all(_only_cancelled(each) for each in group.exceptions)
    return isinstance(raised, trio.Cancelled)
