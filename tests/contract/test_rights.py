"""The rights that a request takes, as its declaration tells them."""

from __future__ import annotations

from typing import Annotated, cast

import pytest

from hermes_ws.contract.catalog import METHODS
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.registry import NEEDS, Needs, Order, Right, Scope, method, needs_of
from hermes_ws.contract.validation import read_params


def _given(value: bool, params: object) -> bool:
    return value


def _other(value: str, params: object) -> bool:
    return value == "other"


class Tried(Params):
    power: Annotated[bool, Needs(Right.ANSWER, "power", _given)] = False
    kind: Annotated[str, Needs(Right.CONTROL, "another kind", _other, instead=True)] = "usual"
    place: Annotated[str | None, Needs(Right.TERMINAL, "a place elsewhere")] = None
    plain: str = ""


class Done(Result):
    pass


TRY = method("try.it", Tried, Done, scope=Scope.SERVER, right=Right.SUBMIT, order=Order.FREE, doc="Try it.")


def test_a_method_knows_what_its_parameters_take() -> None:
    assert [(name, each.right) for name, each in needs_of(Tried)] == [
        ("power", Right.ANSWER),
        ("kind", Right.CONTROL),
        ("place", Right.TERMINAL),
    ]
    assert TRY.needs == needs_of(Tried)


@pytest.mark.parametrize(
    ("params", "right", "further"),
    [
        (Tried(), Right.SUBMIT, {Right.SUBMIT}),
        (Tried(power=True), Right.SUBMIT, {Right.SUBMIT, Right.ANSWER}),
        (Tried(kind="other"), Right.CONTROL, {Right.CONTROL}),
        (Tried(kind="other", power=True), Right.CONTROL, {Right.CONTROL, Right.ANSWER}),
        (Tried(place="/elsewhere"), Right.SUBMIT, {Right.SUBMIT}),
    ],
)
def test_what_is_asked_for_decides_which_rights_it_takes(params: Tried, right: Right, further: set[Right]) -> None:
    assert TRY.right_for(params) is right
    assert {each for _, each in TRY.further(params)} == further
    assert all(what in {"try.it", "power", "another kind"} for what, _ in TRY.further(params))


@pytest.mark.parametrize(
    ("rights", "opened"),
    [({Right.SUBMIT}, True), ({Right.CONTROL}, True), ({Right.ANSWER, Right.TERMINAL}, False), (set(), False)],
)
def test_a_method_is_open_to_those_who_may_call_it_in_some_way(rights: set[Right], opened: bool) -> None:
    assert TRY.opened_by(rights) is opened


def test_what_anybody_may_ask_is_open_to_those_without_rights() -> None:
    assert METHODS["gateway.ping"].opened_by(())
    assert not METHODS["gateway.ping"].audited
    assert METHODS["session.create"].audited


def test_what_only_a_handler_can_see_is_asked_by_the_name_of_its_parameter() -> None:
    assert TRY.need("place").right is Right.TERMINAL
    for name in ("power", "plain"):
        with pytest.raises(KeyError):
            TRY.need(name)


def test_the_shape_of_a_parameter_tells_what_it_takes() -> None:
    shape = cast("dict[str, dict[str, object]]", Tried.model_json_schema()["properties"])
    assert shape["power"][NEEDS] == [{"right": "answer", "for": "power"}]
    assert shape["kind"][NEEDS] == [{"right": "control", "for": "another kind", "instead": True}]
    assert NEEDS not in shape["plain"]


@pytest.mark.parametrize(
    ("name", "sent", "rights"),
    [
        ("config.set", {"key": "approvals.mode", "value": "auto"}, {Right.ADMIN, Right.ANSWER}),
        ("config.set", {"key": "display.skin", "value": "plain"}, {Right.ADMIN}),
        ("config.set", {"key": "yolo", "value": True, "scope": "session", "session_id": "s-1"},
         {Right.CONTROL, Right.ANSWER}),
        ("config.set", {"key": "yolo", "value": False, "scope": "session", "session_id": "s-1"}, {Right.CONTROL}),
        ("session.create", {"yolo": True, "ignore_rules": True}, {Right.SUBMIT, Right.ANSWER, Right.CONTROL}),
        ("session.mutate", {"session_id": "s-1", "request_id": "r", "expected_revision": 1, "operation": "configure",
                            "payload": {"yolo": True}}, {Right.CONTROL, Right.ANSWER}),
        ("session.mutate", {"session_id": "s-1", "request_id": "r", "expected_revision": 1, "operation": "rename",
                            "payload": {"title": "yolo"}}, {Right.CONTROL}),
    ],
)  # fmt: skip
def test_the_contract_asks_for_the_rights_that_the_page_names(
    name: str, sent: dict[str, object], rights: set[Right]
) -> None:
    declared = METHODS[name]
    params = read_params(declared.params, sent)
    assert {each for _, each in declared.further(params)} == rights
