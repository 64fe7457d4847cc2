from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context

import anyio
import anyio.to_thread
import pytest
import trio

from hermes_ws.scope.current import Bound, Current, NothingBound, bind, bind_into, bound, in_thread, standing
from hermes_ws.scope.profile_scope import ProfileScope


def test_nothing_is_bound_by_itself_and_the_error_says_who_should_have() -> None:
    """Cases IDENT-04, SCOPE-12: never a default."""
    with pytest.raises(NothingBound, match=r"server/dispatch\.py.*runtime.*session/execution\.py"):
        bound()
    assert standing() is None


def test_what_is_bound_holds_in_the_block_and_what_was_before_after_it(a: ProfileScope, b: ProfileScope) -> None:
    """Cases SCOPE-13, IDENT-12: the launch profile is bound like any other, and an override does not stick."""
    with bind(Bound(a)):
        with bind(Bound(b, "c", "s", 3)):
            assert bound() == Bound(b, "c", "s", 3)
        assert bound() == Bound(a)
    with pytest.raises(NothingBound):
        bound()


def test_a_block_that_fails_unbinds_too(a: ProfileScope) -> None:
    with pytest.raises(ZeroDivisionError), bind(Bound(a)):
        _ = 1 / 0
    assert standing() is None


def test_a_binding_is_whole(a: ProfileScope, b: ProfileScope) -> None:
    """Case SCOPE-02: there is no home without secrets, and no way to change one of them."""
    value = Bound(a)
    with pytest.raises(AttributeError):
        value.scope = b  # type: ignore[misc]
    assert value.scope.home.path.name == value.scope.profile.text == "a"


def test_the_registry_has_one_variable_and_takes_no_other(a: ProfileScope) -> None:
    current = Current()
    with pytest.raises(AttributeError):
        current.profile = a  # type: ignore[attr-defined]
    with bind(Bound(a)):
        assert list(current) == ["bound"]
        assert current.bound == Bound(a)


def test_a_context_can_be_bound_before_it_runs(a: ProfileScope) -> None:
    context = Context()
    bind_into(context, Bound(a))
    assert context.run(bound) == Bound(a)
    assert standing() is None


def test_a_raw_thread_and_an_executor_see_nothing(a: ProfileScope) -> None:
    """Cases CTX-01, CTX-03, CTX-05: a loud error, never the launch profile."""
    seen: list[object] = []
    with bind(Bound(a)):
        thread = threading.Thread(target=lambda: seen.append(standing()))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(1) as pool:
            assert isinstance(pool.submit(bound).exception(), NothingBound)
    assert seen == [None]


def test_a_raw_thread_that_is_given_a_context_sees_what_is_bound_there(a: ProfileScope) -> None:
    seen: list[Bound] = []
    with bind(Bound(a)):
        thread = threading.Thread(target=copy_context().run, args=(lambda: seen.append(bound()),))
    thread.start()
    thread.join()
    assert seen == [Bound(a)]


async def test_a_worker_thread_sees_what_is_bound_and_changes_nothing(a: ProfileScope, b: ProfileScope) -> None:
    """Case CTX-11: there and back, and nothing flows back."""

    def work(word: str) -> tuple[str, Bound, Bound]:
        here = bound()
        bind(Bound(b)).__enter__()
        return word, here, trio.from_thread.run_sync(bound)

    with bind(Bound(a)):
        word, inside, back = await in_thread(trio.CapacityLimiter(1), work, "x")
        assert (word, inside) == ("x", Bound(a))
        assert back == Bound(b)
        assert bound() == Bound(a)


async def test_a_limiter_bounds_the_threads_of_a_profile(a: ProfileScope) -> None:
    limiter, most = trio.CapacityLimiter(2), 0

    def work() -> None:
        nonlocal most
        most = max(most, limiter.borrowed_tokens)

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(in_thread, limiter, work)
    assert most == 2 or most == 1


async def test_tasks_of_two_profiles_keep_their_own(a: ProfileScope, b: ProfileScope) -> None:
    """Cases CTX-02, CTX-04: read twice with a pause, fifty times, side by side."""
    seen: list[tuple[ProfileScope, ProfileScope, ProfileScope]] = []

    async def job(scope: ProfileScope) -> None:
        with bind(Bound(scope)):
            first = bound().scope
            await trio.lowlevel.checkpoint()
            second = await in_thread(limiter, lambda: bound().scope)
            seen.append((scope, first, second))

    limiter = trio.CapacityLimiter(4)
    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(job, a)
            nursery.start_soon(job, b)
    assert len(seen) == 100
    assert all(scope is first is second for scope, first, second in seen)


async def test_a_task_takes_its_owners_scope_and_not_its_starters(a: ProfileScope, b: ProfileScope) -> None:
    """Case CTX-12: started from a turn of B in the nursery of A's owner, it acts for A."""
    context, seen = Context(), []

    async def task() -> None:
        seen.append(bound().scope)

    async with trio.open_nursery() as nursery:
        bind_into(context, Bound(a))
        with bind(Bound(b)):
            context.copy().run(nursery.start_soon, task)
    assert seen == [a]


async def test_a_timer_keeps_what_was_bound_when_it_was_armed(autojump_clock: trio.abc.Clock, b: ProfileScope) -> None:
    """Case CTX-08."""
    seen: list[Bound] = []

    async def later() -> None:
        await trio.sleep(1)
        seen.append(bound())

    async with trio.open_nursery() as nursery:
        with bind(Bound(b)):
            nursery.start_soon(later)
        assert standing() is None
    assert seen == [Bound(b)]


async def test_what_a_child_binds_is_not_its_parents(a: ProfileScope) -> None:
    """Case CTX-07: the parent's session stays its own."""

    async def child(session: str) -> None:
        bind(Bound(a, session=session)).__enter__()
        await trio.lowlevel.checkpoint()
        assert bound().session == session

    with bind(Bound(a, session="parent")):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child, "one")
            nursery.start_soon(child, "two")
        assert bound().session == "parent"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_thread_hop_is_the_same_on_both_backends(a: ProfileScope, backend: str) -> None:
    """Case CTX-13."""

    async def main() -> Bound:
        with bind(Bound(a)):
            return await anyio.to_thread.run_sync(bound)

    assert anyio.run(main, backend=backend) == Bound(a)
