"""What all connections are told that may address a profile."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from hermes_ws.contract.errors import InvalidParams
from hermes_ws.contract.methods.questions import AnswerParams
from hermes_ws.contract.questions import OpenQuestion
from hermes_ws.contract.registry import Right
from hermes_ws.server.audience import Audience
from hermes_ws.server.entry import Principal
from hermes_ws.session.ports import Counted
from hermes_ws.wire.frames import Frame
from hermes_ws.wire.negotiation import UNSPOKEN, Negotiated

ABLE = replace(UNSPOKEN, server_requests=frozenset({"clarify"}))


@dataclass
class Listener:
    """A connection that keeps what it is told."""

    id: str
    principal: Principal
    told: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    negotiated: Negotiated = ABLE
    askable: bool = True

    def may_address(self, profile: str) -> bool:
        return self.principal.may_address(profile)

    def notify(self, frame: Frame) -> None:
        said = json.loads(frame.json)
        if said["method"] == "event":
            self.told.append(said["params"])
        else:
            self.asked.append(said["id"])


def listener(id: str, *rights: Right, profile: str | None = None) -> Listener:
    return Listener(id, Principal("somebody", None if profile is None else frozenset({profile}), frozenset(rights)))


def audience(*listeners: Any) -> Audience:
    made = Audience(lambda: 1.0)
    made.follow(lambda: listeners)
    return made


def test_a_list_of_sessions_is_hinted_at_to_those_who_may_look_at_it() -> None:
    all_of_it, own = listener("a", Right.OBSERVE), listener("b", Right.OBSERVE, profile="work")
    foreign, blind = listener("c", Right.OBSERVE, profile="home"), listener("d", Right.SUBMIT)
    audience(all_of_it, own, foreign, blind).sessions_changed("work", "s-1")
    for each in (all_of_it, own):
        assert [(told["type"], told["profile"], told["payload"]) for told in each.told] == [
            ("sessions.changed", "work", {"session_id": "s-1"})
        ]
    assert foreign.told == blind.told == []


def test_who_has_said_nothing_since_the_last_hint_is_not_given_another() -> None:
    awake, asleep = listener("a", Right.OBSERVE), listener("b", Right.OBSERVE)
    told = audience(awake, asleep)
    for number in range(3):
        told.sessions_changed("work", f"s-{number}")
        told.heard(awake)  # type: ignore[arg-type]
    assert [each["payload"]["session_id"] for each in awake.told] == ["s-0", "s-1", "s-2"]
    assert [each["payload"]["session_id"] for each in asleep.told] == ["s-0"]
    told.sessions_changed("home", None)
    assert asleep.told[1:] == [{"type": "sessions.changed", "profile": "home", "ts": 1.0, "payload": {}}]


def test_another_skin_is_told_to_all_and_kept_for_those_who_come() -> None:
    there, foreign = listener("a"), listener("b", profile="home")
    told = audience(there, foreign)
    assert told.skin_of("work", "plain") == "plain"
    told.skin_changed("work", "midnight")
    assert (told.skin_of("work", "plain"), told.skin_of("home", "plain")) == ("midnight", "plain")
    assert [(each["type"], each["payload"]["name"]) for each in there.told] == [("skin.changed", "midnight")]
    assert foreign.told == []


QUESTION = OpenQuestion(
    id="srq-o-1",
    kind="clarify",
    session_id="s-1",
    thread_id="main",
    execution_generation=1,
    asked_at=1.0,
    deadline=None,
    params={},
)


async def test_who_answers_is_not_asked_again_meanwhile() -> None:
    """What goes on after a crash asks again: an answer may be on its way to it just then."""
    answers, looks_on = listener("a", Right.ANSWER), listener("b", Right.ANSWER)
    told = audience(answers, looks_on)
    told.ask(QUESTION, "work")

    async def settle(params: AnswerParams) -> None:
        assert not told.awaits(answers, params.id)  # type: ignore[arg-type]
        assert told.ask(QUESTION, "work").capable == 2
        told.settled(params.id, "answered", "work")

    await told.answered(answers, QUESTION.id, {"answers": {}}, settle)  # type: ignore[arg-type]
    assert answers.asked == looks_on.asked == [QUESTION.id]
    assert [each["type"] for each in looks_on.told] == ["request.cancel"]
    assert answers.told == []


def test_who_has_not_said_yet_what_it_can_do_makes_no_question_fail() -> None:
    new, able = listener("a", Right.ANSWER), listener("b", Right.ANSWER)
    new.askable, new.negotiated = False, UNSPOKEN
    assert audience(new).ask(QUESTION, "work") == Counted(with_right=0, capable=0)
    assert audience(new, able).ask(QUESTION, "work") == Counted(with_right=1, capable=1)
    new.askable = True
    assert audience(new).ask(QUESTION, "work") == Counted(with_right=1, capable=0)


async def test_an_answer_that_does_not_count_may_be_given_again() -> None:
    answers = listener("a", Right.ANSWER)
    told = audience(answers)
    told.ask(QUESTION, "work")

    async def refuse(params: AnswerParams) -> None:
        raise InvalidParams("Not one of those.", path="result")

    await told.answered(answers, QUESTION.id, {"answers": {}}, refuse)  # type: ignore[arg-type]
    assert told.awaits(answers, QUESTION.id)  # type: ignore[arg-type]
    assert [each["payload"]["message"] for each in answers.told] == ["Not one of those."]
    assert answers.asked == [QUESTION.id]
