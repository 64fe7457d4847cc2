"""What a connection is told of its threads, put together: fair, merged, and without a gap."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
import trio
import trio.lowlevel
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from hermes_ws.journal.address import Address
from hermes_ws.journal.tail import LiveMarks
from hermes_ws.server.delivery import Delivery, Subscription
from hermes_ws.server.ports import Page
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.negotiation import UNSPOKEN
from tests.server.stage import ADDRESS, new_tail, no_page, stored


async def test_coalesced_live_text_comes_at_most_every_tenth_of_a_second_and_whole(autojump_clock: MockClock) -> None:
    shown: list[tuple[float, str]] = []
    delivery = _loose(live="coalesced").delivery
    tail = new_tail()
    delivery.subscribe(tail, Cursor(1, 0), LiveMarks(), no_page)
    tail.live_begin("message.delta", "m-1")

    def drain() -> None:
        texts = [json.loads(frame.json)["params"]["payload"]["text"] for frame in delivery.gather()]
        shown.extend((trio.current_time(), text) for text in texts)

    began = trio.current_time()
    for number in range(100):
        tail.live_append("message.delta", "m-1", f"{number} ")
        drain()
        await trio.sleep(0.01)
        delivery.tick(trio.current_time())
        drain()
    await trio.sleep_until(max(trio.current_time(), delivery.due if delivery.due < 1e9 else 0))
    delivery.tick(trio.current_time())
    drain()
    assert "".join(text for _, text in shown) == "".join(f"{number} " for number in range(100))
    assert len(shown) <= 12
    assert shown[0][0] == began


async def test_no_thread_starves_another() -> None:
    delivery = _loose().delivery
    tails = [new_tail(Address("default", "s", str(number))) for number in range(10)]
    for tail in tails:
        for _ in range(60):
            tail.publish(stored(tail.head + 1, "x" * 10_000))
        delivery.subscribe(tail, Cursor(1, 0), LiveMarks(), no_page)
    seen: set[str] = set()
    rounds = 0
    while len(seen) < 10:
        rounds += 1
        for frame in delivery.gather():
            seen.add(json.loads(frame.json)["params"]["thread_id"])
    assert rounds <= 3


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["commit", "grow", "begin", "end", "gather"]), max_size=60))
def test_what_a_subscriber_puts_together_is_what_happened(steps: list[str]) -> None:
    """No gap, no repetition, whatever the order of committing, growing and giving."""
    trio.run(_fold, steps)


async def _fold(steps: list[str]) -> None:
    loose = _loose()
    delivery = loose.delivery
    tail = new_tail(events=4)
    history: list[Any] = []
    truth: dict[str, str] = {}

    async def read(after: Cursor, budget: int) -> Page:
        some = history[after.seq : after.seq + 2]
        return Page(tuple(each.frame(ADDRESS) for each in some), Cursor(1, after.seq + len(some)))

    got_seqs: list[int] = []
    got_text: dict[str, str] = {}

    async def gather() -> None:
        for frame in delivery.gather():
            params = json.loads(frame.json)["params"]
            if "seq" in params:
                got_seqs.append(params["seq"])
            else:
                payload = params["payload"]
                message = got_text.setdefault(payload["message_id"], "")
                assert payload["offset"] == len(message)
                got_text[payload["message_id"]] = message + payload["text"]
        for subscription in list(loose.wanted):
            loose.wanted.remove(subscription)
            await delivery.fill(subscription)

    delivery.subscribe(tail, Cursor(1, 0), LiveMarks(), read)
    live: str | None = None
    for number, step in enumerate(steps):
        if step == "commit":
            event = stored(tail.head + 1, "e" * (number * 97 % 4000))
            history.append(event)
            tail.publish(event)
            tail.notify()
        elif step == "begin" and live is None:
            live = f"m-{number}"
            truth[live] = ""
            tail.live_begin("message.delta", live)
        elif step == "grow" and live is not None:
            truth[live] += f"ü{number}"
            tail.live_append("message.delta", live, f"ü{number}")
        elif step == "end" and live is not None:
            tail.live_end("message.delta", live)
            truth.pop(live)
            got_text.pop(live, None)
            live = None
        else:
            await gather()
    for _ in range(100):
        await gather()
    assert got_seqs == list(range(1, tail.head + 1))
    assert {id: text for id, text in got_text.items() if text} == {id: text for id, text in truth.items() if text}


@dataclass
class _Loose:
    """A delivery without a connection; `wanted` are the subscriptions that want a page."""

    delivery: Delivery
    wanted: list[Subscription]


def _loose(**negotiated: Any) -> _Loose:
    wanted: list[Subscription] = []
    delivery = Delivery(outbox=None, wake=lambda: None, alarm=lambda: None, start=wanted.append, failed=pytest.fail)
    delivery.negotiated = replace(UNSPOKEN, **negotiated)
    return _Loose(delivery, wanted)
