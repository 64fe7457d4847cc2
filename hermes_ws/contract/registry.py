"""How a method, an event and a question are declared.

A declaration is a value. Modules under `contract/methods/` make one constant per method; `contract/catalog.py` collects
them into one read-only table, from which validation, dispatch, documentation and generated types are derived.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar, final

from pydantic import JsonValue

from hermes_ws.contract.errors import HermesError
from hermes_ws.contract.model import Params, Result

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=Result)


@final
class Scope(Enum):
    """What the dispatcher resolves and binds before the handler runs. Each one includes those above it."""

    CONNECTION = "connection"
    SERVER = "server"
    PROFILE = "profile"
    SESSION = "session"
    THREAD = "thread"


@final
class Right(Enum):
    """What a principal must hold. `NONE` is for what anybody past the credential check may ask."""

    NONE = "none"
    OBSERVE = "observe"
    SUBMIT = "submit"
    ANSWER = "answer"
    CONTROL = "control"
    TERMINAL = "terminal"
    ADMIN = "admin"


@final
class Order(Enum):
    """Which requests of a connection run one after the other. `NOW` overtakes all others; `FREE` runs side by side."""

    NOW = "now"
    FREE = "free"
    CONNECTION = "connection"
    PROFILE = "profile"
    SESSION = "session"
    THREAD = "thread"


@final
@dataclass(frozen=True, slots=True)
class Method(Generic[P, R]):
    """One method: its name, shapes, scope, right, order, and the errors it may answer with besides the general ones."""

    name: str
    params: type[P]
    result: type[R]
    scope: Scope
    right: Right
    order: Order
    errors: tuple[type[HermesError], ...]
    doc: str
    demands: tuple[tuple[str, Right], ...] = ()
    """Parameters that need a further right when they ask for anything."""
    instead: tuple[tuple[str, JsonValue, Right], ...] = ()
    """Values of parameters with which another right is needed in the place of `right`."""
    whole: bool = False
    """Whether it is about all profiles at once, and only for who may address all of them."""

    @property
    def audited(self) -> bool:
        """Whether it is written down who called it: whatever takes more than looking."""
        return self.right not in (Right.NONE, Right.OBSERVE)

    def opened_by(self, rights: Collection[Right]) -> bool:
        """Whether somebody with these rights may call it, with some parameters at least."""
        opening = (Right.NONE, *rights)
        return self.right in opening or any(right in opening for _, _, right in self.instead)

    def right_for(self, params: Params) -> Right:
        """The right that a request with these parameters needs, before what `demands` adds."""
        return next((right for name, value, right in self.instead if getattr(params, name) == value), self.right)

    def further(self, params: Params) -> Iterator[tuple[str, Right]]:
        """What can only be told from the parameters: the rights that they need, each with what needs it."""
        if self.instead:
            yield self.name, self.right_for(params)
        for name, right in self.demands:
            if getattr(params, name):
                yield name, right


@final
@dataclass(frozen=True, slots=True)
class Event:
    """One event type. Live events carry no cursor and are never needed to be correct, only to be prompt."""

    type: str
    payload: type[Result]
    live: bool
    doc: str


@final
@dataclass(frozen=True, slots=True)
class Question:
    """One kind of question that the server asks a person through a client. A `secret` answer is kept nowhere, but for
    the fields of it that are `told`."""

    kind: str
    params: type[Result]
    result: type[Params]
    doc: str
    secret: bool = False
    told: tuple[str, ...] = ()


def method(
    name: str,
    params: type[P],
    result: type[R],
    *,
    scope: Scope,
    right: Right,
    order: Order,
    doc: str,
    errors: tuple[type[HermesError], ...] = (),
    demands: Mapping[str, Right] | None = None,
    instead: tuple[tuple[str, JsonValue, Right], ...] = (),
    whole: bool = False,
) -> Method[P, R]:
    """Declare a method. The catalog refuses two of one name. `demands` names parameters that need a further right;
    `instead` gives values of parameters with which another right takes the place of `right`.
    """
    needs = tuple((demands or {}).items())
    return Method(name, params, result, scope, right, order, errors, doc, needs, instead, whole)


def event(type: str, payload: type[Result], *, doc: str, live: bool = False) -> Event:
    """Declare an event type."""
    return Event(type, payload, live, doc)


def question(
    kind: str,
    params: type[Result],
    result: type[Params],
    *,
    doc: str,
    secret: bool = False,
    told: tuple[str, ...] = (),
) -> Question:
    """Declare a kind of question. `told` names the fields of a secret answer that are none themselves."""
    return Question(kind, params, result, doc, secret, told)
