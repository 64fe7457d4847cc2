"""Reading a result into the shape that the contract promises, and refusing one that names things by nothing.

A blank identifier would be stored, compared and sent back, and would then mean "any" or "the first" somewhere. So a
reply that has one is no reply.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar, cast

from pydantic import BaseModel, JsonValue, ValidationError

from hermes_ws.client.failures import ReplyRefused
from hermes_ws.client.incoming import first_problem
from hermes_ws.contract.model import Result

R = TypeVar("R", bound=Result)

NAMES = frozenset({"id", "cursor", "profile", "name", "launch"})
"""Fields that identify something, besides all that end in `_id`."""


def read_result(shape: type[R], result: JsonValue, subject: str) -> R:
    """`result` as a `shape`. Raises ReplyRefused, which names the place that is wrong."""
    try:
        read = shape.model_validate(result)
    except ValidationError as error:
        raise ReplyRefused(subject, first_problem(error)) from None
    blank = next(_blanks(read, ""), None)
    if blank is not None:
        raise ReplyRefused(subject, f"{blank} is blank")
    return read


def _blanks(value: BaseModel, path: str) -> Iterator[str]:
    for name in type(value).model_fields:
        held = cast("object", getattr(value, name))
        here = f"{path}{name}"
        if isinstance(held, str):
            if not held.strip() and (name in NAMES or name.endswith("_id")):
                yield here
        elif isinstance(held, BaseModel):
            yield from _blanks(held, f"{here}.")
        elif isinstance(held, list):
            for index, each in enumerate(cast("list[object]", held)):
                if isinstance(each, BaseModel):
                    yield from _blanks(each, f"{here}.{index}.")
