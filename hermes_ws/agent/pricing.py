"""What the tokens of a reply cost, where the price is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final

from hermes_ws.agent.models.model import Model, UsagePiece
from hermes_ws.contract.content import Usage
from hermes_ws.scope.config import ProfileConfig
from hermes_ws.scope.sections import PriceConfig

PRICED_TOKENS: Final = 1_000_000
"""Prices are stated for so many tokens."""


@final
@dataclass(frozen=True, slots=True)
class Prices:
    """The prices that a profile states, by provider and model. One model's price is never taken for another's."""

    known: Mapping[tuple[str, str], PriceConfig] = field(default_factory=dict[tuple[str, str], PriceConfig])

    def cost(self, model: Model, counted: UsagePiece) -> float | None:
        """What these tokens cost in US dollars; None when the price is not known. Cached ones are among the input."""
        price = self.known.get((model.provider, model.name))
        if price is None:
            return None
        cached = min(counted.cached_tokens, counted.input_tokens)
        for_cached = price.input if price.cached is None else price.cached
        read = (counted.input_tokens - cached) * price.input + cached * for_cached
        return (read + counted.output_tokens * price.output) / PRICED_TOKENS

    def usage(self, model: Model, counted: UsagePiece) -> Usage:
        """The same tokens as they are counted in a session."""
        return Usage(
            input_tokens=counted.input_tokens,
            output_tokens=counted.output_tokens,
            cached_tokens=counted.cached_tokens,
            cost_usd=self.cost(model, counted),
            model=model.name,
        )


UNPRICED: Final = Prices()
"""Nothing has a price."""


def prices_of(config: ProfileConfig) -> Prices:
    """The price of the profile's model, and those that its providers' models have."""
    known = {
        (provider, name): price
        for provider, described in config.providers.items()
        for name, price in described.prices.items()
    }
    if config.model.price is not None:
        known[config.model.provider, config.model.name] = config.model.price
    return Prices(known)
