"""Rights that a request needs because of what it asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_ws.contract.catalog import METHODS
from hermes_ws.contract.registry import Right
from tests.permissions.counter import EVERY, OWN, counter, principal
from tests.session.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    root = tmp_path / "homes"
    root.mkdir(mode=0o700)
    return House(root)


def lacking(answer: dict[str, Any]) -> str | None:
    """The right that the caller was refused for."""
    error = answer.get("error", {})
    return error["data"]["right"] if error.get("code") == 4003 else None


async def test_a_parameter_that_takes_power_needs_the_right_to_it(house: House) -> None:
    async with counter(house) as at:
        demanding = [(method, name, right) for method in EVERY for name, right in method.demands]
        assert {("session.create", "yolo"), ("session.create", "accept_hooks"), ("session.create", "ignore_rules")} <= {
            (method.name, name) for method, name, _ in demanding
        }
        for method, name, right in demanding:
            params = {**at.params(method, at.own), name: True}
            assert lacking(await at.ask(method, params, principal(method.right))) == right.value
            allowed = await at.ask(method, params, principal(method.right, right))
            assert allowed["result"] == {"reached": method.name}
            without = await at.ask(method, {**params, name: False}, principal(method.right))
            assert without["result"] == {"reached": method.name}


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


async def test_a_change_of_approvals_needs_the_right_to_answer(house: House) -> None:
    async with counter(house) as at:
        method = METHODS["config.set"]
        change = {"profile": OWN, "key": "approvals.mode", "value": "auto"}
        assert lacking(await at.ask(method, change, principal(Right.ADMIN), real=True)) == "answer"
        answer = await at.ask(method, change, principal(Right.ADMIN, Right.ANSWER), real=True)
        assert lacking(answer) is None
        other = {"profile": OWN, "key": "display.skin", "value": "plain"}
        assert "result" in await at.ask(method, other, principal(Right.ADMIN), real=True)


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
