"""What a server's frame is to a client: a reply, a question, an event, or something from a later version.

Read leniently: what this version does not know is passed over, so that a newer server can be spoken with. What is not
JSON-RPC at all is not passed over: then the bytes are not what they seem.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast, final

import orjson
from pydantic import JsonValue, ValidationError

from hermes_ws.client.failures import RemoteError, ReplyRefused
from hermes_ws.contract.events import Envelope


@final
@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one of our requests: its result, still unread, or the refusal."""

    id: int
    result: JsonValue
    error: RemoteError | None = None


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """A question that the server put to this connection. `method` names its kind."""

    id: str
    method: str
    params: Mapping[str, JsonValue]

    @property
    def kind(self) -> str:
        """The kind, as `contract/questions.py` names it."""
        return self.method.removesuffix(".request")


@final
@dataclass(frozen=True, slots=True)
class Unreadable:
    """An event of a thread that is no envelope as this client knows it."""

    session_id: str
    thread_id: str
    type: str
    because: str


Incoming = Reply | Asked | Envelope | Unreadable | None


def read(frame: bytes) -> Incoming:
    """One frame, told apart; None for what is to be passed over. Raises ReplyRefused when it is no JSON-RPC."""
    try:
        value = cast("JsonValue", orjson.loads(frame))
    except orjson.JSONDecodeError:
        raise ReplyRefused("frame", "it is not JSON") from None
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise ReplyRefused("frame", "it is not JSON-RPC 2.0")
    method, identifier = value.get("method"), value.get("id")
    if isinstance(method, str):
        params = value.get("params")
        held: dict[str, JsonValue] = params if isinstance(params, dict) else {}
        if isinstance(identifier, str) and identifier.strip():
            return Asked(identifier, method, held)
        return _event(held) if method == "event" and identifier is None else None
    if not isinstance(identifier, int) or isinstance(identifier, bool):
        return None  # a refusal of something whose id the server could not read; nobody here waits for it
    error = value.get("error")
    return Reply(identifier, value.get("result"), _refusal(error) if isinstance(error, dict) else None)


def _event(params: Mapping[str, JsonValue]) -> Envelope | Unreadable:
    try:
        return Envelope.model_validate(params)
    except ValidationError as error:
        session_id, thread_id = params.get("session_id"), params.get("thread_id")
        if isinstance(session_id, str) and isinstance(thread_id, str):
            return Unreadable(session_id, thread_id, str(params.get("type")), first_problem(error))
        raise ReplyRefused("event", first_problem(error)) from None


def _refusal(error: Mapping[str, JsonValue]) -> RemoteError:
    code, message, data = error.get("code"), error.get("message"), error.get("data")
    return RemoteError(
        code if isinstance(code, int) else -32603,
        message if isinstance(message, str) and message else "The server gave no reason.",
        data if isinstance(data, dict) else {},
    )


def first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(str(part) for part in problem["loc"])
    return f"{path}: {problem['msg']}" if path else problem["msg"]
