"""What each setting takes, as JSON Schema: what a form for a person is made from.

References are written out, so that the shape of one setting stands by itself; titles, which only repeat names, are
left out. A number that is measured in something says so as `unit`, and what is never shown is marked `secret`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from hermes_ws.scope.config import ProfileConfig

Shape = dict[str, JsonValue]


def shapes() -> dict[str, Shape]:
    """The shape of every section, by its name, with those of its settings under `properties`.

    Made anew each time, in some milliseconds of work: ask once for a whole form.
    """
    schema = cast("Shape", ProfileConfig.model_json_schema())
    declared = cast("dict[str, Shape]", schema.get("$defs", {}))
    sections = cast("dict[str, Shape]", schema["properties"])
    return {name: cast("Shape", _whole(shape, declared)) for name, shape in sections.items()}


def _whole(node: JsonValue, declared: Mapping[str, Shape]) -> JsonValue:
    if isinstance(node, list):
        return [_whole(each, declared) for each in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str):
        # What stands beside the reference is about this use, and comes before what is about all.
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return _whole({**declared[reference.rsplit("/", 1)[-1]], **beside}, declared)
    # Under `properties` a title is a setting of that name.
    return {
        key: {name: _whole(shape, declared) for name, shape in value.items()}
        if key == "properties" and isinstance(value, dict)
        else _whole(value, declared)
        for key, value in node.items()
        if key != "title"
    }
