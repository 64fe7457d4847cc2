"""Every method, with every right, on an own and a foreign profile, for what exists and what does not.

The list comes from the declarations, so that a new method cannot be left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes_ws.contract.catalog import METHODS, AnyMethod
from hermes_ws.contract.registry import Right, Scope
from hermes_ws.contract.validation import read_params
from hermes_ws.scope.home import HomesRoot, ProfileHome
from hermes_ws.scope.identity import ProfileName
from hermes_ws.server.entry import Principal
from tests.permissions.counter import EVERY, FOREIGN, NOWHERE, OWN, Counter, Place, counter, missing, principal
from tests.permissions.examples import example
from tests.session.house import House

GIVEN = tuple(right for right in Right if right is not Right.NONE)
HIDDEN = {"session_unknown", "not_found", "profile_unknown"}


@pytest.fixture
def house(tmp_path: Path) -> House:
    root = tmp_path / "homes"
    root.mkdir(mode=0o700)
    return House(root)


@pytest.mark.parametrize("method", EVERY, ids=lambda each: each.name)
def test_there_is_an_example_of_every_method(method: AnyMethod) -> None:
    read_params(method.params, example(method))


def needed(method: AnyMethod) -> Right:
    """The right that the example of the method needs."""
    return method.right_for(read_params(method.params, example(method)))


def variants(at: Counter) -> list[Place]:
    return [at.own, missing(at.own), at.foreign, missing(at.foreign), NOWHERE]


@pytest.mark.parametrize("right", GIVEN, ids=lambda each: each.value)
async def test_a_right_opens_the_methods_that_need_it_and_no_others(house: House, right: Right) -> None:
    """OWNER-01: whatever the request is about, who lacks the right learns that and nothing else."""
    wrong: list[str] = []
    async with counter(house) as at:
        for method in EVERY:
            if method.right is Right.NONE:
                continue
            who = principal(right, profile=None) if method.whole else principal(right)
            answers = [await at.ask(method, at.params(method, place), who) for place in variants(at)]
            if needed(method) is right:
                if answers[0].get("result") != {"reached": method.name}:
                    wrong.append(f"{method.name} is not reached: {answers[0]}")
            elif any(each.get("error", {}).get("data", {}).get("type") != "permission_denied" for each in answers):
                wrong.append(f"{method.name} is not refused: {answers}")
            elif len({json.dumps(each) for each in answers}) != 1:
                wrong.append(f"{method.name} tells what exists: {answers}")
    assert wrong == []


async def test_what_needs_no_right_is_reached_without_one(house: House) -> None:
    async with counter(house) as at:
        for method in EVERY:
            if method.right is Right.NONE:
                answer = await at.ask(method, at.params(method, at.own), principal())
                assert answer["result"] == {"reached": method.name}


def _about(method: AnyMethod) -> set[str]:
    """Which of the things that belong to one profile the request can name."""
    return {"profile", "session_id", "op_id", "id"} & method.params.model_fields.keys()


def _without_names(answer: dict[str, Any], params: dict[str, Any]) -> str:
    """The answer without what the request itself named."""
    text = json.dumps(answer)
    named = sorted((each for each in params.values() if isinstance(each, str) and len(each) > 3), key=len)
    for each in reversed(named):
        text = text.replace(each, "…")
    return text


async def test_what_may_not_be_seen_is_answered_like_what_does_not_exist(house: House) -> None:
    """AUTH-10, IDENT-06: a foreign profile, session or question, and none at all, in the same words."""
    wrong: list[str] = []
    async with counter(house) as at:
        for method in EVERY:
            if method.scope is Scope.CONNECTION or not _about(method):
                continue
            who = principal(needed(method))
            told: set[str] = set()
            for place in (at.foreign, missing(at.foreign), NOWHERE):
                params = at.params(method, place)
                if method.params(**params).located_by() is not None:
                    params.pop("profile", None)
                elif params.get("profile") is None:
                    continue
                answer = await at.ask(method, params, who, real=method.scope is not Scope.SERVER or "profile" in params)
                told.add(_without_names(answer, params))
                problem = answer.get("error", {}).get("data", {}).get("type")
                if problem not in HIDDEN:
                    wrong.append(f"{method.name} {params}: {answer}")
            if len(told) > 1:
                wrong.append(f"{method.name} tells what exists: {told}")
    assert wrong == []


async def test_what_is_missing_in_an_own_profile_is_answered_like_what_is_foreign(house: House) -> None:
    """An id is no capability, and none tells where it comes from."""
    wrong: list[str] = []
    async with counter(house) as at:
        for method in EVERY:
            params = at.params(method, missing(at.own))
            located = method.params(**params).located_by()
            named = [name for name, value in params.items() if value == located]
            if not any(method.params.model_fields[name].is_required() for name in named):
                continue  # Its handler may do without.
            told: set[str] = set()
            for place in (missing(at.own), at.foreign):
                params = at.params(method, place)
                params.pop("profile", None)
                answer = await at.ask(method, params, principal(needed(method)), real=True)
                told.add(_without_names(answer, params))
            if len(told) > 1:
                wrong.append(f"{method.name}: {told}")
    assert wrong == []


async def test_a_name_that_may_not_be_used_is_not_even_looked_for(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long the answer takes tells nothing either: the disk is asked for own profiles alone."""
    looked: list[str] = []
    find = HomesRoot.find

    def recording(root: HomesRoot, name: ProfileName) -> ProfileHome:
        looked.append(name.text)
        return find(root, name)

    method = METHODS["session.most_recent"]
    async with counter(house) as at:
        own_id = (await house.runtime(OWN)).scope.identity.id
        foreign_id = (await house.runtime(FOREIGN)).scope.identity.id
        monkeypatch.setattr(HomesRoot, "find", recording)

        async def asked(name: str) -> tuple[str | None, int]:
            looked.clear()
            who = Principal("somebody", frozenset({OWN}), frozenset({Right.OBSERVE}), frozenset({own_id}))
            answer = await at.ask(method, {"profile": name}, who, real=True)
            return answer.get("error", {}).get("data", {}).get("type"), len(looked)

        for name in (FOREIGN, foreign_id, "nowhere", "f" * 32):
            assert await asked(name) == ("profile_unknown", 0)
        problem, looks = await asked(own_id)
        assert (problem, looks > 0) == (None, True)
        assert (await asked(OWN))[0] is None
        assert (await asked("default"))[0] == "profile_unknown"


async def test_a_request_that_names_two_profiles_is_refused(house: House) -> None:
    wrong: list[str] = []
    async with counter(house) as at:
        for method in EVERY:
            params = at.params(method, at.own)
            if method.params(**params).located_by() is None or "profile" not in method.params.model_fields:
                continue
            params["profile"] = FOREIGN
            both = await at.ask(method, params, principal(needed(method), profile=None))
            if both["error"]["data"]["type"] != "profile_mismatch":
                wrong.append(f"{method.name}: {both}")
            one = await at.ask(method, params, principal(needed(method)))
            if one["error"]["data"]["type"] != "profile_unknown":
                wrong.append(f"{method.name}: {one}")
    assert wrong == []


async def test_a_path_binds_the_owner_to_one_profile(house: House) -> None:
    """AUTH-10."""
    wrong: list[str] = []
    owner = principal(*Right, profile=None)
    async with counter(house) as at:
        for method in EVERY:
            if method.scope in (Scope.CONNECTION, Scope.SERVER):
                continue
            bound = await at.ask(method, at.params(method, at.own), owner, path=OWN)
            if bound.get("result") != {"reached": method.name}:
                wrong.append(f"{method.name} is not reached: {bound}")
            answer = await at.ask(method, at.params(method, at.foreign), owner, path=OWN)
            if answer.get("error", {}).get("data", {}).get("type") not in HIDDEN:
                wrong.append(f"{method.name} leaves the path: {answer}")
    assert wrong == []


LOOKING = ("profiles.list", "session.list", "question.list", "runtime.describe", "runtime.statistics", "token.list")


@pytest.mark.parametrize("name", LOOKING)
async def test_lists_hold_nothing_of_a_foreign_profile(house: House, name: str) -> None:
    async with counter(house) as at:
        method = next(each for each in EVERY if each.name == name)
        params: dict[str, Any] = {"profile": "*"} if "profile" in method.params.model_fields else {}
        answer = await at.ask(method, params, principal(needed(method)), real=True)
        assert "result" in answer
        text = json.dumps(answer)
        assert FOREIGN not in text
        assert not any(each in text for each in at.foreign.ids.values())
        if params:
            assert at.own.ids["session_id"] in text


async def test_what_is_about_all_profiles_is_for_who_may_address_all(house: House) -> None:
    async with counter(house) as at:
        whole = [method for method in EVERY if method.whole]
        assert "runtime.drain" in {method.name for method in whole}
        for method in whole:
            for who, path in ((principal(*Right), None), (principal(*Right, profile=None), OWN)):
                answer = await at.ask(method, at.params(method, at.own), who, path=path)
                assert answer["error"]["data"]["type"] == "permission_denied"
