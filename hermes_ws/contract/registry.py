"""How a method, an event and a question are declared.

A declaration is a value. Modules under `contract/methods/` make one constant per method; `contract/catalog.py` collects
them into one read-only table, from which validation, dispatch, documentation and generated types are derived.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar, final

from pydantic import BaseModel, GetJsonSchemaHandler, JsonValue
from pydantic_core import CoreSchema

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
class Needs:
    """In the annotation of a parameter: the right that it takes to ask for something by it.

    `what` is that something, as the subject of a sentence. `asked` tells from the value and from all parameters whether
    it is asked for; without it only the handler can tell, and says so with `methods.authority.demand`. With `instead`
    the right takes the place of the method's own.
    """

    right: Right
    what: str
    asked: Callable[[Any, Any], bool] | None = None
    instead: bool = False

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        shape = handler(schema)
        row: dict[str, JsonValue] = {"right": self.right.value, "for": self.what}
        if self.instead:
            row["instead"] = True
        return {**shape, NEEDS: [*shape.get(NEEDS, []), row]}


NEEDS = "x-needs"
"""The key under which the shape of a parameter tells which rights it takes."""


@final
@dataclass(frozen=True, slots=True)
class Varies:
    """In the annotation of a parameter: its shape is another for each value of the parameter `by`."""

    by: str
    shapes: Mapping[str, type[Params]]


VARIES = "x-by"
"""The key under which the shape of a parameter tells what it is for each value of another one."""


def varies_of(model: type[BaseModel]) -> tuple[tuple[str, Varies], ...]:
    """Which parameters have a shape that depends on another one."""
    fields = model.model_fields.items()
    return tuple((name, each) for name, field in fields for each in field.metadata if isinstance(each, Varies))


def needs_of(model: type[Params]) -> tuple[tuple[str, Needs], ...]:
    """Which parameters take a right of their own."""
    fields = model.model_fields.items()
    return tuple((name, each) for name, field in fields for each in field.metadata if isinstance(each, Needs))


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
    needs: tuple[tuple[str, Needs], ...] = ()
    """What parameters say in their annotations about the rights that they take."""
    whole: bool = False
    """Whether it is about all profiles at once, and only for who may address all of them."""

    @property
    def audited(self) -> bool:
        """Whether it is written down who called it: whatever takes more than looking."""
        return self.right not in (Right.NONE, Right.OBSERVE)

    def opened_by(self, rights: Collection[Right]) -> bool:
        """Whether somebody with these rights may call it, with some parameters at least."""
        opening = (Right.NONE, *rights)
        return self.right in opening or any(need.instead and need.right in opening for _, need in self.needs)

    def right_for(self, params: Params) -> Right:
        """The right that a request with these parameters takes in any case."""
        return next((need.right for need in self._asked(params) if need.instead), self.right)

    def further(self, params: Params) -> Iterator[tuple[str, Right]]:
        """The rights that these parameters take, as far as they tell it themselves, each with what takes it."""
        asked = self._asked(params)
        if all(not need.instead for need in asked):
            yield self.name, self.right
        for need in asked:
            yield need.what, need.right

    def need(self, parameter: str) -> Needs:
        """What a parameter says that only the handler can see. Raises `KeyError` when it says nothing such."""
        return {name: need for name, need in self.needs if need.asked is None}[parameter]

    def _asked(self, params: Params) -> list[Needs]:
        told = ((getattr(params, name), need, need.asked) for name, need in self.needs)
        return [need for value, need, asked in told if asked is not None and asked(value, params)]


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
    whole: bool = False,
) -> Method[P, R]:
    """Declare a method. The catalog refuses two of one name. Parameters that take a further right say so themselves."""
    return Method(name, params, result, scope, right, order, errors, doc, needs_of(params), whole)


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
