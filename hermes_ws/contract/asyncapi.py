"""What the server sends unasked, as an AsyncAPI 3 document (https://www.asyncapi.com): events, and questions.

Requests of clients stand in the OpenRPC document; both share their schemas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from hermes_ws.contract.events import EVENTS, Envelope
from hermes_ws.contract.questions import QUESTIONS
from hermes_ws.contract.registry import Event, Question
from hermes_ws.contract.schemas import Shapes, shapes
from hermes_ws.contract.version import PROTOCOL_MAJOR, PROTOCOL_MINOR

_REF: Final = "#/components/schemas/{model}"

_ADDRESSES: Final[Mapping[str, str]] = MappingProxyType(
    {"all": "/ws", "profile": "/p/{profile}/ws", "stream": "/events"}
)


def document() -> dict[str, JsonValue]:
    """Every event and every question. The same declarations give the same document, key for key."""
    found = shapes(_REF)
    events = {f"event.{each.type}": _event(each, found) for each in EVENTS.values()}
    asked = {f"question.{each.kind}": _question(each, found) for each in QUESTIONS.values()}
    answers = {f"answer.{each.kind}": _answer(each, found) for each in QUESTIONS.values()}
    messages = {**events, **asked, **answers}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "hermes-ws",
            "version": f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}",
            "description": "What the server says unasked. Requests of clients stand in the OpenRPC document.",
        },
        "defaultContentType": "application/json",
        "servers": {"local": {"host": "127.0.0.1:8787", "protocol": "ws"}},
        "channels": {name: _channel(name, tuple(messages)) for name in _ADDRESSES},
        "operations": {
            "tell": {
                "action": "send",
                "channel": {"$ref": "#/channels/all"},
                "summary": "An event, to those who may see it.",
                "messages": [_in_channel(name) for name in events],
            },
            **{
                _identifier(f"ask.{each.kind}"): {
                    "action": "send",
                    "channel": {"$ref": "#/channels/all"},
                    "summary": each.doc,
                    "messages": [_in_channel(f"question.{each.kind}")],
                    "reply": {
                        "channel": {"$ref": "#/channels/all"},
                        "messages": [_in_channel(f"answer.{each.kind}")],
                    },
                }
                for each in QUESTIONS.values()
            },
        },
        "components": {
            "messages": {_identifier(name): message for name, message in messages.items()},
            "schemas": dict(found.definitions),
        },
    }


def _channel(name: str, messages: tuple[str, ...]) -> JsonValue:
    channel: dict[str, JsonValue] = {
        "address": _ADDRESSES[name],
        "messages": {
            _identifier(each): {"$ref": f"#/components/messages/{_identifier(each)}"}
            for each in messages
            if name != "stream" or not each.startswith("answer.")
        },
    }
    if name == "profile":
        channel["parameters"] = {"profile": {"description": "The one profile that can be reached there."}}
    return channel


def _in_channel(name: str) -> JsonValue:
    return {"$ref": f"#/channels/all/messages/{_identifier(name)}"}


def _identifier(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def _event(event: Event, found: Shapes) -> JsonValue:
    payload: JsonValue = {"type": {"const": event.type}, "payload": found.to(event.payload)}
    params: JsonValue = {"allOf": [found.to(Envelope), {"type": "object", "properties": payload}]}
    return {
        "name": event.type,
        "summary": event.doc,
        "payload": _object(method={"const": "event"}, params=params),
        "x-live": event.live,
    }


def _question(question: Question, found: Shapes) -> JsonValue:
    method: JsonValue = {"const": question.kind}
    return {
        "name": question.kind,
        "summary": question.doc,
        "payload": _object(id={"type": "string"}, method=method, params=found.to(question.params)),
    }


def _answer(question: Question, found: Shapes) -> JsonValue:
    return {
        "name": f"{question.kind} (answer)",
        "summary": f"The answer to {question.kind}; it carries the id of the question.",
        "payload": _object(id={"type": "string"}, result=found.to(question.result)),
    }


def _object(**properties: JsonValue) -> JsonValue:
    every: dict[str, JsonValue] = {"jsonrpc": {"const": "2.0"}, **properties}
    return {"type": "object", "properties": every, "required": list(every)}
