"""What all connections are told that may address a profile."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hermes_ws.contract.registry import Right
from hermes_ws.server.audience import Audience
from hermes_ws.server.entry import Principal
from hermes_ws.wire.frames import Frame


@dataclass
class Listener:
    """A connection that keeps what it is told."""

    id: str
    principal: Principal
    told: list[dict[str, Any]] = field(default_factory=list)

    def may_address(self, profile: str) -> bool:
        return self.principal.may_address(profile)

    def notify(self, frame: Frame) -> None:
        self.told.append(json.loads(frame.json)["params"])


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
