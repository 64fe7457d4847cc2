"""The bounded queue between a connection and one reader."""

from __future__ import annotations

import pytest

from hermes_ws.client.failures import ConnectionLost, Lagging
from hermes_ws.client.subscription import Subscription
from hermes_ws.contract.events import Envelope


def event(number: int) -> Envelope:
    return Envelope(type="notice", ts=0.0, seq=number, payload={})


async def test_a_reader_that_lags_gets_what_waited_and_then_the_reason() -> None:
    """A slow program costs a bounded amount of memory; it subscribes again from its cursor."""
    subscription = Subscription("s", "main", waiting=3)
    for number in range(10):
        subscription.push(event(number))
    assert [(await anext(subscription)).seq for _ in range(3)] == [0, 1, 2]
    with pytest.raises(Lagging):
        await anext(subscription)


async def test_the_first_reason_stays() -> None:
    subscription = Subscription("s", "main")
    subscription.end(ConnectionLost(4412, "slow"))
    subscription.end(None)
    subscription.push(event(1))
    with pytest.raises(ConnectionLost, match="slow"):
        await anext(subscription)
