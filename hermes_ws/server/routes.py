"""What the requests for one method have in common, worked out once for all who hold the same rights."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Final, cast, final

from pydantic import JsonValue

from hermes_ws.contract.errors import MethodUnknown, NeedsConnection, PermissionDenied
from hermes_ws.contract.model import Params
from hermes_ws.contract.registry import Order, Right, Scope
from hermes_ws.methods.authority import lacking
from hermes_ws.methods.handler import Handler
from hermes_ws.server.ports import Caller

AT_ONCE: Final = frozenset({Scope.SERVER, Scope.PROFILE})
"""Scopes that can be bound without waiting for the database."""

Validate = Callable[[Mapping[str, JsonValue]], Params]
"""Makes parameters of what was sent. Raises `ValidationError`."""

_UNORDERED: Final = frozenset({Order.NOW, Order.FREE})


@final
class Route:
    """From a request for one method to its handler, for those who hold `rights`.

    `guarded` tells that `check` has something to look at, `conditional` that parameters may need a further right,
    `ordered` that requests may have to wait for one another, `located` that parameters may tell by an id which profile
    they are about. `plain` gives the answer without a task of its own, which costs more than most answers: possible
    where the handler waits for nothing and nothing is to be written down. `validate` is the shape of the parameters.
    """

    __slots__ = (
        "_opened",
        "conditional",
        "guarded",
        "handler",
        "located",
        "method",
        "on_server",
        "ordered",
        "plain",
        "validate",
    )

    def __init__(self, handler: Handler, rights: frozenset[Right]) -> None:
        method = handler.method
        self.handler: Final = handler
        self.method: Final = method
        self.validate: Final = cast("Validate", method.params.__pydantic_validator__.validate_python)
        self._opened: Final = method.opened_by(rights)
        self.guarded: Final = not self._opened or method.whole or method.scope is Scope.CONNECTION
        self.conditional: Final = bool(method.needs)
        self.ordered: Final = method.order not in _UNORDERED
        self.located: Final = method.params.located_by is not Params.located_by
        self.on_server: Final = method.scope is Scope.SERVER
        self.plain: Final = None if method.audited or method.scope not in AT_ONCE else handler.answer

    def check(self, caller: Caller) -> None:
        """Raises `NeedsConnection`, `PermissionDenied` for a caller that may not ask for this at all."""
        method = self.method
        if method.scope is Scope.CONNECTION and not caller.lasting:
            raise NeedsConnection(f"{method.name} is about a connection, and one HTTP request is none.")
        if not self._opened:
            raise lacking(caller.principal.name, method.right, method.name)
        if method.whole and (caller.profile is not None or caller.principal.profiles is not None):
            raise PermissionDenied(
                f"{method.name} is about all profiles, and {caller.principal.name} may not address all of them here.",
                hint="Ask whoever runs the server.",
            )

    def check_parameters(self, caller: Caller, params: Params) -> None:
        """Raises `PermissionDenied` for parameters that need a right which the caller does not hold."""
        for what, right in self.method.further(params):
            if right is not Right.NONE and right not in caller.principal.rights:
                raise lacking(caller.principal.name, right, what)

    def lane(self, caller: Caller, params: Params) -> Hashable | None:
        """What a request must share with another to come after it; None where it waits for none."""
        order = self.method.order
        if order is Order.CONNECTION:
            return order
        if order is Order.PROFILE:
            return order, getattr(params, "profile", None) or caller.profile
        if order is Order.SESSION:
            return order, getattr(params, "session_id", None)
        if order is Order.THREAD:
            return order, getattr(params, "session_id", None), getattr(params, "thread_id", None)
        return None


@final
class Routes(dict[str, Route]):
    """The routes of those who hold the same rights, by method. Filled as they are asked for."""

    __slots__ = ("_handlers", "_rights")

    def __init__(self, handlers: Mapping[str, Handler], rights: frozenset[Right]) -> None:
        super().__init__()
        self._handlers = handlers
        self._rights = rights

    def __missing__(self, method: str) -> Route:
        """Find it once. Raises `MethodUnknown`."""
        handler = self._handlers.get(method)
        if handler is None:
            raise MethodUnknown(f"There is no method {method}.")
        route = self[method] = Route(handler, self._rights)
        return route
