"""The end of a thread in memory, and what any subscriber makes of it."""

from __future__ import annotations

import logging

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.contract.events import Notice
from hermes_ws.journal.stored_event import StoredEvent
from hermes_ws.journal.tail import PASSING_KEPT, Address, LiveMarks, ThreadTail
from hermes_ws.wire.cursor import Cursor
from hermes_ws.wire.frames import Frame

ADDRESS = Address("work", "ses-1", "main")
BIG = 1_000_000


def event(seq: int, type: str = "notice", generation: int = 1, **payload: object) -> StoredEvent:
    return StoredEvent(generation, seq, type, float(seq), orjson.dumps(payload))


def make(committed: int = 0, **bounds: int) -> ThreadTail:
    tail = ThreadTail(ADDRESS, clock=lambda: 0.0, **bounds)
    tail.adopt(1, 0)
    for seq in range(1, committed + 1):
        tail.publish(event(seq))
    return tail


def seqs(tail: ThreadTail, after: int, budget: int = BIG) -> list[int]:
    return [orjson.loads(frame.json)["params"]["seq"] for frame in tail.take(Cursor(1, after), None, budget).frames]


def test_what_follows_a_cursor_comes_in_order() -> None:
    assert seqs(make(5), 2) == [3, 4, 5]
    assert make(5).take(Cursor(1, 2), None, BIG).cursor == Cursor(1, 5)


def test_nothing_follows_the_head_or_a_cursor_beyond_it() -> None:
    tail = make(2)
    for seq in (2, 9):
        taken = tail.take(Cursor(1, seq), LiveMarks(), BIG)
        assert (taken.frames, taken.cursor, taken.missing, taken.more) == ((), Cursor(1, seq), False, False)


def test_a_budget_bounds_what_is_taken_but_one_frame_always_comes() -> None:
    tail = make(3)
    size = len(tail.take(Cursor(1, 0), None, 1).frames[0])
    assert seqs(tail, 0, budget=1) == [1]
    assert seqs(tail, 0, budget=2 * size) == [1, 2]
    assert tail.take(Cursor(1, 0), None, 2 * size).more
    assert not tail.take(Cursor(1, 0), None, 3 * size).more


def test_subscribers_at_the_same_cursor_share_one_answer() -> None:
    tail = make(3)
    assert tail.take(Cursor(1, 1), LiveMarks(), 100) is tail.take(Cursor(1, 1), LiveMarks(), 100)
    first = tail.take(Cursor(1, 1), None, BIG)
    tail.publish(event(4))
    assert tail.take(Cursor(1, 1), None, BIG) is not first


def test_older_events_than_are_kept_are_missing_not_skipped() -> None:
    tail = make(20, events=8)
    kept = tail.statistics().events
    assert kept <= 8
    assert tail.take(Cursor(1, 20 - kept - 1), None, BIG).missing
    assert seqs(tail, 20 - kept) == list(range(20 - kept + 1, 21))


def test_the_tail_is_bounded_in_bytes_and_keeps_the_newest_event_whatever_its_size() -> None:
    tail = make(bytes=2000)
    for seq in range(1, 40):
        tail.publish(event(seq, text="x" * 300))
        assert tail.statistics().bytes <= 2000
    tail.publish(event(40, text="x" * 5000))
    assert seqs(tail, 39) == [40]
    assert tail.statistics().events == 1


def test_another_generation_is_missing() -> None:
    tail = make(3)
    assert tail.take(Cursor(2, 0), None, BIG).missing
    tail.publish(event(1, generation=2))
    assert tail.take(Cursor(1, 3), None, BIG).missing
    assert len(tail.take(Cursor(2, 0), None, BIG).frames) == 1


def test_a_read_of_the_past_does_not_take_back_what_was_published_since() -> None:
    tail = ThreadTail(ADDRESS)
    tail.publish(event(7))
    tail.adopt(1, 5)
    assert (tail.generation, tail.head) == (1, 7)
    assert seqs(tail, 6) == [7]
    assert tail.take(Cursor(1, 5), None, BIG).missing
    tail.adopt(1, 9)
    assert tail.head == 9
    assert tail.take(Cursor(1, 8), None, BIG).missing


def test_listeners_are_told_and_one_that_fails_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    tail, told = make(), list[str]()

    def fails() -> None:
        raise ZeroDivisionError

    def hears() -> None:
        told.append("heard")

    tail.attach(fails)
    tail.attach(hears)
    with caplog.at_level(logging.CRITICAL, "hermes_ws.journal.tail"):
        tail.notify()
    tail.detach(hears)
    tail.detach(hears)
    tail.notify()
    assert told == ["heard"]
    assert tail.statistics().listeners == 0


def test_live_text_comes_only_to_one_who_has_every_committed_event() -> None:
    tail, marks = make(1), LiveMarks()
    tail.publish(event(2, "message.start", message_id="m1", role="assistant"))
    tail.live_begin("message.delta", "m1")
    tail.live_append("message.delta", "m1", "hello")
    size = len(tail.take(Cursor(1, 0), None, 1).frames[0])
    assert len(tail.take(Cursor(1, 0), marks, size).frames) == 1
    taken = tail.take(Cursor(1, 1), marks, BIG)
    assert [orjson.loads(frame.json)["params"]["type"] for frame in taken.frames] == ["message.start", "message.delta"]
    assert taken.cursor == Cursor(1, 2)
    assert tail.take(taken.cursor, marks, BIG).frames == ()
    assert tail.take(taken.cursor, None, BIG).frames == ()


def test_a_live_text_is_begun_once() -> None:
    tail = make()
    tail.live_begin("reasoning.delta", "m1")
    with pytest.raises(RuntimeError, match="has begun already"):
        tail.live_begin("reasoning.delta", "m1")


def test_what_straggles_in_after_the_end_is_dropped() -> None:
    tail = make()
    tail.live_begin("tool.progress", "c1")
    assert tail.live_append("tool.progress", "c1", "out")
    assert tail.live_text("tool.progress", "c1") == "out"
    assert tail.in_progress() is None
    tail.live_end("tool.progress", "c1")
    tail.live_end("tool.progress", "c1")
    assert not tail.live_append("tool.progress", "c1", "late")
    assert tail.live_text("tool.progress", "c1") == ""


def test_an_empty_piece_tells_nobody() -> None:
    tail, told = make(), list[int]()
    tail.live_begin("message.delta", "m1")
    tail.attach(lambda: told.append(1))
    assert tail.live_append("message.delta", "m1", "")
    assert told == []


def test_marks_of_texts_that_ended_are_forgotten() -> None:
    tail, marks = make(), LiveMarks()
    for number in range(3):
        tail.live_begin("message.delta", f"m{number}")
        tail.live_append("message.delta", f"m{number}", "text")
        tail.take(Cursor(1, 0), marks, BIG)
        assert len(marks.offsets) == 1
        tail.live_end("message.delta", f"m{number}")
    tail.take(Cursor(1, 0), marks, BIG)
    assert marks.offsets == {}
    tail.live_begin("message.delta", "a")
    tail.live_append("message.delta", "a", "x")
    tail.take(Cursor(1, 0), marks, BIG)
    tail.live_end("message.delta", "a")
    tail.live_begin("message.delta", "b")
    tail.live_append("message.delta", "b", "y")
    tail.take(Cursor(1, 0), marks, BIG)
    assert list(marks.offsets) == [("message.delta", "b")]


def test_the_message_in_progress_is_given_to_those_who_saw_it_begin() -> None:
    tail = make(3)
    tail.live_begin("reasoning.delta", "m1")
    tail.live_begin("message.delta", "m1")
    tail.live_append("message.delta", "m1", "so far")
    assert tail.in_progress() == ("m1", "so far")
    assert tail.in_progress(Cursor(1, 3)) == ("m1", "so far")
    assert tail.in_progress(Cursor(1, 2)) is None
    assert tail.in_progress(Cursor(2, 3)) is None


def test_the_time_of_live_events_never_goes_back() -> None:
    times = iter([5.0, 3.0, 9.0])
    tail, marks = ThreadTail(ADDRESS, clock=lambda: next(times)), LiveMarks()
    tail.adopt(1, 0)
    tail.live_begin("message.delta", "m1")
    seen = list[float]()
    for _ in range(2):
        tail.live_append("message.delta", "m1", "x")
        (frame,) = tail.take(Cursor(1, 0), marks, BIG).frames
        seen.append(orjson.loads(frame.json)["params"]["ts"])
    assert seen == [5.0, 9.0]


class Subscriber:
    """A client: it applies each frame and complains of a gap, a repetition, or text after its whole."""

    def __init__(self, cursor: Cursor, marks: LiveMarks, texts: dict[str, str]) -> None:
        self.cursor = cursor
        self.marks = marks
        self.texts = texts
        self.whole = dict[str, str]()

    def read(self, tail: ThreadTail, stored: list[StoredEvent], budget: int) -> bool:
        before = self.cursor
        taken = tail.take(self.cursor, self.marks, budget)
        if taken.missing:
            taken_frames = [stored[self.cursor.seq].frame(ADDRESS)]
            cursor = Cursor(1, self.cursor.seq + 1)
        else:
            taken_frames, cursor = list(taken.frames), taken.cursor
        for frame in taken_frames:
            self.apply(orjson.loads(frame.json)["params"])
        assert cursor == self.cursor, "the cursor is where the frames lead"
        return bool(taken_frames) or before != self.cursor

    def apply(self, params: dict[str, object]) -> None:
        payload = params["payload"]
        assert isinstance(payload, dict)
        if params["type"] == "message.delta":
            message = str(payload["message_id"])
            assert message not in self.whole, "text after the whole"
            assert payload["offset"] == len(self.texts.get(message, "")), "a gap or a repetition"
            self.texts[message] = self.texts.get(message, "") + str(payload["text"])
            return
        assert params["seq"] == self.cursor.seq + 1, "a gap or a repetition"
        self.cursor = Cursor(1, int(str(params["seq"])))
        if params["type"] == "message.complete":
            message, text = str(payload["message_id"]), str(payload["text"])
            assert text.startswith(self.texts.get(message, ""))
            self.whole[message] = self.texts[message] = text


STEPS = st.lists(
    st.one_of(
        st.just(("commit",)),
        st.just(("begin",)),
        st.tuples(st.just("say"), st.text(min_size=1, max_size=30)),
        st.just(("complete",)),
        st.tuples(st.just("read"), st.integers(0, 3), st.integers(1, 900)),
        st.tuples(st.just("join"), st.booleans(), st.integers(0, 50)),
    ),
    max_size=80,
)


@given(STEPS, st.integers(1, 6), st.integers(300, 3000))
def test_whatever_the_order_each_subscriber_folds_to_the_truth(
    steps: list[tuple[object, ...]], events: int, size: int
) -> None:
    """Cases REPLAY-01, REPLAY-03, REPLAY-05, REPLAY-17: no gap, no repetition, one message for one id."""
    tail = ThreadTail(ADDRESS, events=events, bytes=size)
    tail.adopt(1, 0)
    stored, truth, live = list[StoredEvent](), dict[str, str](), list[str]()
    subscribers = [Subscriber(Cursor(1, 0), LiveMarks(), {})]

    def commit(type: str, **payload: object) -> None:
        stored.append(event(len(stored) + 1, type, **payload))
        tail.publish(stored[-1])

    for step in steps:
        match step:
            case ("commit",):
                commit("notice")
            case ("begin",):
                message = f"m{len(truth)}"
                commit("message.start", message_id=message, role="assistant")
                tail.live_begin("message.delta", message)
                truth[message] = ""
                live.append(message)
            case ("say", str(text)) if live:
                tail.live_append("message.delta", live[-1], text)
                truth[live[-1]] += text
            case ("complete",) if live:
                message = live.pop()
                commit("message.complete", message_id=message, role="assistant", text=truth[message])
                tail.live_end("message.delta", message)
            case ("read", int(number), int(budget)):
                subscribers[number % len(subscribers)].read(tail, stored, budget)
            case ("join", bool(given), int(number)):
                cursor = Cursor(1, number % (len(stored) + 1))
                told = tail.in_progress(cursor) if given else None
                marks = LiveMarks.given(*told) if told is not None else LiveMarks()
                subscribers.append(Subscriber(cursor, marks, dict([told]) if told is not None else {}))
            case _:
                pass
    for subscriber in subscribers:
        while subscriber.read(tail, stored, 200):
            pass
        assert subscriber.cursor == Cursor(1, len(stored))
        for message in live:
            assert subscriber.texts.get(message, "") == truth[message]
        for message, text in subscriber.whole.items():
            assert text == truth[message]


def passing(tail: ThreadTail, text: str, *, until_next: bool = False) -> None:
    tail.tell("notice", Notice(level="info", type="test", message=text), until_next=until_next)


def said(frames: tuple[Frame, ...]) -> list[str]:
    params = [orjson.loads(frame.json)["params"] for frame in frames]
    return [each["payload"].get("message", each["type"]) for each in params if "cursor" not in each]


def test_what_is_told_in_passing_comes_once_and_after_what_is_committed() -> None:
    tail, marks = make(1), LiveMarks()
    passing(tail, "one")
    passing(tail, "two")
    assert said(tail.take(Cursor(1, 0), None, BIG).frames) == []
    taken = tail.take(Cursor(1, 0), marks, BIG)
    assert "cursor" in orjson.loads(taken.frames[0].json)["params"]
    assert (said(taken.frames), taken.cursor) == (["one", "two"], Cursor(1, 1))
    assert tail.take(Cursor(1, 1), marks, BIG).frames == ()
    passing(tail, "three")
    assert said(tail.take(Cursor(1, 1), marks, BIG).frames) == ["three"]


def test_what_is_told_in_passing_comes_before_texts_that_grow() -> None:
    tail, marks = make(1), LiveMarks()
    tail.live_begin("message.delta", "m1")
    tail.live_append("message.delta", "m1", "Hello")
    passing(tail, "one")
    assert said(tail.take(Cursor(1, 1), marks, BIG).frames) == ["one", "message.delta"]


def test_what_holds_until_the_next_event_is_not_told_after_it() -> None:
    tail, early, late = make(1), LiveMarks(), LiveMarks()
    passing(tail, "going on", until_next=True)
    assert said(tail.take(Cursor(1, 1), early, BIG).frames) == ["going on"]
    tail.publish(event(2))
    passing(tail, "over")
    assert said(tail.take(Cursor(1, 1), late, BIG).frames) == ["over"]


def test_so_many_events_told_in_passing_are_kept_and_no_more() -> None:
    tail, marks = make(1), LiveMarks()
    for number in range(3 * PASSING_KEPT):
        passing(tail, str(number))
    kept = said(tail.take(Cursor(1, 1), marks, BIG).frames)
    assert kept == [str(number) for number in range(2 * PASSING_KEPT, 3 * PASSING_KEPT)]
