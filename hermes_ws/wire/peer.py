"""One JSON text from the other side, read as JSON-RPC 2.0 (https://www.jsonrpc.org/specification).

Strict in what decides about meaning (version, id, shape of the parameters), indifferent to keys that it does not know.
Nothing here validates parameters; that is the declared method's business.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, cast, final

import orjson
from pydantic import JsonValue

from hermes_ws.contract.errors import HermesError, InvalidRequest, ParamsNotObject, ParseError
from hermes_ws.wire.frames import RequestId, scrub

ID_CHARACTERS: Final = 128
"""Longest id of a request; a UUID with a prefix fits, and it is repeated in the answer."""

METHOD_CHARACTERS: Final = 128
"""Longest name of a method that is worth looking up."""

CANCEL: Final = "$/cancel"
"""The one notification that a client sends: it no longer wants the answer to `params.id`."""

_ABSENT: Final = object()
_loads: Final = cast("Callable[[bytes | bytearray | memoryview], JsonValue]", orjson.loads)


@final
class Request(NamedTuple):
    """A request that wants an answer. `params` is an object, empty when there were none.

    A named tuple, since one is made for every request: it costs half of what a frozen dataclass does.
    """

    id: RequestId
    method: str
    params: Mapping[str, JsonValue]


@final
@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a request of ours. `id` is None when the other side could not read what we sent."""

    id: RequestId | None
    result: JsonValue
    error: JsonValue


@final
@dataclass(frozen=True, slots=True)
class Notification:
    """Something said without wanting an answer; its name begins with `$/`."""

    method: str
    params: Mapping[str, JsonValue]


Message = Request | Response | Notification


@final
class Refused(Exception):
    """The text is no message. `error` is the answer it gets; `id` the request it answers, where that was legible."""

    def __init__(self, error: HermesError, id: RequestId | None = None) -> None:
        super().__init__(error.message)
        self.error: Final = error
        self.id: Final = id


def parse(text: bytes | bytearray | memoryview) -> Message:
    """Read one message. Raises `Refused` and nothing else, whatever the bytes are.

    Lone surrogates in strings become U+FFFD here, so that nothing behind this can be handed one.
    """
    value = _load(text)
    if type(value) is dict:
        id, method, params = value.get("id"), value.get("method"), value.get("params")
        if (
            type(id) is int
            and type(method) is str
            and type(params) is dict
            and value.get("jsonrpc") == "2.0"
            and 0 < len(method) <= METHOD_CHARACTERS
        ):
            return Request(id, method, params)  # what nearly all messages are, found with as few looks as will do
    if not isinstance(value, dict):
        if isinstance(value, list):
            raise Refused(InvalidRequest("Batches are not accepted; send one object per message."))
        raise Refused(InvalidRequest("The message is not an object."))
    message = value
    if "method" not in message and ("result" in message or "error" in message):
        return _response(message)
    return _request(message)


def _request(message: dict[str, JsonValue]) -> Request | Notification:
    raw = message.get("id", _ABSENT)
    id = _id(raw)
    if message.get("jsonrpc") != "2.0":
        raise Refused(InvalidRequest('"jsonrpc" is not "2.0".'), id)
    method = message.get("method")
    if not isinstance(method, str) or not method or len(method) > METHOD_CHARACTERS:
        raise Refused(InvalidRequest('"method" is not the name of a method.'), id)
    params = message.get("params", _ABSENT)
    if params is _ABSENT:
        params = {}
    elif not isinstance(params, dict):
        raise Refused(ParamsNotObject("Parameters are an object, by name."), id)
    checked = cast("dict[str, JsonValue]", params)
    if id is not None:
        return Request(id, method, checked)
    if raw is _ABSENT and method.startswith("$/"):
        return Notification(method, checked)
    raise Refused(InvalidRequest(f'"id" is not an integer or a text of 1 to {ID_CHARACTERS} characters.'))


def _response(message: dict[str, JsonValue]) -> Response:
    # An answer is never refused with another answer: two peers that disagree would go on for ever.
    id = _id(message.get("id"))
    return Response(id, message.get("result"), message.get("error"))


def _id(value: object) -> RequestId | None:
    if isinstance(value, str):
        return value if 0 < len(value) <= ID_CHARACTERS and not value.isspace() else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return None


def _load(text: bytes | bytearray | memoryview) -> JsonValue:
    try:
        return _loads(text)
    except orjson.JSONDecodeError:
        # orjson refuses lone surrogates; clients cut texts within a pair (FRAME-01). Anything else fails again.
        if b"\\u" not in bytes(text):
            raise Refused(ParseError("The message is not JSON.")) from None
    try:
        return cast("JsonValue", _scrubbed(cast("object", json.loads(bytes(text), parse_constant=_no_constant))))
    except (ValueError, RecursionError):
        raise Refused(ParseError("The message is not JSON.")) from None


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _scrubbed(value: object) -> object:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        return [_scrubbed(each) for each in cast("list[object]", value)]
    if isinstance(value, dict):
        return {scrub(key): _scrubbed(each) for key, each in cast("dict[str, object]", value).items()}
    return value
