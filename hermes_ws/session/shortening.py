"""What a fork and an edit share when they make a history shorter."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import trio

from hermes_ws.agent.compaction import Compacted, tokens_of
from hermes_ws.agent.models.model import Model
from hermes_ws.contract.content import Message, summary_message
from hermes_ws.contract.events import CompactionComplete
from hermes_ws.journal import messages

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
