"""Sequences of the model that found a fault once, step by step: what finds a fault again must go on finding it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hermes_ws.client.failures import EventUnreadable
from hermes_ws.journal import events
from hermes_ws.journal.events import Start
from hermes_ws.wire.cursor import Cursor
from tests.model.test_model import Machine
from tests.model.world import childless

Step = Callable[[Machine], object]

AWAY_WHILE_THE_JOURNAL_IS_REPLACED: tuple[Step, ...] = (
    lambda machine: machine.submit(0, "/do say {mark}", "queue", False),
    lambda machine: machine.time_passes(1.0),
    lambda machine: machine.drop(0),
    lambda machine: machine.replace_the_journal(0),
    lambda machine: machine.submit(0, "/do say {mark}\n/do stream 6 400", "queue", False),
    lambda machine: machine.time_passes(5.0),
    lambda machine: machine.submit(0, "/do say {mark}", "queue", False),
    lambda machine: machine.time_passes(1.0),
    lambda machine: machine.resume(0),
    lambda machine: machine.time_passes(1.0),
)
"""The new journal has become longer than the old one was when the client stood at its end."""

KILLED_BEFORE_THE_REPLY_AND_AT_A_QUESTION: tuple[Step, ...] = (
    lambda machine: machine.submit_and_crash_before_the_reply(0, "/do say {mark}\n/do ask why?", True),
    lambda machine: machine.time_passes(1.0),
    lambda machine: machine.lag(1),
    lambda machine: machine.crash(True),
    lambda machine: machine.submit_again(0),
    lambda machine: machine.answer(0),
    lambda machine: machine.resolve(0),
    lambda machine: machine.submit(0, "/do say {mark}", "queue", False),
    lambda machine: machine.rewind(0, 1),
    lambda machine: machine.resume(1),
)


def walk(steps: tuple[Step, ...]) -> None:
    """Take the steps, look at what always holds after each, and at the end whatever has come of it."""
    with childless():
        machine = Machine()
        try:
            machine.begin()
            for step in steps:
                step(machine)
                machine.the_fold_of_what_a_client_received_is_the_servers_state()
                machine.no_question_is_both_answered_and_open()
        except BaseException:
            machine.throw_away()
            raise
        machine.teardown()


@pytest.mark.parametrize(
    "steps",
    [AWAY_WHILE_THE_JOURNAL_IS_REPLACED, KILLED_BEFORE_THE_REPLY_AND_AT_A_QUESTION],
    ids=["replaced", "killed"],
)
def test_what_once_went_wrong_goes_right(steps: tuple[Step, ...]) -> None:
    walk(steps)


def test_the_sequence_still_finds_the_fault_that_it_was_kept_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generation of a cursor is not looked at: a client of the old journal is told to go on in the new one."""

    def position(client: Cursor | None, generation: int, head: int) -> Start:
        if client is None:
            return Start("fresh", Cursor(generation, head))
        return Start("ok", Cursor(generation, min(client.seq, head)))

    monkeypatch.setattr(events, "position", position)
    with pytest.raises((AssertionError, EventUnreadable)):
        walk(AWAY_WHILE_THE_JOURNAL_IS_REPLACED)
