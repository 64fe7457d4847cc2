"""Values that fit a JSON schema of ours, and values that are likely not to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

DEEP = 5
"""How far a shape that holds itself is followed."""

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)

Definitions = Mapping[str, Any]


def fitting(schema: Mapping[str, Any], definitions: Definitions, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that the schema allows, as far as it is followed."""
    if "$ref" in schema:
        return fitting(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions, depth + 1)
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return st.one_of([fitting(each, definitions, depth) for each in schema[several]])
    kind = schema.get("type")
    if kind == "string":
        return _text(schema)
    if kind == "integer":
        return st.integers(schema.get("minimum", -(2**53)), schema.get("maximum", 2**53))
    if kind == "number":
        low, high = schema.get("minimum", -1e9), schema.get("maximum", 1e9)
        return st.floats(low, high, allow_nan=False, exclude_min="exclusiveMinimum" in schema)
    if kind == "array":
        inner = fitting(schema.get("items", {}), definitions, depth + 1) if depth < DEEP else st.nothing()
        low = schema.get("minItems", 0)
        return st.lists(inner, min_size=low, max_size=low + 2) if depth < DEEP else st.just([])
    if kind == "object":
        return _object(schema, definitions, depth)
    return {"boolean": st.booleans(), "null": st.none()}.get(str(kind), ANY_JSON)


def _text(schema: Mapping[str, Any]) -> st.SearchStrategy[str]:
    low = schema.get("minLength", 0)
    high = min(schema.get("maxLength", low + 20), low + 20)
    if "pattern" in schema:
        found = st.from_regex(schema["pattern"].replace("$", r"\Z"))
        return found.filter(lambda text: low <= len(text) <= schema.get("maxLength", len(text)))
    return st.text(st.characters(exclude_categories=["Cs"]), min_size=low, max_size=high)


def _object(schema: Mapping[str, Any], definitions: Definitions, depth: int) -> st.SearchStrategy[Any]:
    properties = schema.get("properties", {})
    required = set(schema.get("required", ()))
    shapes = {name: fitting(each, definitions, depth + 1) for name, each in properties.items() if depth < DEEP}
    more = schema.get("additionalProperties")
    if not properties and more is not False:
        inner = fitting(more, definitions, depth + 1) if isinstance(more, dict) and depth < DEEP else ANY_JSON
        return st.dictionaries(st.text(max_size=8), inner, max_size=3)
    return st.fixed_dictionaries(
        {name: each for name, each in shapes.items() if name in required},
        optional={name: each for name, each in shapes.items() if name not in required},
    )
