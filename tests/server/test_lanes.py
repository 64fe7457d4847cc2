"""Which requests run now, which wait, and which are refused."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.contract.errors import Overloaded
from hermes_ws.server.lanes import WAITING_BYTES, WAITING_REQUESTS, Entry, Lanes


class Started:
    def __init__(self, width: int = 2) -> None:
        self.lanes = Lanes(width)
        self.running: list[tuple[str, Entry]] = []
        self.order: list[str] = []

    def send(self, name: str, lane: str | None = None, *, size: int = 10, overtakes: bool = False) -> None:
        def start(entry: Entry) -> None:
            self.running.append((name, entry))
            self.order.append(name)

        self.lanes.take(Entry(lane, size, start, overtakes))

    def finish(self, name: str) -> None:
        index = next(i for i, (each, _) in enumerate(self.running) if each == name)
        self.lanes.done(self.running.pop(index)[1])

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.running]


def test_requests_of_one_lane_run_one_after_the_other() -> None:
    started = Started(width=8)
    for name in "abc":
        started.send(name, "thread")
    assert started.names == ["a"]
    started.finish("a")
    assert started.names == ["b"]
    started.finish("b")
    assert started.names == ["c"]


def test_other_lanes_are_not_held_up() -> None:
    started = Started(width=8)
    started.send("a", "one")
    started.send("b", "one")
    started.send("c", "two")
    started.send("d")
    assert started.names == ["a", "c", "d"]


def test_no_more_run_than_may() -> None:
    started = Started(width=2)
    for name in "abcd":
        started.send(name)
    assert started.names == ["a", "b"]
    assert started.lanes.waiting == 2
    started.finish("b")
    assert started.names == ["a", "c"]


def test_what_must_not_wait_overtakes_a_full_connection() -> None:
    started = Started(width=2)
    for name in "abcd":
        started.send(name)
    started.send("stop", overtakes=True)
    assert "stop" in started.names
    started.finish("stop")
    assert started.lanes.running == 2


def test_even_what_overtakes_is_bounded() -> None:
    started = Started(width=2)
    started.send("x", overtakes=True)
    started.send("y", overtakes=True)
    with pytest.raises(Overloaded):
        started.send("z", overtakes=True)


def test_too_many_waiting_are_refused_with_the_time_to_come_back() -> None:
    started = Started(width=1)
    for number in range(WAITING_REQUESTS + 1):
        started.send(str(number))
    with pytest.raises(Overloaded) as caught:
        started.send("one more")
    assert caught.value.data["retry_after_s"]
    started.finish("0")
    started.send("one more")


def test_too_many_bytes_waiting_are_refused() -> None:
    started = Started(width=1)
    started.send("runs", size=WAITING_BYTES)
    started.send("waits", size=WAITING_BYTES)
    with pytest.raises(Overloaded):
        started.send("no", size=1)


@given(
    width=st.integers(1, 4),
    steps=st.lists(st.tuples(st.sampled_from(["send", "finish"]), st.sampled_from([None, "a", "b"])), max_size=60),
)
def test_every_request_runs_once_and_in_the_order_of_its_lane(width: int, steps: list[tuple[str, str | None]]) -> None:
    started = Started(width)
    sent: dict[str | None, deque[str]] = {None: deque(), "a": deque(), "b": deque()}
    for number, (step, lane) in enumerate(steps):
        if step == "send":
            sent[lane].append(f"{lane}-{number}")
            started.send(f"{lane}-{number}", lane)
        elif started.running:
            started.finish(started.names[0])
        assert started.lanes.running <= width
        for name in ("a", "b"):
            assert sum(each.startswith(f"{name}-") for each in started.names) <= 1
    while started.running:
        started.finish(started.names[0])
    assert started.lanes.running == started.lanes.waiting == 0
    for lane, names in sent.items():
        assert [each for each in started.order if each.startswith(f"{lane}-")] == list(names)
