"""How a handler is tied to its declaration."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar, cast, final

from hermes_ws.contract.catalog import AnyMethod
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.registry import Method, Scope
from hermes_ws.methods.ports import ConnectionCall, ProfileCall, ServerCall, SessionCall, ThreadCall

C = TypeVar("C", bound=ConnectionCall)
P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=Result)

Run = Callable[[ConnectionCall, Params], Awaitable[Result]]
Answer = Callable[[ConnectionCall, Params], Result]

_CALLS: Mapping[Scope, type[ConnectionCall]] = MappingProxyType(
    {
        Scope.CONNECTION: ConnectionCall,
        Scope.SERVER: ServerCall,
        Scope.PROFILE: ProfileCall,
        Scope.SESSION: SessionCall,
        Scope.THREAD: ThreadCall,
    }
)


@final
@dataclass(frozen=True, slots=True)
class Handler:
    """A declaration and what answers it. `answer` is there when the handler is a plain function, which waits for
    nothing: it may then be called without a task of its own."""

    method: AnyMethod
    run: Run
    answer: Answer | None = None


def handles(method: Method[P, R]) -> Callable[[Callable[[C, P], Awaitable[R] | R]], Handler]:
    """Tie a function to a declaration. The call it takes must be the one of the declared scope; anything else is an
    import error, since a handler that got less than it needs would act for nobody.
    """

    def tie(function: Callable[[C, P], Awaitable[R] | R]) -> Handler:
        hints = typing.get_type_hints(function)
        taken = next(iter(hints.values()))
        if taken is not _CALLS[method.scope]:
            wanted = _CALLS[method.scope].__name__
            raise ImportError(f"{method.name} has scope {method.scope.value}: its handler takes a {wanted}")
        if inspect.iscoroutinefunction(function):
            return Handler(cast("AnyMethod", method), cast("Run", function))
        answer = cast("Answer", function)

        async def run(call: ConnectionCall, params: Params) -> Result:
            return answer(call, params)

        return Handler(cast("AnyMethod", method), run, answer)

    return tie
