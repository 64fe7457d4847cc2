"""Parameters for any declared method, made from its declaration: what it requires, and nothing else.

What a declaration cannot say, that one of several must be given for example, stands in `ALSO`; a method whose example
does not fit fails the first test of the matrix, and wants a line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_ws.contract.catalog import AnyMethod

ALSO: Mapping[str, Mapping[str, Any]] = {
    "config.set": {"scope": "session", "session_id": "s-1"},
    "session.mutate": {"operation": "rename", "payload": {"title": "another"}},
    "schedule.create": {"every_s": 3600},
    "vault.add": {"secret": {"username": "u", "password": "p"}},
    "prompt.submit": {"text": "hello"},
    "prompt.receipt": {"input_id": "i-1"},
    "session.resume": {"session_id": "s-1"},
    "session.search": {"query": "hello"},
}
"""What a method needs besides what its schema requires."""

NAMED: Mapping[str, Any] = {
    "thread_id": "main",
    "after": "1:0",
    "until": 4_000_000_000.0,
    "new_name": "another",
    "name": "another",
    "key": "model.name",
    "data": "aGVsbG8=",
    "blob": "0" * 64,
}
"""What stands for a parameter of this name, where its type does not say enough."""


def example(method: AnyMethod) -> dict[str, Any]:
    """Parameters that the method accepts."""
    schema = method.params.model_json_schema()
    return {**_object(schema, schema.get("$defs", {})), **ALSO.get(method.name, {})}


def _object(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    return {name: _value(name, properties[name], defs) for name in schema.get("required", ())}


def _value(name: str, schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return _value(name, defs[schema["$ref"].rsplit("/", 1)[1]], defs)
    if "anyOf" in schema:
        return _value(name, schema["anyOf"][0], defs)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "oneOf" in schema:
        return _value(name, schema["oneOf"][0], defs)
    match schema.get("type"):
        case "object":
            return _object(schema, defs)
        case "array":
            return [_value(name, schema["items"], defs)] * schema.get("minItems", 0)
        case "integer" | "number":
            return NAMED.get(name, schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1))
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return NAMED.get(name, "x" * max(1, schema.get("minLength", 1)))
