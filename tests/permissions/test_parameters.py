"""Rights that a request needs because of what it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from hermes_ws.contract.catalog import METHODS
from hermes_ws.contract.registry import Right
from hermes_ws.contract.validation import read_params
from tests.permissions.counter import EVERY, OWN, counter, principal
from tests.session.house import House, say


@pytest.fixture
def house(tmp_path: Path) -> House:
    root = tmp_path / "homes"
    root.mkdir(mode=0o700)
    return House(root)


def lacking(answer: dict[str, Any]) -> str | None:
    """The right that the caller was refused for."""
    error = answer.get("error", {})
    return error["data"]["right"] if error.get("code") == 4003 else None


ASKING: Mapping[tuple[str, str], tuple[Mapping[str, Any], Mapping[str, Any]]] = MappingProxyType(
    {
        ("session.create", "yolo"): ({"yolo": True}, {"yolo": False}),
        ("session.create", "accept_hooks"): ({"accept_hooks": True}, {"accept_hooks": False}),
        ("session.create", "ignore_rules"): ({"ignore_rules": True}, {"ignore_rules": False}),
        ("session.mutate", "payload"): (
            {"operation": "configure", "payload": {"yolo": True}},
            {"operation": "configure", "payload": {"yolo": False}},
        ),
        ("config.set", "key"): (
            {"key": "approvals.mode", "scope": "profile", "session_id": None},
            {"key": "display.skin", "scope": "profile", "session_id": None},
        ),
        ("config.set", "value"): ({"key": "yolo", "value": True}, {"key": "yolo", "value": False}),
        ("config.set", "scope"): ({"scope": "session"}, {"scope": "profile", "session_id": None}),
    }
)
"""For each parameter whose value tells which right it takes: parameters that ask for that, and some that do not."""

SEEN_BY_HANDLERS = {
    ("session.create", "cwd"),
    ("terminal.open", "cwd"),
    ("agent.put", "text"),
    ("slash.exec", "command"),
    ("prompt.cancel", "admission_id"),
}
"""Those of which only the handler can tell; each has a test below."""


def test_every_parameter_that_takes_a_right_of_its_own_is_tried() -> None:
    declared = {(method.name, name): need for method in EVERY for name, need in method.needs}
    assert {each for each, need in declared.items() if need.asked is not None} == ASKING.keys()
    assert {each for each, need in declared.items() if need.asked is None} == SEEN_BY_HANDLERS


@pytest.mark.parametrize(("name", "parameter"), ASKING)
async def test_a_parameter_that_takes_power_needs_the_right_to_it(house: House, name: str, parameter: str) -> None:
    method = METHODS[name]
    need = next(need for each, need in method.needs if each == parameter and need.asked is not None)
    asking, other = ASKING[name, parameter]
    async with counter(house) as at:
        params = {**at.params(method, at.own), **asking}
        plain = {**at.params(method, at.own), **other}
        enough = {method.right_for(read_params(method.params, params)), need.right}
        others = [right for right in Right if right is not need.right]
        refused = await at.ask(method, params, principal(*others))
        assert (lacking(refused), need.what in refused["error"]["message"]) == (need.right.value, True)
        allowed = await at.ask(method, params, principal(*enough))
        assert allowed["result"] == {"reached": name}
        without = await at.ask(method, plain, principal(method.right_for(read_params(method.params, plain))))
        assert without["result"] == {"reached": name}


async def test_a_definition_that_sets_approvals_needs_the_right_to_answer(house: House) -> None:
    async with counter(house) as at:
        method = METHODS["agent.put"]
        for text, needs in (
            ("---\napprovals: auto\n---\nWork.\n", "answer"),
            ("---\nmax_turns: 3\n---\nWork.\n", None),
        ):
            params = {"profile": OWN, "name": "worker", "text": text}
            assert lacking(await at.ask(method, params, principal(method.right), real=True)) == needs
            answer = await at.ask(method, params, principal(method.right, Right.ANSWER), real=True)
            assert answer["result"]["name"] == "worker"


async def test_a_command_that_edits_the_session_needs_control(house: House) -> None:
    async with counter(house) as at:
        method = METHODS["slash.exec"]
        of = {"profile": OWN, "session_id": at.own.ids["session_id"]}
        for command, needs in (("/title Another", "control"), ("/title", None), ("/status", None)):
            answer = await at.ask(method, {**of, "command": command}, principal(method.right), real=True)
            assert lacking(answer) == needs
        edited = await at.ask(
            method, {**of, "command": "/title Another"}, principal(method.right, Right.CONTROL), real=True
        )
        assert "Another" in edited["result"]["output"]


async def test_an_input_of_somebody_else_is_taken_back_with_control_alone(house: House) -> None:
    async with counter(house) as at:
        method = METHODS["prompt.cancel"]
        runtime = await house.runtime(OWN)
        session = await runtime.sessions.get(at.own.ids["session_id"])
        thread = await session.thread("main")
        first = await say(thread, "/do wait 1000", "one")
        queued = await say(thread, "/do say late", "two")
        params = {"profile": OWN, "session_id": session.session_id, "admission_id": queued.admission_id}
        refused = await at.ask(method, params, principal(method.right), real=True)
        assert refused["error"]["data"]["type"] == "not_found"
        done = await at.ask(method, params, principal(method.right, Right.CONTROL), real=True)
        assert done["result"]["status"] == "cancelled"
        assert first.status == "queued"
        runtime.sessions.interrupt_all()


async def test_a_directory_outside_of_the_profiles_own_needs_control(house: House, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    async with counter(house) as at:
        user = house.root / OWN / "home"
        (user / "project").mkdir()
        (user / "way-out").symlink_to(outside)
        create = METHODS["session.create"]
        for directory in (outside, user / "way-out", user / ".." / "..", tmp_path / "missing", Path("/")):
            asked = {"profile": OWN, "cwd": str(directory), "subscribe": False}
            answer = await at.ask(create, asked, principal(Right.SUBMIT), real=True)
            assert lacking(answer) == "control", directory
        for directory in (user, user / "project"):
            asked = {"profile": OWN, "cwd": str(directory), "subscribe": False}
            assert "result" in await at.ask(create, asked, principal(Right.SUBMIT), real=True)
        asked = {"profile": OWN, "cwd": str(outside), "subscribe": False}
        assert "result" in await at.ask(create, asked, principal(Right.SUBMIT, Right.CONTROL), real=True)
        opened = {"profile": OWN, "cwd": str(outside)}
        answer = await at.ask(METHODS["terminal.open"], opened, principal(Right.TERMINAL), real=True)
        assert lacking(answer) == "control"


async def test_a_sessions_own_setting_needs_control_and_the_profiles_needs_admin(house: House) -> None:
    async with counter(house) as at:
        method = METHODS["config.set"]
        own = {"key": "agent.max_turns", "value": 5, "scope": "session", "session_id": at.own.ids["session_id"]}
        shared = {"profile": OWN, "key": "agent.max_turns", "value": 5}
        answer = await at.ask(method, own, principal(Right.CONTROL), real=True)
        assert answer["result"]["scope"] == "session"
        assert lacking(await at.ask(method, shared, principal(Right.CONTROL), real=True)) == "admin"
        assert lacking(await at.ask(method, own, principal(Right.ADMIN), real=True)) == "control"
        assert (await at.ask(method, shared, principal(Right.ADMIN), real=True))["result"]["scope"] == "profile"
        foreign = {**own, "session_id": at.foreign.ids["session_id"]}
        answer = await at.ask(method, foreign, principal(Right.CONTROL), real=True)
        assert answer["error"]["data"]["type"] == "session_unknown"
        others = principal(*(right for right in Right if right not in (Right.CONTROL, Right.ADMIN)))
        for params in (own, shared):
            assert "result" not in await at.ask(method, params, others, real=True)
