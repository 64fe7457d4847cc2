"""What tokens cost: by the price of the model that was asked, and never by another's."""

from __future__ import annotations

import pytest

from hermes_ws.agent.compaction import Window, compact
from hermes_ws.agent.context import Context
from hermes_ws.agent.models.loopback import LoopbackModel
from hermes_ws.agent.models.model import TextPiece, UsagePiece
from hermes_ws.agent.pricing import Prices, prices_of
from hermes_ws.scope.config import ProfileConfig
from hermes_ws.scope.sections import PriceConfig
from tests.agent.scene import Replies, done
from tests.agent.test_compaction import said
from tests.agent.twins import NO_SECRETS, NarratorTwin, user

CONFIG = {
    "model": {"provider": "mine", "name": "big", "price": {"input": 3, "output": 15, "cached": 0.3}},
    "providers": {
        "mine": {"kind": "openai", "prices": {"big": {"input": 9, "output": 9}, "s": {"input": 1, "output": 2}}}
    },
}


class Named:
    """A model as far as a price is concerned."""

    def __init__(self, provider: str, name: str) -> None:
        self.provider, self.name = provider, name


@pytest.mark.parametrize(
    ("provider", "name", "cost"),
    [("mine", "big", 17.73), ("mine", "s", 3.0), ("mine", "other", None), ("loopback", "big", None)],
)
def test_each_model_has_its_own_price_and_no_other(provider: str, name: str, cost: float | None) -> None:
    prices = prices_of(ProfileConfig.model_validate(CONFIG))
    found = prices.cost(Named(provider, name), UsagePiece(1_000_000, 1_000_000, 100_000))  # type: ignore[arg-type]
    assert found == (None if cost is None else pytest.approx(cost))


async def test_the_summary_of_a_conversation_costs_what_its_tokens_cost() -> None:
    history = [user("first", "u1"), said("one", "a1"), user("second", "u2"), said("two", "a2"), user("third", "u3")]
    model = Replies([TextPiece("They talked."), UsagePiece(500_000, 10_000), *done()])
    prices = Prices({(model.provider, model.name): PriceConfig(input=2, output=100)})
    made = await compact(model, history, keep=2, redaction=NO_SECRETS, prices=prices)
    assert made is not None
    assert made.usage.cost_usd == pytest.approx(2.0)


async def test_making_room_within_a_turn_is_counted_with_its_cost() -> None:
    narrator, model = NarratorTwin(), LoopbackModel()
    prices = Prices({("loopback", "loopback"): PriceConfig(input=10, output=0)})
    window = Window(tokens=300, at=0.5, keep=1)
    context = Context(window, model, narrator, NO_SECRETS, "", prices)
    history = [user("word " * 200, "u1"), said("one", "a1"), user("second", "u2")]
    _, usage = await context.fitted(history)
    assert usage is not None
    assert usage.cost_usd == pytest.approx(usage.input_tokens * 10 / 1_000_000)
    assert usage.cost_usd
    assert next(told.what for told in narrator.told if told.kind == "usage").cost_usd == usage.cost_usd
