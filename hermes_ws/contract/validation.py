"""Turning what was sent into a declared shape, and what does not fit into the error that names the place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, cast

from pydantic import BaseModel, JsonValue, ValidationError

from hermes_ws.contract.errors import InvalidParams, UnknownParameter

M = TypeVar("M", bound=BaseModel)


def read_params(shape: type[M], sent: Mapping[str, JsonValue] | None, *, where: str = "") -> M:
    """Validate `sent` as `shape`. `where` stands before the path in errors (`result`, say).

    Raises `UnknownParameter` for a key that is not declared and `InvalidParams` for anything else, each with the path
    of the first place that does not fit. What was sent is not repeated in the message: it may be a secret.
    """
    try:
        # What `model_validate` does, without looking first at options that are not given.
        return cast("M", shape.__pydantic_validator__.validate_python(sent if sent is not None else {}))
    except ValidationError as error:
        raise unfit(error, where) from None


def unfit(error: ValidationError, where: str = "") -> InvalidParams:
    """The error that names the first place that does not fit."""
    detail = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path = ".".join(str(part) for part in ((where, *detail["loc"]) if where else detail["loc"]))
    if detail["type"] == "extra_forbidden":
        return UnknownParameter(f"There is no parameter {path}.", path=path)
    reason = detail["msg"].removeprefix("Value error, ")
    if not path:
        return InvalidParams(f"The parameters do not fit together: {reason}.", path=path)
    return InvalidParams(f"{path} is not valid: {reason}.", path=path)
