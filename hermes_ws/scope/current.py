"""What is bound: the only context variable of the product, and the only ways to set and to read it.

Its value is one frozen `Bound`, so that nothing is bound by half. There is no default. A raw thread, an executor and a
system task see nothing, and nothing means refused (cases CTX-05, IDENT-04, IDENT-12: the launch profile is bound like
any other). Binding happens in `server/dispatch.py`, `hosting/runtime.py` and `session/execution.py`.

The registry declares the variable; it is read and set through the plain variable underneath, at a tenth of the cost.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, ContextVar, Token
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar, TypeVarTuple, cast, final

import trio
from contextvars_extras import ContextVarDescriptor, ContextVarsRegistry

if TYPE_CHECKING:
    from hermes_ws.scope.home import ProfileHome
    from hermes_ws.scope.profile_scope import ProfileScope

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class NothingBound(RuntimeError):
    """Code that acts for a profile ran where none is bound: a bug of ours, never the client's."""


@final
@dataclass(frozen=True, slots=True)
class Bound:
    """For whom the running code acts. `connection`, `session` and `execution` are None where there is none."""

    scope: ProfileScope
    connection: str | None = None
    session: str | None = None
    execution: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Permitted:
    """What was bound where a permit was given, and what the guard lets pass besides, until something else is bound."""

    bound: Bound | None
    homes: tuple[ProfileHome, ...]
    processes: bool


@final
class Current(ContextVarsRegistry):
    """The registry with its one variable."""

    _registry_allocate_on_setattr: ClassVar[bool] = False
    bound: ContextVarDescriptor[Bound | Permitted] = ContextVarDescriptor()


_VARIABLE: Final = cast("ContextVar[Bound | Permitted]", Current.bound.context_var)


@final
class Binding:
    """A value that holds inside of the `with` block. Entered and left in the same task, once."""

    __slots__ = ("_token", "_value")

    def __init__(self, value: Bound | Permitted) -> None:
        self._value = value

    def __enter__(self) -> None:
        self._token: Token[Bound | Permitted] = _VARIABLE.set(self._value)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _VARIABLE.reset(self._token)


def bind(value: Bound) -> Binding:
    """Bind for the length of a `with` block. What was bound before is bound again afterwards."""
    return Binding(value)


def bind_into(context: Context, value: Bound) -> None:
    """Bind in a context that is not running, for the tasks that an owner will start in it."""
    context.run(_VARIABLE.set, value)


def bound() -> Bound:
    """What is bound here. Raises NothingBound."""
    value = _VARIABLE.get(None)
    if type(value) is Bound:
        return value
    if type(value) is Permitted and value.bound is not None:
        return value.bound
    raise NothingBound(
        "No profile is bound here. A request handler is bound by server/dispatch.py, a task of a profile by its "
        "runtime (start it with runtime.start_soon), a turn by session/execution.py; a raw thread is bound by nobody: "
        "use scope.current.in_thread."
    )


def standing() -> Bound | Permitted | None:
    """What is bound or permitted here, without an error. For the guard."""
    return _VARIABLE.get(None)


async def in_thread(limiter: trio.CapacityLimiter, fn: Callable[[*Ts], T], *args: *Ts) -> T:
    """Run `fn` in a worker thread with what is bound here, at most as many at once as `limiter` allows.

    What `fn` binds does not flow back (case CTX-11). Cancelling waits for the thread: it is never left behind.
    """
    return await trio.to_thread.run_sync(fn, *args, limiter=limiter)
