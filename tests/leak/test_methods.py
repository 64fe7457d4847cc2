"""Every registered method, asked about one side after the other and about all at once: what is said about one holds
nothing of another, and an id of one opens nothing in another.
"""

from __future__ import annotations

import pytest

from hermes_ws.contract.catalog import METHODS
from hermes_ws.contract.registry import Scope
from tests.e2e.process import environment_of
from tests.leak import examples
from tests.leak.world import World

REFUSALS = {
    "profile_unknown", "profile_mismatch", "session_unknown", "thread_unknown", "not_found", "permission_denied",
}  # fmt: skip

CALLED = sorted(METHODS.keys() - examples.ALONE)


def example_of(name: str) -> examples.Example:
    found = examples.METHODS.get(name)
    assert found is not None, f"{name} has no example: add one to tests/leak/examples.py, METHODS (it says how)"
    return found


def test_every_method_has_an_example() -> None:
    missing = sorted(METHODS.keys() - examples.METHODS.keys() - examples.ALONE)
    assert not missing, f"add an example of {missing} to tests/leak/examples.py, METHODS (it says how)"


@pytest.mark.parametrize("name", CALLED)
def test_in_the_order_a_b_a_and_interleaved_nothing_crosses(world: World, name: str) -> None:
    example = example_of(name)
    first, second = world.sides[:2]
    for side in (first, second, first) if len(world.sides) == 2 else (first,):
        params = example(world, side)
        METHODS[name].params.model_validate(params, strict=False)
        world.check(side, world.outcome(world.owner, world.owner.send(name, **params)), name)
    if METHODS[name].scope in (Scope.SERVER, Scope.CONNECTION) and "profile" not in example(world, first):
        return  # It is about no side; asked once, it has said all that it says.
    around = [(side, example(world, side)) for side in (*world.sides, first)]
    sent = [(side, world.owner.send(name, **params)) for side, params in around]
    for side, id in sent:
        world.check(side, world.outcome(world.owner, id), f"{name}, interleaved")


@pytest.mark.parametrize("name", CALLED)
def test_ids_of_one_open_nothing_through_another(world: World, name: str) -> None:
    """By a connection that is bound to the other profile, and by naming the other profile (IDENT-01, SCOPE-15)."""
    method = METHODS[name]
    example = example_of(name)
    first, second = world.sides[:2]
    if len(world.sides) > 2:
        return  # The pair is the same among twenty; what is told to all of them is asked above.
    params = example(world, first)
    located = method.params.model_validate(params, strict=False).located_by()
    if located is None and "profile" not in params:
        assert method.scope in (Scope.SERVER, Scope.CONNECTION, Scope.PROFILE)
        return
    answers = [world.outcome(second.client, second.client.send(name, **params))]
    if located is not None and "profile" in method.params.model_fields:
        mixed = {**params, "profile": second.name}
        answers.append(world.outcome(world.owner, world.owner.send(name, **mixed)))
    for answer in answers:
        world.check(second, answer, f"{name} with ids of {first.name}")
        assert answer.get("type") in REFUSALS, f"{name} with ids of {first.name}, asked by {second.name}: {answer}"


def test_an_id_alone_tells_nothing_about_whether_it_exists(world: World) -> None:
    first, second = world.sides[:2]
    real = world.outcome(second.client, second.client.send("session.info", session_id=first.session))
    made_up = f"{first.origin}-zzzzzzzzzzzz"
    false = world.outcome(second.client, second.client.send("session.info", session_id=made_up))
    assert str(real).replace(first.session, made_up) == str(false)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_an_unknown_profile_is_refused_alike_by_every_method(world: World, name: str) -> None:
    """IDENT-06, IDENT-07: never a fall-back to the launch profile."""
    if name in examples.ALONE or len(world.sides) > 2 or "profile" not in METHODS[name].params.model_fields:
        return
    params = {**example_of(name)(world, world.sides[0]), "profile": "nobody-is-called-this"}
    answer = world.outcome(world.owner, world.owner.send(name, **params))
    assert answer.get("type") == "profile_unknown", f"{name}: {answer}"


def test_the_process_environment_is_the_same_bytes_after_all_of_it(world: World) -> None:
    """ENV-01."""
    assert environment_of(world.server.pid) == world.environment
