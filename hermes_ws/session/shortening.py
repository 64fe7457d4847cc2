"""What a fork and an edit share when they make a history shorter."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import trio

from hermes_ws.agent.compaction import Compacted, compact, tokens_of
from hermes_ws.agent.models.model import Model
from hermes_ws.contract.content import Message, summary_message
from hermes_ws.contract.events import CompactionComplete, UsageUpdate
from hermes_ws.journal import messages, spending
from hermes_ws.journal.address import ThreadKey
from hermes_ws.journal.transaction import Transaction
from hermes_ws.session.briefing import Ground
from hermes_ws.session.ports import Runtime

CLOSING_S: Final = 2.0
"""Seconds that closing the connections of a model may take; it only has to say goodbye."""


@asynccontextmanager
async def closing(model: Model) -> AsyncGenerator[Model, None]:
    """A model for the length of a block."""
    try:
        yield model
    finally:
        with trio.move_on_after(CLOSING_S, shield=True):
            await model.aclose()


async def shortened(
    runtime: Runtime, found: Ground, key: ThreadKey, history: Sequence[Message], *, keep: int, focus: str | None
) -> Compacted | None:
    """Have the thread's model summarise a history; None when there is nothing to cover.

    What that consumed is counted before this returns, whatever becomes of the summary. Raises `ModelFailed`.
    """
    async with closing(found.model()) as model:
        made = await compact(
            model,
            history,
            keep=keep,
            redaction=found.settings.redaction,
            focus=focus,
            prices=found.settings.prices,
        )
    if made is not None:
        await runtime.journal.transact(lambda tx: spending.keep(tx, key, made.usage))
    return made


def tell(
    tx: Transaction, key: ThreadKey, made: Compacted, *, hard: bool, kept: Sequence[Message], limit: int
) -> CompactionComplete:
    """Say in a thread that its history is shorter now, what that consumed, and how full the context is after it."""
    told = completed(made, hard=hard, kept=kept)
    tx.append(key, "compaction.complete", told)
    meter = UsageUpdate(usage=made.usage, context_tokens=told.tokens_after, context_limit=limit)
    tx.append(key, "usage.update", meter)
    return told


def replaced(made: Compacted, history: Sequence[Message]) -> list[Message]:
    """What is left of a history when a summary is all that is kept of its beginning."""
    summary = summary_message(made.summary).model_copy(update={"message_id": messages.new_id()})
    return [summary, *history[made.covered :]]


def completed(made: Compacted, *, hard: bool, kept: Sequence[Message]) -> CompactionComplete:
    """What is told of it; `kept` are the messages that stay as they are."""
    return CompactionComplete(
        mode="hard" if hard else "soft",
        summary=made.summary,
        first_kept=made.first_kept,
        covered=made.covered,
        tokens_before=made.tokens,
        tokens_after=tokens_of([summary_message(made.summary), *kept]),
    )
