"""The shapes of the contract as JSON Schemas (draft 2020-12), named by their models.

All renderers take their schemas from here, so that a shape has one name and one form wherever it is written down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, cast, final

from pydantic import BaseModel, JsonValue
from pydantic.json_schema import models_json_schema

from hermes_ws.contract.catalog import METHODS
from hermes_ws.contract.events import EVENTS, Envelope
from hermes_ws.contract.questions import QUESTIONS
from hermes_ws.contract.registry import VARIES, varies_of
from hermes_ws.contract.version import PROTOCOL_MAJOR, PROTOCOL_MINOR

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

Model = type[BaseModel]


@final
@dataclass(frozen=True, slots=True)
class Shapes:
    """Definitions by name, and the name under which each model stands."""

    definitions: Mapping[str, JsonValue]
    names: Mapping[Model, str]
    ref: str

    def to(self, model: Model) -> dict[str, JsonValue]:
        """A reference to the definition of a model."""
        return {"$ref": self.ref.format(model=self.names[model])}

    def of(self, model: Model) -> dict[str, JsonValue]:
        """The definition of a model itself."""
        return cast("dict[str, JsonValue]", self.definitions[self.names[model]])


def shapes(ref: str = "#/$defs/{model}") -> Shapes:
    """Every shape of the contract; `ref` is how one refers to another. The same declarations give the same result."""
    models = list(dict.fromkeys(_models()))
    refs, bundle = models_json_schema([(each, "validation") for each in models], ref_template=ref)
    marker = ref.partition("{")[0]
    names: dict[Model, str] = {}
    for (model, _), schema in refs.items():
        names[cast("Model", model)] = str(schema["$ref"]).removeprefix(marker)
    definitions = cast("dict[str, JsonValue]", bundle.get("$defs", {}))
    for model in models:
        for key, varies in varies_of(model):
            fields = cast("dict[str, dict[str, dict[str, JsonValue]]]", definitions[names[model]])["properties"]
            told: dict[str, JsonValue] = {
                value: {"$ref": ref.format(model=names[shape])} for value, shape in varies.shapes.items()
            }
            kept = {name: said for name, said in fields[key].items() if name not in ("type", "additionalProperties")}
            fields[key] = {**kept, "anyOf": list(told.values()), VARIES: {varies.by: told}}
            fields[varies.by] = {**fields[varies.by], "enum": list(told)}
    return Shapes(MappingProxyType(definitions), MappingProxyType(names), ref)


def document() -> dict[str, JsonValue]:
    """One schema that holds them all, and says which one goes where."""
    found = shapes()
    return {
        "$schema": DIALECT,
        "title": f"hermes-ws {PROTOCOL_MAJOR}.{PROTOCOL_MINOR}",
        "methods": {
            each.name: {"params": found.to(each.params), "result": found.to(each.result)} for each in METHODS.values()
        },
        "events": {each.type: found.to(each.payload) for each in EVENTS.values()},
        "questions": {
            each.kind: {"params": found.to(each.params), "result": found.to(each.result)} for each in QUESTIONS.values()
        },
        "$defs": dict(found.definitions),
    }


def _models() -> Iterator[Model]:
    for method in METHODS.values():
        yield method.params
        for _, varies in varies_of(method.params):
            yield from varies.shapes.values()
        yield method.result
    yield Envelope
    for event in EVENTS.values():
        yield event.payload
    for question in QUESTIONS.values():
        yield question.params
        yield question.result
