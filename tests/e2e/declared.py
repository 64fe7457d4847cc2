"""Whether what a server says is what the contract declares: every key, every type, every error."""

from __future__ import annotations

import inspect
from typing import Any

from pydantic import BaseModel

from hermes_ws.contract import errors
from hermes_ws.contract.catalog import METHODS
from hermes_ws.contract.events import EVENTS, Envelope
from hermes_ws.contract.general import general
from hermes_ws.contract.questions import QUESTIONS

ERRORS = {
    each.type: each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, errors.HermesError)
}
ENVELOPE = frozenset(Envelope.model_fields)


def check(frame: dict[str, Any], asked: str | None) -> None:
    """Raises AssertionError for a frame that the contract does not declare. `asked` is the method that it answers."""
    if frame.get("method") == "event":
        params = frame["params"]
        assert params.keys() <= ENVELOPE, params.keys() - ENVELOPE
        _fits(EVENTS[params["type"]].payload, params["payload"], params["type"])
    elif "method" in frame:
        _fits(QUESTIONS[frame["method"]].params, frame["params"], frame["method"])
    elif "result" in frame and asked is not None:
        _fits(METHODS[asked].result, frame["result"], asked)
    elif asked in METHODS:
        method, given = METHODS[asked], frame["error"]["data"]["type"]
        declared = (*method.errors, *general(method.scope))
        assert issubclass(ERRORS[given], declared), f"{asked} answers {given}, which is not declared"


def _fits(model: type[BaseModel], value: dict[str, Any], what: str) -> None:
    read = model.model_validate(value).model_dump(mode="json", exclude_unset=True, by_alias=True)
    assert read == value, f"{what} carries what is not declared: {_difference(read, value)}"


def _difference(read: Any, value: Any, path: str = "") -> str:
    if isinstance(read, dict) and isinstance(value, dict):
        for key in value:
            if key not in read:
                return f"{path}.{key}"
            if read[key] != value[key]:
                return _difference(read[key], value[key], f"{path}.{key}")
    if isinstance(read, list) and isinstance(value, list):
        for number, (one, other) in enumerate(zip(read, value, strict=False)):
            if one != other:
                return _difference(one, other, f"{path}[{number}]")
    return f"{path}: {value!r} is read as {read!r}"
