"""The contract as an OpenRPC 1.3 document (https://spec.open-rpc.org), rendered from the declarations."""

from __future__ import annotations

import hashlib
import json
from typing import cast

from pydantic import JsonValue

from hermes_ws import __version__
from hermes_ws.contract.catalog import METHODS, AnyMethod
from hermes_ws.contract.close_codes import CLOSE_CODES
from hermes_ws.contract.errors import HermesError
from hermes_ws.contract.events import EVENTS
from hermes_ws.contract.general import ALWAYS, BY_SCOPE
from hermes_ws.contract.questions import QUESTIONS
from hermes_ws.contract.registry import NEEDS
from hermes_ws.contract.schemas import Shapes, shapes
from hermes_ws.contract.version import PROTOCOL_MAJOR, PROTOCOL_MINOR

_REF = "#/components/schemas/{model}"


def document() -> dict[str, JsonValue]:
    """The whole contract. The same declarations give the same document, key for key."""
    found = shapes(_REF)
    return {
        "openrpc": "1.3.2",
        "info": {"title": "hermes-ws", "version": f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}"},
        "methods": [_method(each, found) for each in METHODS.values()],
        "components": {"schemas": dict(found.definitions)},
        "x-server": {"name": "hermes-ws", "version": __version__},
        "x-events": [
            {"type": each.type, "live": each.live, "summary": each.doc, "payload": found.to(each.payload)}
            for each in EVENTS.values()
        ],
        "x-questions": [
            {
                "kind": each.kind,
                "summary": each.doc,
                "params": found.to(each.params),
                "result": found.to(each.result),
            }
            for each in QUESTIONS.values()
        ],
        "x-general-errors": {
            "always": [_error(error) for error in ALWAYS],
            **{scope.value: [_error(error) for error in found] for scope, found in BY_SCOPE.items()},
        },
        "x-close-codes": [{"code": each.code, "name": each.name, "summary": each.doc} for each in CLOSE_CODES],
    }


def _method(each: AnyMethod, found: Shapes) -> JsonValue:
    schema = found.of(each.params)
    required = frozenset(cast("list[str]", schema.get("required", [])))
    properties = cast("dict[str, JsonValue]", schema.get("properties", {}))
    return {
        "name": each.name,
        "summary": each.doc,
        "paramStructure": "by-name",
        "params": [
            {"name": name, "required": name in required, "schema": value, **_needs(value)}
            for name, value in properties.items()
        ],
        "result": {"name": each.result.__name__, "schema": found.to(each.result)},
        "errors": [_error(error) for error in each.errors],
        "x-scope": each.scope.value,
        "x-right": each.right.value,
        "x-order": each.order.value,
    }


def _needs(schema: JsonValue) -> dict[str, JsonValue]:
    """What a parameter takes besides the right of its method."""
    found = schema.get(NEEDS) if isinstance(schema, dict) else None
    return {} if found is None else {NEEDS: found}


def _error(error: type[HermesError]) -> JsonValue:
    summary = (error.__doc__ or "").split("\n", 1)[0]
    return {"code": error.code, "message": summary, "data": {"type": error.type}}


def digest() -> str:
    """A short name of the exact contract: a client that generated its types from another one can say so."""
    shape = document()
    del shape["x-server"]
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()[:16]
