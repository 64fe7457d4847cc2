"""How full the model's context is, and making room in it before a request would not fit.

The measure is an estimate until the provider has counted; then it is the provider's count and an estimate of what was
added since. Making room costs the older messages their wording (`compaction`), and never fails a turn: when no summary
can be had, that is said, and the request is made with old outputs left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from hermes_ws.agent.compaction import Compacted, Window, compact, cut, tokens_of, without_old_outputs
from hermes_ws.agent.models.model import Model
from hermes_ws.agent.ports import Narrator, Redaction
from hermes_ws.agent.pricing import UNPRICED, Prices
from hermes_ws.agent.reply import commit
from hermes_ws.contract.content import Message, Usage, summary_message
from hermes_ws.contract.errors import ModelFailed


@final
class Context:
    """The context of one turn. Owned by it."""

    def __init__(
        self,
        window: Window,
        model: Model,
        narrator: Narrator,
        redaction: Redaction,
        system: str,
        prices: Prices = UNPRICED,
    ) -> None:
        self._prices = prices
        self._window = window
        self._model = model
        self._narrator = narrator
        self._redaction = redaction
        self._system = system
        self._asked = 0
        self._counted = 0
        """What the provider counted of the last request and its reply; 0 before it did."""

    def tokens(self, messages: Sequence[Message]) -> int:
        """About how many tokens the next request has."""
        estimate = tokens_of(messages, self._system)
        return estimate if not self._counted else self._counted + max(0, estimate - self._asked)

    def meter(self, counted: Usage) -> tuple[int, int]:
        """Take what the provider counted. Returns how full the context is, and what fits into it."""
        self._counted = counted.input_tokens + counted.output_tokens
        return max(self._counted, self._asked), self._window.tokens

    async def fitted(self, messages: list[Message]) -> tuple[list[Message], Usage | None]:
        """The messages, shorter when they are too many; and what a summary cost. Cancelling changes nothing."""
        usage: Usage | None = None
        before = self.tokens(messages)
        if self._window.full(before):
            made = await self._compacted(messages) if cut(messages, self._window.keep) else None
            if made is not None:
                usage = made.usage
                kept = [summary_message(made.summary), *messages[made.covered :]]
                await commit(lambda: self._told(made, before, tokens_of(kept, self._system)))
                messages, self._counted = kept, 0
            if self._window.full(self.tokens(messages)):
                messages, self._counted = without_old_outputs(messages), 0
        self._asked = tokens_of(messages, self._system)
        return messages, usage

    async def _compacted(self, messages: Sequence[Message]) -> Compacted | None:
        await self._narrator.compaction_start("context")
        try:
            return await compact(
                self._model, messages, keep=self._window.keep, redaction=self._redaction, prices=self._prices
            )
        except ModelFailed as failed:
            await self._narrator.notice(
                "warning",
                "compaction_failed",
                f"The older messages could not be summarised. {failed.message}",
                failed.hint,
            )
            return None

    async def _told(self, made: Compacted, before: int, after: int) -> None:
        await self._narrator.usage(made.usage, context_tokens=after, context_limit=self._window.tokens)
        await self._narrator.compaction_complete(
            made.summary, made.first_kept, covered=made.covered, tokens_before=before, tokens_after=after
        )
