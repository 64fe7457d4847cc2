"""The contract as an OpenRPC 1.3 document (https://spec.open-rpc.org), rendered from the declarations."""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

from pydantic import BaseModel, JsonValue
from pydantic.json_schema import models_json_schema

from hermes_ws import __version__
from hermes_ws.contract.catalog import METHODS, PROTOCOL_MAJOR, PROTOCOL_MINOR, AnyMethod
from hermes_ws.contract.errors import HermesError
from hermes_ws.contract.events import EVENTS
from hermes_ws.contract.questions import QUESTIONS

_REF = "#/components/schemas/{model}"


def document() -> dict[str, JsonValue]:
    """The whole contract. The same declarations give the same document, key for key."""
    models: list[type[BaseModel]] = []
    for method in METHODS.values():
        models += [method.params, method.result]
    models += [event.payload for event in EVENTS.values()]
    for question in QUESTIONS.values():
        models += [question.params, question.result]
    unique = list(dict.fromkeys(models))
    refs, definitions = models_json_schema([(each, "validation") for each in unique], ref_template=_REF)
    by_model = {cast("type[BaseModel]", model): cast("JsonValue", schema) for (model, _), schema in refs.items()}
    schemas = cast("dict[str, JsonValue]", definitions.get("$defs", {}))
    return {
        "openrpc": "1.3.2",
        "info": {"title": "hermes-ws", "version": f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}"},
        "methods": [_method(each, schemas, by_model) for each in METHODS.values()],
        "components": {"schemas": schemas},
        "x-server": {"name": "hermes-ws", "version": __version__},
        "x-events": [
            {"type": each.type, "live": each.live, "summary": each.doc, "payload": by_model[each.payload]}
            for each in EVENTS.values()
        ],
        "x-questions": [
            {
                "kind": each.kind,
                "summary": each.doc,
                "params": by_model[each.params],
                "result": by_model[each.result],
            }
            for each in QUESTIONS.values()
        ],
    }


def _method(each: AnyMethod, schemas: dict[str, JsonValue], by_model: dict[type[BaseModel], JsonValue]) -> JsonValue:
    schema = cast("dict[str, Any]", schemas[each.params.__name__])
    required = frozenset(cast("list[str]", schema.get("required", [])))
    properties = cast("dict[str, JsonValue]", schema.get("properties", {}))
    return {
        "name": each.name,
        "summary": each.doc,
        "paramStructure": "by-name",
        "params": [{"name": name, "required": name in required, "schema": value} for name, value in properties.items()],
        "result": {"name": each.result.__name__, "schema": by_model[each.result]},
        "errors": [_error(error) for error in each.errors],
        "x-scope": each.scope.value,
        "x-right": each.right.value,
        "x-order": each.order.value,
    }


def _error(error: type[HermesError]) -> JsonValue:
    summary = (error.__doc__ or "").split("\n", 1)[0]
    return {"code": error.code, "message": summary, "data": {"type": error.type}}


def digest() -> str:
    """A short name of the exact contract: a client that generated its types from another one can say so."""
    shape = document()
    del shape["x-server"]
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()[:16]
