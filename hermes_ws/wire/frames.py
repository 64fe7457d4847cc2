"""JSON texts and the WebSocket frames that carry them.

What goes to many connections is encoded once: a `Frame` keeps its bytes, and its WebSocket form is made when the first
connection needs it. The form is always the same one: final, unmasked, uncompressed text (RFC 6455, section 5.2).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Final, cast, final

import orjson
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, SchemaSerializer

NESTING: Final = 200
"""How deep a value may be nested when it is written out. orjson stops at 254; what is deeper than this becomes null."""

RequestId = int | str
"""What may identify a request."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_LONGEST_BRIEF: Final = 125
_LONGEST_MIDDLE: Final = 0xFFFF


def scrub(text: str) -> str:
    """The same text with every lone surrogate replaced by U+FFFD, so that it can be UTF-8."""
    return _SURROGATE.sub("\ufffd", text)


def encode(value: object) -> bytes:
    """JSON for a JSON value or a Pydantic model. Never raises for a JSON value.

    Lone surrogates become U+FFFD, numbers that JSON does not have become null, integers keep all their digits, and
    what is nested deeper than `NESTING` becomes null. `orjson.Fragment` may stand for a part that is encoded already.
    """
    try:
        return orjson.dumps(value, default=_model)
    except (TypeError, ValueError):
        # Rare: a surrogate, an integer of more than 64 bits, or too deep. TypeErrors of other origin come again below.
        return json.dumps(_plain(value, 0), ensure_ascii=False, separators=(",", ":")).encode()


def _model(value: object) -> object:
    if not isinstance(value, BaseModel):
        raise TypeError(f"{type(value).__name__} is no JSON value")
    try:
        return orjson.Fragment(value.__pydantic_serializer__.to_json(value))
    except (PydanticSerializationError, UnicodeEncodeError):
        return _plain(value.model_dump(mode="python"), 0)


def _plain(value: object, depth: int) -> object:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, orjson.Fragment):
        return _plain(_decoded(value), depth)
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(mode="python"), depth)
    if depth >= NESTING:
        return None
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value)
        return {scrub(str(key)): _plain(each, depth + 1) for key, each in items.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, depth + 1) for each in cast("Sequence[object]", value)]
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _decoded(part: object) -> object:
    return cast("object", orjson.loads(orjson.dumps(part)))


def text_frame(payload: bytes) -> bytes:
    """`payload` as one unmasked, final, uncompressed text frame, ready for the socket."""
    length = len(payload)
    if length <= _LONGEST_BRIEF:
        return bytes((0x81, length)) + payload
    if length <= _LONGEST_MIDDLE:
        return b"\x81\x7e" + length.to_bytes(2, "big") + payload
    return b"\x81\x7f" + length.to_bytes(8, "big") + payload


@final
class Frame:
    """One message to a client: encoded once, sent to as many connections as want it.

    `json` is the text; `type` is the type of the event it carries, and empty for anything else; `id` is the request it
    answers, if it answers one. `ws` is made on first use and kept.
    """

    __slots__ = ("_ws", "id", "json", "type")

    def __init__(self, json: bytes, type: str = "", id: RequestId | None = None) -> None:
        self.json: Final = json
        self.type: Final = type
        self.id: Final = id
        self._ws: bytes | None = None

    @property
    def ws(self) -> bytes:
        """The WebSocket frame around `json`."""
        made = self._ws
        if made is None:
            made = self._ws = text_frame(self.json)
        return made

    def __len__(self) -> int:
        return len(self.json)

    def __repr__(self) -> str:
        return f"<Frame {self.type or 'message'} of {len(self.json)} bytes>"


def event_frame(envelope: Mapping[str, object]) -> Frame:
    """The notification `event`. Fields of the envelope that are None are left out; those of its payload stay."""
    params = {key: value for key, value in envelope.items() if value is not None}
    return Frame(encode({"jsonrpc": "2.0", "method": "event", "params": params}), str(envelope["type"]))


def notification_frame(method: str, params: Mapping[str, object]) -> Frame:
    """Any other notification."""
    return Frame(encode({"jsonrpc": "2.0", "method": method, "params": params}))


def reply_frame(id: RequestId, result: object) -> Frame:
    """The answer to request `id`; `result` is a JSON value, a Pydantic model or an `orjson.Fragment`."""
    serializer: SchemaSerializer | None = getattr(type(result), "__pydantic_serializer__", None)
    if serializer is not None:
        # The usual case, at half the cost of the general one; what it cannot write, the general one can.
        try:
            body = serializer.to_json(result)
            if type(id) is int:
                return Frame(b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (id, body), id=id)
            return Frame(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (orjson.dumps(id), body), id=id)
        except (PydanticSerializationError, UnicodeEncodeError, TypeError):
            pass
    return Frame(encode({"jsonrpc": "2.0", "id": id, "result": result}), id=id)


def error_frame(id: RequestId | None, error: Mapping[str, object]) -> Frame:
    """The refusal of request `id` (None where it could not be read); `error` is what `HermesError.to_wire` gives."""
    return Frame(encode({"jsonrpc": "2.0", "id": id, "error": error}), id=id)


def request_frame(id: RequestId, method: str, params: object) -> Frame:
    """A request of the server's own: a question to the client."""
    return Frame(encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))


def batch_frame(notifications: Sequence[Frame]) -> Frame:
    """Several notifications as one JSON array, for a connection that negotiated `batch`."""
    return Frame(b"[" + b",".join([each.json for each in notifications]) + b"]")
