"""Forks: another thread of the session that begins with a thread's history, or with a part of it.

The source is only read. What is taken over is made shorter before the fork exists, so that it is born as it will be.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, final

import orjson
from pydantic import JsonValue

from hermes_ws.agent.compaction import Compacted
from hermes_ws.contract.content import Message, summary_message
from hermes_ws.contract.errors import NotFound
from hermes_ws.contract.events import ThreadForked
from hermes_ws.contract.methods.forks import Forked, ForkParams
from hermes_ws.journal import lineage, messages, receipts, summaries, thread_list
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.receipts import Request
from hermes_ws.journal.recovery import tell
from hermes_ws.journal.summaries import Summary
from hermes_ws.journal.transaction import Transaction
from hermes_ws.session import shortening
from hermes_ws.session.briefing import Ground, ground_of
from hermes_ws.session.launch import Keys
from hermes_ws.session.ports import Runtime
from hermes_ws.session.session import Session
from hermes_ws.session.shortening import replaced, shortened

Mode = Literal["disabled", "none", "soft", "hard"]


@final
@dataclass(frozen=True, slots=True)
class _Source:
    """A thread's history as it is taken over, at one moment."""

    history: list[Message]
    summary: Summary | None
    cursor: str


@final
@dataclass(frozen=True, slots=True)
class _Plan:
    """What the fork will hold."""

    mode: Mode
    told: list[Message]
    summary: Summary | None
    made: Compacted | None
    kept: Sequence[Message] = ()
    """Of what the model sees, the messages that a summary made now does not cover."""


async def fork(
    runtime: Runtime, keys: Keys, session: Session, source: ThreadKey, params: ForkParams, principal: str
) -> Forked:
    """Make a fork, once per (principal, `request_id`); durable when this returns.

    Raises `NotFound` for a message that is not there, `ModelFailed` when no summary can be had: then there is no fork.
    """
    request = _request(params, principal)
    taken = await runtime.journal.read(lambda connection: _take(connection, source, params, request))
    if isinstance(taken, Forked):
        return taken
    found = await ground_of(runtime, keys, session.record, source)
    plan = await _planned(runtime, found, source, taken, params)
    key = ThreadKey(source.session_id, f"fork-{secrets.token_hex(6)}")

    def work(tx: Transaction) -> Forked:
        known = None if request is None else receipts.find(tx.connection, request)
        if known is not None:
            return Forked.model_validate(known)
        origin = lineage.get(tx.connection, source)
        about: dict[str, JsonValue] = {
            "agent": found.agent.name,
            "from_message_id": params.from_message_id,
            "compaction": plan.mode,
        }
        depth = 0 if origin is None else origin.depth
        lineage.add(tx, key, "fork", parent=source.thread_id, depth=depth, about=about)
        if params.title is not None:
            thread_list.rename(tx, key, params.title)
        told = ThreadForked(
            source_thread_id=source.thread_id, thread_id=key.thread_id, from_message_id=params.from_message_id
        )
        tx.append(key, "thread.forked", told)
        for message in plan.told:
            tell(tx, key, message, None, None)
        if plan.summary is not None:
            summaries.put(tx, key, plan.summary)
        if plan.made is not None:
            limit = found.settings.window.tokens
            shortening.tell(tx, key, plan.made, hard=plan.mode == "hard", kept=plan.kept, limit=limit)
        head = tx.head(key)
        answer = Forked(
            session_id=source.session_id,
            thread_id=key.thread_id,
            cursor=f"{head.generation}:{head.seq}",
            source_thread_id=source.thread_id,
            source_cursor=taken.cursor,
            messages=len(plan.told),
            compaction=plan.mode,
        )
        if request is not None:
            receipts.store(tx, request, cast("dict[str, JsonValue]", answer.model_dump(mode="json")))
        return answer

    return await runtime.journal.transact(work)


def _request(params: ForkParams, principal: str) -> Request | None:
    if params.request_id is None:
        return None
    content = params.model_dump(mode="json", exclude={"request_id", "profile"})
    digest = hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return Request(principal, params.request_id, digest)


def _take(
    connection: sqlite3.Connection, key: ThreadKey, params: ForkParams, request: Request | None
) -> _Source | Forked:
    stored = None if request is None else receipts.find(connection, request)
    if stored is not None:
        return Forked.model_validate(stored)
    everything = messages.history(connection, key)
    through = params.from_message_id
    if through is not None:
        ids = [message.message_id for message in everything]
        if through not in ids:
            raise NotFound(
                f"There is no message {through} in this thread.",
                hint="Those before a hard compaction cannot be forked.",
            )
        everything = everything[: ids.index(through) + 1]
    summary = summaries.get(connection, key)
    if summary is not None and not any(message.message_id == summary.first_kept for message in everything):
        summary = None
    row = connection.execute(
        "SELECT generation, (SELECT coalesce(max(seq), 0) FROM event e WHERE e.thread = t.id AND e.generation ="
        " t.generation) FROM thread t WHERE session_id = ? AND thread_id = ?",
        (key.session_id, key.thread_id),
    ).fetchone()
    return _Source(everything, summary, f"{row[0]}:{row[1]}")


async def _planned(runtime: Runtime, found: Ground, key: ThreadKey, taken: _Source, params: ForkParams) -> _Plan:
    asked = params.compaction
    if asked == "disabled":
        return _Plan("disabled", taken.history, taken.summary, None)
    mode: Literal["disabled", "soft", "hard"]
    if asked == "inherit":
        mode, keep, focus = found.scope.config.compaction.fork, found.settings.window.keep, None
    else:
        mode, keep, focus = asked.mode, asked.keep, asked.focus
    if mode == "disabled":
        return _Plan("none", taken.history, taken.summary, None)
    visible = taken.history
    if taken.summary is not None:
        visible = [summary_message(taken.summary.text), *summaries.since(taken.history, taken.summary.first_kept)]
    made = await shortened(runtime, found, key, visible, keep=keep, focus=focus)
    if made is None:
        return _Plan("none", taken.history, taken.summary, None)
    if mode == "hard":
        return _Plan("hard", replaced(made, visible), None, made, visible[made.covered :])
    return _Plan("soft", taken.history, Summary(made.summary, made.first_kept), made, visible[made.covered :])
